// The criteria that apps are ranked by: their published formulas, the weights of a caller, and the JSON schemas.
import { z } from 'zod';
import { visitDays, visitLimitMs } from '../bench/store.ts';
import { absenceDays, followedDays, stayDays } from './retention.ts';
import { leastDays, leastRequests, steadyDays } from './stability.ts';

export const criteria = ['onboarding', 'quality', 'cost', 'stability', 'retention'] as const;
export type Criterion = (typeof criteria)[number];

export interface Formula {
  /** Anchor of it in the document. */
  readonly id: Criterion | 'score';
  readonly title: string;
  readonly formula: string;
  /** Where the data comes from. */
  readonly data: string;
  readonly interval: string;
  /** When there is no value. */
  readonly null_when: string;
}

export const formulas: readonly Formula[] = [
  {
    id: 'onboarding',
    title: 'Onboarding',
    formula: `answered / n over first visits: a script that was never there opens the page of the app and asks a question that every model can answer, by the app's own interface and with its own model. A visit is answered when the right answer came within ${visitLimitMs / 1_000} seconds. Beside it: the requests that it takes, and the seconds.`,
    data: `First visits of the last ${visitDays} days. \`npm run bench:models\` makes them before its runs; all are counted.`,
    interval: 'Wilson score interval, 95 %.',
    null_when: 'No first visit of the app has been made here.',
  },
  {
    id: 'quality',
    title: 'Quality',
    formula:
      'passed / n over the runs of all models that were tested, each run counted once. Runs that failed because the model’s upstream was unavailable are not counted.',
    data: 'The benchmark of the app, /api/bench/{slug}. Compare apps that were tested with the same models.',
    interval: 'Wilson score interval, 95 %.',
    null_when: 'No benchmark of the app has been run here.',
  },
  {
    id: 'cost',
    title: 'Cost',
    formula:
      'c(cheapest) / c(app), where c is the cost per success: what all runs of the benchmark cost, divided by the runs that passed, outages counted as failed. 1 is the cheapest of all apps that have one; 0.5 costs twice as much.',
    data: 'The benchmark of the app; costs as the router billed them, summed exactly.',
    interval: 'None.',
    null_when: 'No benchmark of the app has been run here, no run of it passed, or its runs cost nothing.',
  },
  {
    id: 'stability',
    title: 'Stability',
    formula:
      '1 − failed / n over the uses by visitors and the calls that the app answered, with those failed that it answered with a server error (5xx).',
    data: `Sums by day of the gateway’s access log and of the calls in the ledger, of the last ${steadyDays} whole days (UTC). Read about every 15 minutes. It says nothing of times in which nobody asked.`,
    interval: 'Wilson score interval, 95 %. Requests of one outage fail together: with few outages it is too narrow.',
    null_when: `Fewer than ${leastRequests} requests, or on fewer than ${leastDays} days; or no gateway sends its access log.`,
  },
  {
    id: 'retention',
    title: 'Retention',
    formula: `Kaplan–Meier estimate of the share of callers whose calls go on for longer than ${stayDays} days: S = ∏ (1 − d/r) over all times up to ${stayDays} days, with d callers who leave at a time of the r who are followed until then. Times count from the first call, in whole hours. A caller has left after a call that none followed for ${absenceDays} days or more; a caller who calls on is followed until ${absenceDays} days ago. n is the number of callers whose first call is at least ${absenceDays} days ago.`,
    data: `Calls of the app through /api/projects/{slug}/call and /mcp in the last ${followedDays} days, as the ledger records them; a caller is a key, or the address of a caller without one, both as a salted hash. Visitors are not in it: they have another name each day, so that nobody is followed. Estimated about every 15 minutes.`,
    interval:
      'Greenwood’s variance on the scale of log(−log S), 95 %. At 0 and 1, where it has no width, Wilson’s of those who were followed to the end.',
    null_when: `Nobody called the app at least ${absenceDays} days ago, or no caller has been followed for ${stayDays} days.`,
  },
  {
    id: 'score',
    title: 'Score',
    formula:
      '∑ w·v / ∑ w over the criteria that `weights` names, with its weights w and the values v above. Without `weights` there is no score.',
    data: 'The values above and the caller’s own weights.',
    interval: 'None.',
    null_when:
      'No weights were sent, or a criterion with a weight above 0 has no value for the app. No value is filled in.',
  },
];

