// Stores the records of gateways: a batch of one gateway in one transaction, with its events, its runs and the missing numbers.
import { z } from 'zod';
import type { Logger } from '../../../lib/telemetry.ts';
import { type Database, type OpenLedger, prefixStatements, runAsTask, type Transaction } from '../../billing/index.ts';
import {
  assignRuns,
  createEventId,
  findGaps,
  formatCounters,
  formatMultirange,
  formatTimestamp,
  type GatewayRecord,
  identifyGateway,
  readRecord,
  type Run,
  type RunBatch,
} from './gateway-record.ts';
import type { SentLogs } from './log-receiver.ts';
import type { MeteringMetrics } from './metering-metrics.ts';
import { classify, type HostKind, type Visitor } from './request-class.ts';

/** Older records may have been dropped with their day, so they could be counted twice. */
const maxAgeDays = 35;
const maxAheadMs = 5 * 60_000;
const nanosecond = 1_000_000n;

export interface IntakeOptions {
  readonly ledger: { get(): Pick<OpenLedger, 'database'> };
  readonly resolveHost: (host: string) => HostKind;
  readonly resolveVisitor: (client: string, day: string) => Visitor;
  readonly metrics: MeteringMetrics;
  /** Days for which uses are kept. */
  readonly keepDays: number;
  readonly now?: () => number;
}

/** The number of refused records, and the reasons. */
export interface Refusals {
  readonly count: number;
  readonly message: string;
}

type Reason = 'unreadable' | 'too_old' | 'in_the_future';

/** Returns a function that stores the records of a request, one sender at a time. Resolves once all are stored. @throws the driver's error */
export function createIntake(options: IntakeOptions): (sent: readonly SentLogs[]) => Promise<Refusals> {
  const now = options.now ?? Date.now;
  const retentionMs = Math.min(maxAgeDays, options.keepDays - 1) * 86_400_000;
  return async (sent) => {
    const refusals = new Map<Reason, string[]>();
    for (const { resource, records } of sent) {
      const gateway = identifyGateway(resource);
      const entries = records.flatMap((attributes) => {
        const record = readRecord(attributes);
        if ('wrong' in record) {
          addRefusal(refusals, 'unreadable', record.wrong.join(' and '));
          return [];
        }
        return [toEntry(gateway, record)];
      });
      if (entries.length > 0) await storeEntries(gateway, entries);
    }
    return summarizeRefusals(refusals);

    function toEntry(gateway: string, record: GatewayRecord): Entry {
      const { counter, startNs, endNs, isLost } = record;
      const entry = { counter, startNs, endNs, isLost };
      if (isLost) return { ...entry, event: undefined };
      const reason = findLateness(Number(startNs / nanosecond) - now(), retentionMs);
      if (reason !== undefined) {
        addRefusal(refusals, reason, `${counter.toString()} of ${formatTimestamp(startNs)}`);
        return { ...entry, event: undefined };
      }
      return { ...entry, event: toEvent(gateway, record) };
    }
  };

  async function storeEntries(gateway: string, entries: readonly Entry[]): Promise<void> {
    const { metrics } = options;
    const { added, withdrawn: back, runs } = await recordBatch(options.ledger.get().database, gateway, entries);
    const events = entries.flatMap(({ event }) => event ?? []);
    for (const event of events) metrics.events.inc({ class: event.class ?? 'use' });
    metrics.duplicates.inc(events.length - added);
    metrics.withdrawn.inc(back);
    metrics.runs.inc(runs);
  }

  function toEvent(gateway: string, record: GatewayRecord): Entry['event'] {
    const at = formatTimestamp(record.startNs);
    const host = options.resolveHost(record.host);
    const visitor = options.resolveVisitor(record.client, at.slice(0, 10));
    return {
      id: createEventId(gateway, record),
      at,
      kind: 'visit',
      class: classify(record, host, visitor),
      caller: visitor.hash,
      network: visitor.network,
      ...(host.kind === 'app' ? { app: host.app.slug } : {}),
      latencyMs: Math.round(Number(record.endNs - record.startNs) / 1e6),
      status: record.status,
      bytesIn: record.bytesIn,
      bytesOut: record.bytesOut,
    };
  }

  function addRefusal(refusals: Map<Reason, string[]>, reason: Reason, what: string): void {
    options.metrics.refused.inc({ reason });
    refusals.set(reason, [...(refusals.get(reason) ?? []), what]);
  }
}

