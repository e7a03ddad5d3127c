// What a guide says of this installation: `{name}` in its text and calls stands for a fact that is read from the
// configuration, so that no text goes stale.
import { formatUsd, type Money } from '../../billing/index.ts';
import type { Models } from '../../models/index.ts';
import type { Tools } from '../../tools/index.ts';

export type Facts = ReadonlyMap<string, string>;

export interface FactsOptions {
  readonly baseUrl: string;
  readonly freeQuota: Money;
  readonly catalog: Models['catalog'];
  readonly toolRegistry: Tools['toolRegistry'];
}

export function factsOf({ baseUrl, freeQuota, catalog, toolRegistry }: FactsOptions): Facts {
  const byPrice = catalog.models.toSorted((one, other) => Number(weight(one) - weight(other)));
  const free = byPrice.filter(({ tier }) => tier === 'free');
  const prices = toolRegistry.tools.map(({ name, price }) => [`price_${name}`, `$${price}`] as const);
  return new Map([
    ['base_url', baseUrl],
    ['free_quota', formatUsd(freeQuota)],
    ['tools', String(toolRegistry.tools.length)],
    ['default_model', catalog.preferred.id],
    ['cheapest_free_model', (free[0] ?? catalog.preferred).id],
    ['dearest_free_model', (free.at(-1) ?? catalog.preferred).id],
    ['dearest_model', (byPrice.at(-1) ?? catalog.preferred).id],
    ...prices,
  ]);
}

/** What an answer of usual shape, three tokens in for one out, costs relative to others; only to order by. */
function weight({ in_per_m, out_per_m }: Models['catalog']['models'][number]): bigint {
  return in_per_m * 3n + out_per_m;
}

/** JSON begins with `{"`, so it is never taken for a fact. */
const named = /\{([a-z][a-z_]{0,60})\}/g;

/** The text with its facts. @throws Error for one that is not known */
export function fill(text: string, facts: Facts): string {
  return text.replaceAll(named, (_, name: string) => {
    const fact = facts.get(name);
    if (fact === undefined) throw new Error(`{${name}} is not a known fact; known are ${[...facts.keys()].join(', ')}`);
    return fact;
  });
}

/** A value of JSON with the facts in all of its texts. */
export function fillAll<Value>(value: Value, facts: Facts): Value {
  return filled(value, facts) as Value;
}

function filled(value: unknown, facts: Facts): unknown {
  if (typeof value === 'string') return fill(value, facts);
  if (Array.isArray(value)) return value.map((item: unknown) => filled(item, facts));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, filled(item, facts)]));
}
