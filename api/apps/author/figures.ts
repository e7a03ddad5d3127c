// How an app did over time, for its author: requests, errors, latency, CPU, memory, model cost and earnings, by hour or day. All of it
// comes from sums that other rooms write to the database. Names of apps can be used again, so nothing is shown from before this app.
import { z } from 'zod';
import {
  type Database,
  formatMoney,
  ledgerUnavailable,
  ledgerUnconfigured,
  money,
  prefixStatements,
  sumMoney,
} from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { readAuthorship } from '../hosted-apps.ts';
import { readingProblems } from '../problems.ts';
import { type AuthorServices, slugParams } from './endpoints.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** Each range with its buckets; the last bucket is the present hour or day. */
const ranges = {
  '24h': { bucket: 'hour', lengthMs: hourMs, count: 24 },
  '7d': { bucket: 'hour', lengthMs: hourMs, count: 168 },
  '30d': { bucket: 'day', lengthMs: dayMs, count: 30 },
} as const;
type Range = keyof typeof ranges;
export const figureRanges = Object.keys(ranges) as [Range, ...Range[]];

const usd = z.string().describe('USD, exact, as decimal text.');
const requestCount = z.int().nullable();

const measures = {
  requests: requestCount.describe(
    'Requests at all addresses of the app, also those of agents. Without probes of the platform, and without what the platform answered itself, such as while the app woke.',
  ),
  errors_4xx: requestCount.describe('Those answered with a status from 400 to 499.'),
  errors_5xx: requestCount.describe('Those answered with a status from 500 on, or not at all.'),
  latency_ms: z
    .number()
    .nullable()
    .describe(
      'Mean time from the start of a request to the end of its response, with streams and downloads. Percentiles are not kept. Null without requests.',
    ),
  cpu_cores: z
    .number()
    .nullable()
    .describe('Mean over the whole time, with its backing services. A sleeping app uses 0.'),
  memory_mib: z
    .number()
    .nullable()
    .describe('Mean over the whole time, with its backing services. A sleeping app uses 0.'),
  model_cost_usd: usd.nullable().describe('What the model calls of the app cost, USD, as far as it is known.'),
  model_costs_pending: z.int().nullable().describe('Model calls whose cost is not known yet.'),
};

export const figuresView = z.object({
  slug: z.string(),
  range: z.enum(figureRanges),
  bucket: z.enum(['hour', 'day']),
  since: z
    .string()
    .describe('Start of the figures: of the range, or of the first full hour after the app was created. RFC 3339.'),
  until: z.string().describe('When they were read. What happened in the last minutes may still be missing.'),
  buckets: z.array(
    z.object({
      start: z.string(),
      end: z.string().describe('`until` in the last bucket, which is not over.'),
      ...measures,
    }),
  ),
  earnings: z
    .array(
      z.object({
        day: z.string().describe('Day of the uses, UTC.'),
        earnings_usd: usd.nullable().describe('Shares of the day with their corrections. Null until they are posted.'),
      }),
    )
    .describe('By day, as shares are posted once a day: the whole days on which the range has a part.'),
  total: z.object({ ...measures, earnings_usd: usd.nullable() }).describe('Sums and means of what is not null.'),
  unmeasured: z
    .partialRecord(z.enum(['requests', 'compute', 'earnings']), z.string())
    .describe('Why there is nothing at all of these, in a sentence.'),
});
export type FiguresView = z.input<typeof figuresView>;

export function createFigureEndpoints(
  { access, now = () => new Date() }: Pick<AuthorServices, 'access' | 'now'>,
  database: () => Database,
): Endpoint[] {
  return [
    defineEndpoint({
      method: 'GET',
      path: '/api/apps/{slug}/figures',
      operation: 'getFigures',
      tag: 'apps',
      summary: 'Get the figures of an app over time',
      description:
        'Requests, errors, latency, CPU, memory, model cost and earnings: by hour for 24h and 7d, by day for 30d, in UTC. 0 means that nothing happened; null means that nothing was measured, or that it is not known yet. Nothing is shown from before the app was created, because another app may have had its name: figures begin with the first full hour, and earnings with the first full day. Disk use is not kept over time, so it is not among them.',
      params: slugParams,
      query: z.strictObject({
        range: z.enum(figureRanges).default('24h').describe('24h, 7d or 30d; default 24h.'),
      }),
      output: figuresView,
      outputDescription: 'The figures.',
      returnsCallerData: true,
      problems: [...readingProblems, ledgerUnconfigured, ledgerUnavailable],
      head: 'as GET',
      handler: async ({ params: { slug }, query: { range } }, context) => {
        const { app } = await access.identify(slug, context, 'getFigures');
        const { author } = readAuthorship(app);
        const createdAt = new Date(app.metadata.creationTimestamp);
        return readFigures(database(), { slug, author, createdAt, range, now: now() });
      },
    }),
  ];
}

export interface FiguresRequest {
  readonly slug: string;
  /** Git host and owner: only what accrued for them is shown. */
  readonly author: string;
  readonly createdAt: Date;
  readonly range: Range;
  readonly now: Date;
}

