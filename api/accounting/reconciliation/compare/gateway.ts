// Requests that gateways counted against the uses recorded of them, run by run of a gateway.
import { z } from 'zod';
import type { Statement, Transaction } from '../../../billing/index.ts';
import { type Comparison, counted, type Difference } from '../comparison.ts';
import type { Day } from '../day.ts';

const bigint = z.coerce.number().int();

/** Runs that were heard of in the day. Their figures are of the whole run: a gateway's counter knows no days. */
const runs: Statement<{
  instance: string;
  gateway: string;
  counted: number;
  events: number;
  refused: number;
  missing: number;
  lost: number;
  difference: number;
}> = {
  name: 'reconciliation-runs',
  text: `select r.instance::text, r.gateway, r.counted::text, r.events::text, r.refused::text, r.missing::text, r.lost::text, r.difference::text
    from metering.reconciliation r join metering.instance i on i.id = r.instance
    where i.last_received_at >= $1 and i.first_received_at < $2 order by i.id`,
  row: z.object({
    instance: z.string(),
    gateway: z.string(),
    counted: bigint,
    events: bigint,
    refused: bigint,
    missing: bigint,
    lost: bigint,
    difference: bigint,
  }),
};

const losses: Statement<{
  instance: string;
  first: string;
  last: string;
  requests: number;
  after_at: Date;
  before_at: Date;
}> = {
  name: 'reconciliation-losses',
  text: `select l.instance::text, l.first::text, l.last::text, l.requests::text, l.after_at, l.before_at
    from metering.loss l where l.instance = any ($1::bigint[]) and l.before_at >= $2 and l.before_at < $3 order by l.gap, l.first`,
  row: z.object({
    instance: z.string(),
    first: z.string(),
    last: z.string(),
    requests: bigint,
    after_at: z.date(),
    before_at: z.date(),
  }),
};

export async function compareGateway(transaction: Transaction, { from, to }: Day): Promise<Comparison> {
  const found = await transaction.query(runs, [from, to]);
  const lost = await transaction.query(losses, [found.map(({ instance }) => instance), from, to]);
  return {
    name: 'gateway',
    lines: found.map((run) => ({
      name: 'run',
      of: nameOf(run),
      left: counted(run.counted),
      right: counted(run.events),
    })),
    differences: found.flatMap((run) => {
      const ofRun = lost.filter(({ instance }) => instance === run.instance);
      const before = run.lost - ofRun.reduce((sum, { requests }) => sum + requests, 0);
      return [
        ...ofRun.map((loss): Difference => ({
          kind: 'lost',
          subject: `${nameOf(run)}, requests ${loss.first} to ${loss.last}`,
          detail: `between ${loss.after_at.toISOString()} and ${loss.before_at.toISOString()}`,
          ...counted(loss.requests),
        })),
        ...some('lost_before', run, before),
        ...some('missing', run, run.missing),
        ...some('refused', run, run.refused),
        ...some('unaccounted_requests', run, run.difference),
      ];
    }),
  };
}

function some(kind: Difference['kind'], run: { gateway: string; instance: string }, events: number): Difference[] {
  return events === 0 ? [] : [{ kind, subject: nameOf(run), ...counted(events) }];
}

function nameOf({ gateway, instance }: { gateway: string; instance: string }): string {
  return `${gateway}, run ${instance}`;
}
