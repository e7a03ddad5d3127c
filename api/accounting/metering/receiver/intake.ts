// What becomes of the records that a sender sends: read, classed, named, kept or refused by name.
import type { Database } from '../../../billing/index.ts';
import type { SentLogs } from '../otlp/messages.ts';
import { classify, type HostKind } from '../records/class.ts';
import { eventId, gatewayOf, type GatewayRecord, readRecord, timestampOf } from '../records/record.ts';
import type { Visitor } from '../records/visitors.ts';
import type { MeteringMetrics } from '../metrics.ts';
import { type Entry, recordBatch } from '../store/store.ts';

/** Records that began so long ago may have been dropped with their day, and could be counted again. */
export const horizonDays = 35;
const futureMs = 5 * 60_000;
const nanosecond = 1_000_000n;

export interface IntakeOptions {
  readonly database: () => Database;
  readonly hostOf: (host: string) => HostKind;
  readonly visitorOf: (client: string, day: string) => Visitor;
  readonly metrics: MeteringMetrics;
  /** Days for which uses are kept. */
  readonly keepDays: number;
  readonly now?: () => number;
}

/** How many records were refused, and why. */
export interface Refusals {
  readonly count: number;
  readonly message: string;
}

type Reason = 'unreadable' | 'too_old' | 'in_the_future';

/** Takes what a request sent, a sender after the other. Resolves once all of it is kept. @throws the driver's error */
export function createIntake(options: IntakeOptions): (sent: readonly SentLogs[]) => Promise<Refusals> {
  const now = options.now ?? Date.now;
  const keptMs = Math.min(horizonDays, options.keepDays - 1) * 86_400_000;
  return async (sent) => {
    const refusals = new Map<Reason, string[]>();
    for (const { resource, records } of sent) {
      const gateway = gatewayOf(resource);
      const entries = records.flatMap((given) => {
        const record = readRecord(given);
        if ('wrong' in record) {
          note(refusals, 'unreadable', record.wrong.join(' and '));
          return [];
        }
        return [entryOf(gateway, record)];
      });
      if (entries.length > 0) await keep(gateway, entries);
    }
    return summary(refusals);

    function entryOf(gateway: string, record: GatewayRecord): Entry {
      const { counter, startNs, endNs, isLost } = record;
      const entry = { counter, startNs, endNs, isLost };
      if (isLost) return { ...entry, event: undefined };
      const late = lateness(Number(startNs / nanosecond) - now(), keptMs);
      if (late !== undefined) {
        note(refusals, late, `${counter.toString()} of ${timestampOf(startNs)}`);
        return { ...entry, event: undefined };
      }
      return { ...entry, event: eventOf(gateway, record) };
    }
  };

  async function keep(gateway: string, entries: readonly Entry[]): Promise<void> {
    const { metrics } = options;
    const { added, back, runs } = await recordBatch(options.database(), gateway, entries);
    const events = entries.flatMap(({ event }) => event ?? []);
    for (const event of events) metrics.events.inc({ class: event.class ?? 'use' });
    metrics.duplicates.inc(events.length - added);
    metrics.back.inc(back);
    metrics.runs.inc(runs);
  }

  function eventOf(gateway: string, record: GatewayRecord): Entry['event'] {
    const at = timestampOf(record.startNs);
    const host = options.hostOf(record.host);
    const visitor = options.visitorOf(record.client, at.slice(0, 10));
    return {
      id: eventId(gateway, record),
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

  function note(refusals: Map<Reason, string[]>, reason: Reason, what: string): void {
    options.metrics.refused.inc({ reason });
    refusals.set(reason, [...(refusals.get(reason) ?? []), what]);
  }
}

/** `aheadMs`: how far the beginning is ahead of now. */
function lateness(aheadMs: number, keptMs: number): Reason | undefined {
  if (aheadMs > futureMs) return 'in_the_future';
  return aheadMs < -keptMs ? 'too_old' : undefined;
}

const words: Readonly<Record<Reason, string>> = {
  unreadable: 'unreadable (missing or wrong: ',
  too_old: `older than ${horizonDays} days, or than uses are kept (RequestCount `,
  in_the_future: 'more than 5 minutes ahead of the clock of this server (RequestCount ',
};
const namedAtMost = 10;

function summary(refusals: ReadonlyMap<Reason, readonly string[]>): Refusals {
  const all = [...refusals];
  const parts = all.map(([reason, what]) => {
    const named = [...new Set(what)];
    const more = named.length > namedAtMost ? ', …' : '';
    return `${what.length} ${words[reason]}${named.slice(0, namedAtMost).join(', ')}${more})`;
  });
  return { count: all.reduce((sum, [, { length }]) => sum + length, 0), message: parts.join('; ') };
}