/** @throws the driver's error */
export async function readFigures(database: Database, request: FiguresRequest): Promise<FiguresView> {
  const { slug, author, createdAt, range, now } = request;
  const { bucket } = ranges[range];
  const firstHour = roundUp(createdAt, hourMs);
  const spans = listSpans(range, firstHour, now);
  const since = new Date(spans[0]?.start ?? firstHour);
  const days = listDays(Math.max(since.getTime(), roundUp(createdAt, dayMs)), now);
  const window = [slug, since, now, bucket];
  const [requests, compute, costs, earned, [state]] = await Promise.all([
    database.query(selectRequests, window),
    database.query(selectCompute, window),
    database.query(selectModelCosts, window),
    database.query(selectEarnings, [slug, author, days[0] ?? null]),
    database.query(selectState, [slug, new Date(firstHour), author]),
  ]);
  if (state === undefined) throw new Error('the database returned no row');
  const measured = spans.map((span): Measured => {
    const find = <Row extends { readonly start: Date }>(rows: readonly Row[]): Row | undefined =>
      rows.find(({ start }) => start.getTime() === span.key);
    return {
      ...span,
      requests: find(requests) ?? (isAfter(span.end, state.metered_from) ? noRequests : undefined),
      compute: find(compute) ?? (isAfter(span.end, state.computed_from) ? noCompute : undefined),
      // The calls of days that were dropped are gone.
      costs: span.start < (state.kept_from?.getTime() ?? 0) ? undefined : (find(costs) ?? noCosts),
    };
  });
  const postedUntil = (state.posted_until?.getTime() ?? 0) + postingOverlapMs;
  const earnings = days.map((day) => {
    const isPosted = !state.is_frozen && Date.parse(day) + dayMs <= postedUntil;
    return { day, amount: isPosted ? sumMoney(earned.flatMap((row) => (row.day === day ? row.amount : []))) : null };
  });
  const known = earnings.flatMap(({ amount }) => amount ?? []);
  return {
    ...{ slug, range, bucket, since: since.toISOString(), until: now.toISOString() },
    buckets: measured.map((one) => ({
      start: new Date(one.start).toISOString(),
      end: new Date(one.end).toISOString(),
      ...summarize([one]),
    })),
    earnings: earnings.map(({ day, amount }) => ({ day, earnings_usd: amount === null ? null : formatMoney(amount) })),
    total: { ...summarize(measured), earnings_usd: known.length === 0 ? null : formatMoney(sumMoney(known)) },
    unmeasured: explainGaps(state),
  };
}

function roundUp(time: Date, unitMs: number): number {
  return Math.ceil(time.getTime() / unitMs) * unitMs;
}

/** The time that a bucket covers, in milliseconds. */
interface Span {
  /** Begin of its hour or day. */
  readonly key: number;
  readonly start: number;
  readonly end: number;
}

/** @param firstHour the first full hour of the app: nothing before it is covered */
function listSpans(range: Range, firstHour: number, now: Date): Span[] {
  const { lengthMs, count } = ranges[range];
  const last = Math.floor(now.getTime() / lengthMs) * lengthMs;
  return Array.from({ length: count }, (_none, index) => {
    const key = last - (count - 1 - index) * lengthMs;
    return { key, start: Math.max(key, firstHour), end: Math.min(key + lengthMs, now.getTime()) };
  }).filter(({ start, end }) => start < end);
}

/** Days from that of a time to today, like 2026-11-27. */
function listDays(from: number, now: Date): string[] {
  const first = Math.floor(from / dayMs) * dayMs;
  const count = Math.max(0, Math.floor((now.getTime() - first) / dayMs) + 1);
  return Array.from({ length: count }, (_none, index) => new Date(first + index * dayMs).toISOString().slice(0, 10));
}

function isAfter(time: number, other: Date | null): boolean {
  return other !== null && time > other.getTime();
}

/** What is known of a span; undefined where nothing was measured. */
interface Measured extends Span {
  readonly requests: Omit<RequestRow, 'start'> | undefined;
  readonly compute: Omit<ComputeRow, 'start'> | undefined;
  readonly costs: Omit<CostRow, 'start'> | undefined;
}

