// Writes a batch of records of one gateway: its events, its runs and what is missing, in one transaction.
import { type Database, recordUses, runAsTask, type Transaction, type UsageEvent } from '../../../billing/index.ts';
import { type GatewayRecord, timestampOf } from '../records/record.ts';
import { multirange } from './ranges.ts';
import { assignRuns, countersOf, gapsOf, type Run, type RunBatch } from './runs.ts';
import * as statements from './statements.ts';

/** A record with the event that it becomes; without one where it is refused for its time, or lost. */
export interface Entry extends Pick<GatewayRecord, 'counter' | 'startNs' | 'endNs' | 'isLost'> {
  readonly event: Omit<UsageEvent, 'instance'> | undefined;
}

export interface BatchResult {
  /** Events that were not known before. */
  readonly added: number;
  /** Requests that had been declared lost, and came after all. */
  readonly back: number;
  /** Runs of the gateway that were not known before. */
  readonly runs: number;
}

/** Once it returns, the batch is kept; a batch that is sent again changes nothing. @throws the driver's error */
export function recordBatch(database: Database, gateway: string, entries: readonly Entry[]): Promise<BatchResult> {
  return runAsTask(() =>
    database.transaction(async (transaction) => {
      await transaction.query(statements.lockGateway, [gateway]);
      const first = entries.reduce((min, { startNs }) => (startNs < min ? startNs : min), entries[0]?.startNs ?? 0n);
      const known = await transaction.query(statements.runs, [gateway, first.toString()]);
      const batches = assignRuns<Entry>(known, entries);
      const ids: bigint[] = [];
      for (const { after } of batches) ids.push(await idOf(transaction, gateway, after));
      const events = batches.flatMap(({ records }, index) =>
        records.flatMap(({ event }) => (event === undefined ? [] : [{ ...event, instance: ids[index] ?? 0n }])),
      );
      const added = await recordUses(transaction, events);
      let back = 0;
      for (const [index, batch] of batches.entries()) {
        const id = ids[index] ?? 0n;
        back += await updateRun(transaction, id, batch, added.get(id) ?? 0);
      }
      return {
        added: [...added.values()].reduce((sum, count) => sum + count, 0),
        back,
        runs: batches.filter(({ before }) => before === undefined).length,
      };
    }),
  );
}

async function idOf(transaction: Transaction, gateway: string, run: Run): Promise<bigint> {
  if (run.id !== undefined) return run.id;
  const [row] = await transaction.query(statements.addRun, [gateway, ...fieldsOf(run)]);
  if (row === undefined) throw new Error('the database returned no row');
  return row.id;
}

function fieldsOf({ newest, newestStartNs, newestEndNs, lastEndNs }: Run): string[] {
  return [newest, newestStartNs, newestEndNs, lastEndNs].map(String);
}

/** @returns how many numbers came back that had been declared lost */
async function updateRun(transaction: Transaction, id: bigint, batch: RunBatch<Entry>, added: number): Promise<number> {
  const { before, after, records } = batch;
  const counters = countersOf(records);
  const refused = countersOf(records.filter(({ event }) => event === undefined));
  await transaction.query(statements.updateRun, [id.toString(), ...fieldsOf(after), counters, refused, added]);
  const gaps = gapsOf(batch);
  if (gaps.length > 0)
    await transaction.query(statements.addGaps, [
      id.toString(),
      gaps.map((gap) => multirange([gap.counters])),
      gaps.map(({ afterNs }) => (afterNs === undefined ? null : timestampOf(afterNs))),
      gaps.map(({ beforeNs }) => timestampOf(beforeNs)),
    ]);
  const isLate = records.some(({ counter }) => counter <= (before?.newest ?? 0n));
  if (!isLate) return 0;
  const [row] = await transaction.query(statements.fill, [id.toString(), counters]);
  return row?.count ?? 0;
}
