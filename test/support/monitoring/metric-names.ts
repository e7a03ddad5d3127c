// Which metrics a PromQL expression reads, and which our processes have.
import { describeProduct } from '../../../docs/generator/product.ts';
import { createRegistry } from '../../../lib/telemetry.ts';

/** Names of metrics in an expression, those of histograms with their suffix. */
export function listMetrics(expr: string): string[] {
  const bare = expr.replaceAll(/"[^"]*"/g, '""');
  return [...new Set([...bare.matchAll(/\b(?:moorage|process|nodejs)_[a-z0-9_]+/g)].map(([name]) => name))];
}

let known: ReadonlySet<string> | undefined;

/** Names of series that some process exports. */
export function listKnownMetrics(): ReadonlySet<string> {
  return (known ??= new Set(
    [...Object.values(describeProduct().metrics).flat(), ...createRegistry().getMetricsAsArray()].flatMap(
      ({ name, type }) =>
        String(type) === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  ));
}