/** `aheadMs`: how far the start of the request is ahead of now. */
function findLateness(aheadMs: number, keptMs: number): Reason | undefined {
  if (aheadMs > maxAheadMs) return 'in_the_future';
  return aheadMs < -keptMs ? 'too_old' : undefined;
}

const refusalTexts: Readonly<Record<Reason, string>> = {
  unreadable: 'unreadable (missing or wrong: ',
  too_old: `older than ${maxAgeDays} days, or than uses are kept (RequestCount `,
  in_the_future: 'more than 5 minutes ahead of the clock of this server (RequestCount ',
};
const maxNamed = 10;

function summarizeRefusals(refusals: ReadonlyMap<Reason, readonly string[]>): Refusals {
  const all = [...refusals];
  const parts = all.map(([reason, what]) => {
    const named = [...new Set(what)];
    const more = named.length > maxNamed ? ', …' : '';
    return `${what.length} ${refusalTexts[reason]}${named.slice(0, maxNamed).join(', ')}${more})`;
  });
  return { count: all.reduce((sum, [, { length }]) => sum + length, 0), message: parts.join('; ') };
}

/** A record with the event that it becomes; without one where it is refused for its time, or lost. */
export interface Entry extends Pick<GatewayRecord, 'counter' | 'startNs' | 'endNs' | 'isLost'> {
  readonly event: Omit<UsageEvent, 'instance'> | undefined;
}

export interface BatchResult {
  /** Number of new events. */
  readonly added: number;
  /** Number of requests that had been declared lost and arrived after all. */
  readonly withdrawn: number;
  /** Number of new runs. */
  readonly runs: number;
}

/** Stores a batch. Idempotent: a batch that is sent again changes nothing. @throws the driver's error */
export function recordBatch(database: Database, gateway: string, entries: readonly Entry[]): Promise<BatchResult> {
  return runAsTask(() =>
    database.transaction(async (transaction) => {
      await transaction.query(lockGateway, [gateway]);
      const first = entries.reduce((min, { startNs }) => (startNs < min ? startNs : min), entries[0]?.startNs ?? 0n);
      const knownRuns = await transaction.query(runs, [gateway, first.toString()]);
      const batches = assignRuns<Entry>(knownRuns, entries);
      const ids: bigint[] = [];
      for (const { after } of batches) ids.push(await ensureRun(transaction, gateway, after));
      const events = batches.flatMap(({ records }, index) =>
        records.flatMap(({ event }) => (event === undefined ? [] : [{ ...event, instance: ids[index] ?? 0n }])),
      );
      const added = await recordUses(transaction, events);
      let withdrawn = 0;
      for (const [index, batch] of batches.entries()) {
        const id = ids[index] ?? 0n;
        withdrawn += await updateRun(transaction, id, batch, added.get(id) ?? 0);
      }
      return {
        added: [...added.values()].reduce((sum, count) => sum + count, 0),
        withdrawn,
        runs: batches.filter(({ before }) => before === undefined).length,
      };
    }),
  );
}

async function ensureRun(transaction: Transaction, gateway: string, run: Run): Promise<bigint> {
  if (run.id !== undefined) return run.id;
  const [row] = await transaction.query(addRun, [gateway, ...toRunFields(run)]);
  if (row === undefined) throw new Error('the database returned no row');
  return row.id;
}

function toRunFields({ newest, newestStartNs, newestEndNs, lastEndNs }: Run): string[] {
  return [newest, newestStartNs, newestEndNs, lastEndNs].map(String);
}