/** The document as plain text. */
export function formatFormulas(): string {
  return formulas
    .map(({ id, title, formula, data, interval, null_when }) =>
      [
        `${title} (#${id})`,
        `  Formula: ${formula}`,
        `  Data: ${data}`,
        `  Interval: ${interval}`,
        `  Null: ${null_when}`,
        '',
      ].join('\n'),
    )
    .join('\n');
}

export type Weights = Partial<Record<Criterion, number>>;

const shape = /^([a-z]{1,20}):(\d{1,3}(?:\.\d{1,3})?)$/;

/** Query parameter `weights`. Each criterion once, at least one above 0. */
export const weightsField = z
  .string()
  .max(200)
  .transform((text, context): Weights => {
    const weights: Weights = {};
    for (const part of text.split(',')) {
      const [, name = '', weight = ''] = shape.exec(part.trim()) ?? [];
      const criterion = criteria.find((one) => one === name);
      if (criterion === undefined)
        return addIssue(context, `has ${JSON.stringify(part.slice(0, 40))}, which is no criterion with a weight`);
      if (criterion in weights) return addIssue(context, `names ${criterion} twice`);
      weights[criterion] = Number(weight);
    }
    return Object.values(weights).some((weight) => weight > 0) ? weights : addIssue(context, 'has no weight above 0');
  })
  .describe(
    `Weights of the total score, such as quality:2,cost:1. Criteria: ${criteria.join(', ')}; weights from 0 to 999 with up to three decimal places. Without it there is no total score.`,
  );

function addIssue(context: z.RefinementCtx<string>, message: string): never {
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
}

export const score = z.object({
  value: z.number().min(0).max(1).nullable().describe('From 0 to 1, higher is better; null if not measured.'),
  interval: z.tuple([z.number(), z.number()]).nullable().describe('95 % interval, if the formula has one.'),
  n: z.int().describe('Number of observations behind it.'),
  detail: z
    .object({
      requests: z.int().describe("A visitor's requests until the answer, including the page."),
      seconds: z
        .object({ p50: z.number().nullable(), p95: z.number().nullable() })
        .describe('Until the useful answer; null without one.'),
    })
    .nullable()
    .describe('For onboarding, the effort of a first visit; null for other scores and if nothing is measured.'),
  formula: z.string().describe('URL of the formula.'),
  reason: z.string().nullable().describe('Why the value is null.'),
});
export type Score = z.output<typeof score>;

export const rankedApp = z.object({
  slug: z.string(),
  title: z.string(),
  score: z
    .number()
    .nullable()
    .describe('Total with the given weights; null without weights, or if a weight applies to a null value.'),
  score_reason: z.string().nullable().describe('Why the score is null.'),
  scores: z.object({ onboarding: score, quality: score, cost: score, stability: score, retention: score }),
  page: z.string().describe('URL of the page of the app.'),
  machine_readable: z.string().describe('URL of the app as JSON.'),
});
export type RankedApp = z.output<typeof rankedApp>;

export const rankList = z.object({
  weights: z.partialRecord(z.enum(criteria), z.number()).nullable().describe('The given weights.'),
  formulas: z.string().describe('URL of the formulas.'),
  apps: z.array(rankedApp).describe('Highest score first; without weights, by title.'),
  total: z.int().describe('Number of apps on all pages.'),
  next: z.string().nullable().describe('URL of the next page; null on the last one.'),
});
export type RankList = z.output<typeof rankList>;

export const formulaList = z.object({
  formulas: z.array(
    z.object({
      id: z.enum([...criteria, 'score']),
      title: z.string(),
      formula: z.string(),
      data: z.string().describe('What it is computed from.'),
      interval: z.string().describe('How the interval is computed.'),
      null_when: z.string().describe('When there is no value.'),
    }),
  ),
});
