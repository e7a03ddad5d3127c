// What the summaries of an app show: its models, and how they compare. Kept until the summaries change, since comparing
// many pairs takes longer than reading them.
import { moneyToNumber } from '../../billing/index.ts';
import { comparePairs } from './comparison.ts';
import { costEach, costOfSuccess, wilsonInterval } from './statistics/index.ts';
import type { Summary } from './store/shapes.ts';
import type { ModelView, PairView, Rate } from './views.ts';

export interface Measurement {
  readonly models: readonly ModelView[];
  readonly pairs: readonly PairView[];
}

export class Measurements {
  /** The last of each app. */
  readonly #kept = new Map<string, { readonly of: string; readonly measurement: Measurement }>();

  of(app: string, summaries: readonly Summary[]): Measurement {
    const print = summaries.map(printOf).join('\n');
    const kept = this.#kept.get(app);
    if (kept?.of === print) return kept.measurement;
    const measurement = measure(summaries);
    this.#kept.set(app, { of: print, measurement });
    return measurement;
  }
}

/** All that a summary has. */
function printOf(summary: Summary): string {
  return JSON.stringify(summary, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

function measure(summaries: readonly Summary[]): Measurement {
  const byModel = Map.groupBy(summaries, ({ model }) => model);
  const models = [...byModel.values()].flatMap((of) => {
    const whole = of.find(({ task }) => task === '');
    const tasks = of.filter(({ task }) => task !== '');
    return whole === undefined ? [] : [modelView(whole, tasks)];
  });
  return { models, pairs: comparePairs(models) };
}

function modelView(whole: Summary, tasks: readonly Summary[]): ModelView {
  const { exact, atLeast } = costOfSuccess(whole.cost, { passed: whole.passed, unknown: whole.cost_unknown });
  return {
    model: whole.model,
    runs: whole.runs,
    ...measures(whole),
    cost_per_success_usd: exact === undefined ? null : moneyToNumber(exact),
    cost_per_success_at_least_usd: atLeast === undefined ? null : moneyToNumber(atLeast),
    cost_unknown: whole.cost_unknown,
    errors: whole.errors,
    by_task: tasks.map((summary) => ({ task: summary.task, ...measures(summary) })),
  };
}

function measures(summary: Summary): Pick<ModelView, 'quality' | 'delivered' | 'cost_per_run_usd' | 'latency_ms'> {
  const { runs, passed, unanswered, cost, cost_unknown: unknown, latency_p50: p50, latency_p95: p95 } = summary;
  const each = costEach(cost, runs - unknown);
  return {
    quality: rateOf(passed, runs - unanswered),
    delivered: rateOf(passed, runs),
    cost_per_run_usd: each === undefined ? null : moneyToNumber(each),
    latency_ms: { p50, p95 },
  };
}

export function rateOf(passed: number, n: number): Rate {
  const interval = wilsonInterval(passed, n);
  return { passed, n, rate: n === 0 ? null : passed / n, interval: interval === undefined ? null : [...interval] };
}