/** @returns how many numbers came back that had been declared lost */
async function updateRun(transaction: Transaction, id: bigint, batch: RunBatch<Entry>, added: number): Promise<number> {
  const { before, after, records } = batch;
  const counters = formatCounters(records);
  const refused = formatCounters(records.filter(({ event }) => event === undefined));
  await transaction.query(saveRun, [id.toString(), ...toRunFields(after), counters, refused, added]);
  const gaps = findGaps(batch);
  if (gaps.length > 0)
    await transaction.query(addGaps, [
      id.toString(),
      gaps.map((gap) => formatMultirange([gap.counters])),
      gaps.map(({ afterNs }) => (afterNs === undefined ? null : formatTimestamp(afterNs))),
      gaps.map(({ beforeNs }) => formatTimestamp(beforeNs)),
    ]);
  const isLate = records.some(({ counter }) => counter <= (before?.newest ?? 0n));
  if (!isLate) return 0;
  const [row] = await transaction.query(fillGaps, [id.toString(), counters]);
  return row?.count ?? 0;
}

// Uses are recorded once: one that is sent twice has the same id.

/** A use that costs nothing by itself, such as a visit of an app, under the id that its source gave it. */
export interface UsageEvent {
  readonly id: string;
  /** What kind of use: app, visit. */
  readonly kind: string;
  /** A salted hash; never an address or a key. */
  readonly caller?: string;
  /** A salted hash of the network that a visitor is in. */
  readonly network?: string;
  /** When it was. Sent twice, it has the same id and the same time. */
  readonly at: Date | string;
  /** What kind of request a visit was; a use when left out. */
  readonly class?: string;
  readonly app?: string;
  readonly latencyMs?: number;
  /** Status that the client got. */
  readonly status?: number;
  readonly bytesIn?: number;
  readonly bytesOut?: number;
  /** The run of a gateway that counted it. */
  readonly instance?: bigint;
}

/**
 * Records uses: the one way in for what is not the use of a hold. @returns how many of them were not known before, by
 * instance.
 */
export async function recordUses(
  on: Pick<Transaction, 'query'>,
  events: readonly UsageEvent[],
): Promise<Map<bigint | undefined, number>> {
  if (events.length === 0) return new Map();
  const rows = await on.query(recordUsage, toColumns(events));
  return new Map(rows.map(({ instance, count }) => [instance ?? undefined, count]));
}

/** A list a column: what PostgreSQL reads fastest after COPY, and COPY cannot pass over what is known. */
function toColumns(events: readonly UsageEvent[]): string[] {
  const column = (of: (event: UsageEvent) => ArrayElement): string => formatArray(events.map(of));
  return [
    column(({ at }) => (typeof at === 'string' ? at : at.toISOString())),
    column(({ id }) => id),
    column(({ kind }) => kind),
    column((event) => event.class ?? 'use'),
    column(({ caller }) => caller),
    column(({ app }) => app),
    column(({ latencyMs }) => latencyMs),
    column(({ status }) => status),
    column(({ bytesIn }) => bytesIn),
    column(({ bytesOut }) => bytesOut),
    column(({ instance }) => instance),
    column(({ network }) => network),
  ];
}

type ArrayElement = string | number | bigint | undefined;

/**
 * A list as PostgreSQL writes an array, like `{1,2,NULL}` or `{"a","b \"c\""}`. The drivers do it too, but inspect each element
 * in many ways; for long lists that is most of what a statement takes here.
 */
export function formatArray(elements: readonly ArrayElement[]): string {
  return `{${elements.map(formatElement).join(',')}}`;
}

function formatElement(element: ArrayElement): string {
  if (element === undefined) return 'NULL';
  if (typeof element !== 'string') return String(element);
  return `"${/["\\]/.test(element) ? element.replaceAll(/["\\]/g, '\\$&') : element}"`;
}