function summarize(spans: readonly Measured[]): Omit<FiguresView['total'], 'earnings_usd'> {
  const requests = spans.flatMap((span) => span.requests ?? []);
  const timed = sum(requests.map((row) => row.timed));
  const counts = (of: (row: Omit<RequestRow, 'start'>) => number): number | null =>
    requests.length === 0 ? null : sum(requests.map(of));
  const computed = spans.flatMap(({ start, end, compute }) =>
    compute === undefined ? [] : { ...compute, seconds: (end - start) / 1_000 },
  );
  const seconds = sum(computed.map((row) => row.seconds));
  const costs = spans.flatMap((span) => span.costs ?? []);
  return {
    requests: counts((row) => row.requests),
    errors_4xx: counts((row) => row.errors_4xx),
    errors_5xx: counts((row) => row.errors_5xx),
    latency_ms: timed === 0 ? null : round(sum(requests.map((row) => row.latency_ms)) / timed, 1),
    cpu_cores: seconds === 0 ? null : round(sum(computed.map((row) => row.cpu_seconds)) / seconds, 6),
    memory_mib:
      seconds === 0 ? null : round(sum(computed.map((row) => row.memory_byte_seconds)) / seconds / 2 ** 20, 2),
    model_cost_usd: costs.length === 0 ? null : formatMoney(sumMoney(costs.map((row) => row.cost))),
    model_costs_pending: costs.length === 0 ? null : sum(costs.map((row) => row.pending)),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function round(value: number, decimals: number): number {
  return Number(value.toFixed(decimals));
}

function explainGaps({
  metered_from: metered,
  computed_from: computed,
  is_frozen: frozen,
}: State): FiguresView['unmeasured'] {
  return {
    ...(metered === null ? { requests: 'No gateway has sent its access log yet.' } : {}),
    ...(computed === null ? { compute: 'The operator has not reported yet what this app uses.' } : {}),
    ...(frozen ? { earnings: 'The account behind the author changed at the git forge, so earnings are frozen.' } : {}),
  };
}

// Each statement reads one app within the range by an index that begins with the app. $1: app, $2 and $3: begin and end, $4: bucket.

const defineStatement = prefixStatements('figures');
const number = z.coerce.number();
const start = z.coerce.date();

const requestRow = z.object({
  ...{ start, requests: number, errors_4xx: number, errors_5xx: number, latency_ms: number, timed: number },
});
type RequestRow = z.output<typeof requestRow>;
const noRequests = { requests: 0, errors_4xx: 0, errors_5xx: 0, latency_ms: 0, timed: 0 };

/** Sums by hour are kept when single uses are dropped. The status class 0 is that of a request without a response. */
const selectRequests = defineStatement(
  'requests',
  `select date_trunc($4::text, hour, 'UTC') as start, sum(uses)::text as requests,
      coalesce(sum(uses) filter (where status_class = 4), 0)::text as errors_4xx,
      coalesce(sum(uses) filter (where status_class in (0, 5)), 0)::text as errors_5xx,
      sum(latency_ms)::text as latency_ms, sum(timed)::text as timed
    from metering.hour
    where app = $1 and hour >= $2::timestamptz and hour < $3::timestamptz and kind = 'visit' and class not in ('wake', 'probe')
    group by 1`,
  requestRow,
);

const computeRow = z.object({ start, cpu_seconds: number, memory_byte_seconds: number });
type ComputeRow = z.output<typeof computeRow>;
const noCompute = { cpu_seconds: 0, memory_byte_seconds: 0 };

const selectCompute = defineStatement(
  'compute',
  `select date_trunc($4::text, hour, 'UTC') as start, sum(cpu_seconds)::text as cpu_seconds,
      sum(memory_byte_seconds)::text as memory_byte_seconds
    from metering.compute_hour where app = $1 and hour >= $2::timestamptz and hour < $3::timestamptz group by 1`,
  computeRow,
);

const costRow = z.object({ start, cost: money, pending: number });
type CostRow = z.output<typeof costRow>;
const noCosts = { cost: sumMoney([]), pending: 0 };

/** Costs come later than their calls, so no sums of them are kept: the index usage_app has all that is read here. */
const selectModelCosts = defineStatement(
  'model-costs',
  `select date_trunc($4::text, at, 'UTC') as start, coalesce(sum(cost), 0)::text as cost,
      (count(*) filter (where cost_source = 'pending'))::text as pending
    from ledger.usage
    where app = $1 and at >= $2::timestamptz and at < $3::timestamptz and kind <> 'visit' and kind in ('ask', 'compare', 'v1')
    group by 1`,
  costRow,
);

/** $2: author, $3: first day. */
const selectEarnings = defineStatement(
  'earnings',
  `select day::text, sum(amount)::text as amount from revenue.line
    where app = $1 and author = $2 and day >= $3::date and kind <> 'payout' group by 1`,
  z.object({ day: z.string(), amount: money }),
);

const stateRow = z.object({
  metered_from: z.coerce.date().nullable(),
  computed_from: z.coerce.date().nullable(),
  kept_from: z.coerce.date().nullable(),
  posted_until: z.coerce.date().nullable(),
  is_frozen: z.boolean(),
});
type State = z.output<typeof stateRow>;

/** A run of the posting looks again at the last minutes before it. */
const postingOverlapMs = 5 * 60_000;

/** From when on requests and compute are known, and up to when earnings are posted. $2: first hour of the app, $3: author. */
const selectState = defineStatement(
  'state',
  `select (select first_received_at from metering.instance order by id limit 1) as metered_from,
      (select min(hour) from metering.compute_hour where app = $1 and hour >= $2::timestamptz) as computed_from,
      (select nullif(kept_from, '-infinity')::text from metering.progress) as kept_from,
      (select nullif(received_until, '-infinity') from revenue.progress) as posted_until,
      revenue.is_frozen($3) as is_frozen`,
  stateRow,
);