/** Declares losses and sums up uses, again and again. */
export function startUsageTasks(ledger: OpenLedger, graceMs: number, log: Logger): void {
  const { database } = ledger;
  ledger.repeat('declare losses', Math.max(1_000, Math.min(30_000, graceMs)), async () => {
    const [row] = await database.replay(declareLosses, [graceMs]);
    if ((row?.count ?? 0) > 0) log.warn({ requests: row?.count }, 'requests that a gateway counted are lost');
    return 0;
  });
  ledger.repeat('sum up uses', 300_000, async () => {
    await database.transaction(
      async (transaction) => {
        await transaction.script('set local statement_timeout = 0');
        await rollUpUses(transaction);
      },
      { lasting: true },
    );
    return 0;
  });
}

/** Updates the sums of uses by hour and day. Runs in the caller's transaction, which must lift the statement timeout. */
export async function rollUpUses(transaction: Transaction): Promise<void> {
  await transaction.query(rollUp, []);
}

const defineStatement = prefixStatements('metering');

const bigintText = z.string().transform(BigInt);
const countRow = z.object({ count: z.coerce.number() });

const recordUsage = defineStatement(
  'record-usage',
  `with added as (
    insert into ledger.usage (at, id, kind, class, caller, app, latency_ms, status, bytes_in, bytes_out, instance, network, cost_source)
    select e.*, 'none' from unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::smallint[],
      $9::bigint[], $10::bigint[], $11::bigint[], $12::text[]) as e
    on conflict (at, id) do nothing returning instance
  ) select instance::text, count(*)::int as count from added group by instance`,
  z.object({ instance: z.string().transform(BigInt).nullable(), count: z.number() }),
);

/** Serializes the batches of one gateway. A separate statement, so that the next one sees what the previous batch wrote. */
const lockGateway = defineStatement(
  'lock',
  "select pg_advisory_xact_lock(hashtextextended('metering ' || $1, 0)) is null as locked",
  z.unknown(),
);

/** The newest run, and those that ended after $2. */
export const runs = defineStatement(
  'runs',
  `select id::text, newest::text, newest_start_ns::text, newest_end_ns::text, last_end_ns::text from metering.instance
    where gateway = $1 and (last_end_ns >= $2 or id = (select max(id) from metering.instance where gateway = $1)) order by id`,
  z
    .object({
      id: bigintText,
      newest: bigintText,
      newest_start_ns: bigintText,
      newest_end_ns: bigintText,
      last_end_ns: bigintText,
    })
    .transform((row) => ({
      id: row.id,
      newest: row.newest,
      newestStartNs: row.newest_start_ns,
      newestEndNs: row.newest_end_ns,
      lastEndNs: row.last_end_ns,
    })),
);

const addRun = defineStatement(
  'add-run',
  'insert into metering.instance (gateway, newest, newest_start_ns, newest_end_ns, last_end_ns) values ($1, $2, $3, $4, $5) returning id::text',
  z.object({ id: bigintText }),
);

const saveRun = defineStatement(
  'update-run',
  `update metering.instance set newest = $2, newest_start_ns = $3, newest_end_ns = $4, last_end_ns = $5,
      counters = counters + $6::int8multirange, refused = refused + $7::int8multirange, events = events + $8, last_received_at = clock_timestamp()
    where id = $1`,
  z.unknown(),
);

const fillGaps = defineStatement('fill', 'select metering.fill($1, $2::int8multirange)::text as count', countRow);

const addGaps = defineStatement(
  'add-gaps',
  `insert into metering.gap (instance, counters, after_at, before_at)
    select $1, c::int8multirange, a, b from unnest($2::text[], $3::timestamptz[], $4::timestamptz[]) as g (c, a, b)`,
  z.unknown(),
);

export const declareLosses = defineStatement('losses', 'select metering.declare_losses($1)::text as count', countRow);

export const rollUp = defineStatement('roll-up', 'select metering.roll_up_new() as count', countRow);

/** What the metrics show. */
export const requestTotals = defineStatement(
  'standing',
  `select coalesce(sum(missing), 0)::text as missing, coalesce(sum(lost), 0)::text as lost, coalesce(sum(abs(difference)), 0)::text as difference
    from metering.reconciliation`,
  z.object({ missing: z.coerce.number(), lost: z.coerce.number(), difference: z.coerce.number() }),
);
