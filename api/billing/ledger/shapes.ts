// What the ledger's SQL functions answer, checked and turned into our own types.
import { z } from 'zod';
import { money } from './money.ts';

const time = z.coerce.date();

const budget = z.object({ limit: money.nullable(), used: money, held: money });
/** One limited account after the call; limit is null where none was given. */
export type Budget = z.output<typeof budget>;

/** A call of today cost more than was reserved for it. */
const stopReasons = ['stopped_caller', 'stopped_model'] as const;
/** Others have to be settled first. */
const flightReasons = ['in_flight_caller', 'in_flight_all', 'in_flight_model'] as const;
export type StopReason = (typeof stopReasons)[number];
export type FlightReason = (typeof flightReasons)[number];

export const reserveAnswers = z.object({
  answers: z.array(
    z.object({
      outcome: z
        .enum(['held', 'refused', 'replayed', 'conflict'])
        .transform((outcome) => (outcome === 'held' ? 'reserved' : outcome)),
      refused_by: z.enum(['debit', 'credit', 'network', ...stopReasons, ...flightReasons]).nullable(),
      state: z.string().nullable(),
      expires_at: time.nullable(),
      day_ends_at: time,
      debit: budget.nullable(),
      credit: budget.nullable(),
    }),
  ),
});
export type ReserveAnswer = z.output<typeof reserveAnswers>['answers'][number];

/** Whether a call has to wait for others. */
export function isFlightReason(reason: ReserveAnswer['refused_by']): reason is FlightReason {
  return flightReasons.some((one) => one === reason);
}

export function isStopReason(reason: ReserveAnswer['refused_by']): reason is StopReason {
  return stopReasons.some((one) => one === reason);
}

/** The verb is release in every layer but the stored states, which say voided. */
const renameVoided = <Outcome extends string>(outcome: Outcome): Exclude<Outcome, 'voided'> | 'released' =>
  outcome === 'voided' ? 'released' : (outcome as Exclude<Outcome, 'voided'>);

const state = z.enum(['open', 'pending', 'settled', 'voided', 'expired', 'abandoned']).transform(renameVoided);
export type HoldState = z.output<typeof state>;

export const settleAnswers = z.object({
  answers: z.array(
    z.discriminatedUnion('outcome', [
      z.object({ outcome: z.literal('unknown') }),
      z.object({
        outcome: z.enum(['settled', 'replayed']),
        was: state,
        cost: money,
        held: money,
        debit: budget.nullable(),
      }),
    ]),
  ),
});
export type SettleAnswer = z.output<typeof settleAnswers>['answers'][number];

const releaseOutcome = z.enum(['voided', 'replayed', 'unknown', 'settled', 'abandoned']).transform(renameVoided);
export type ReleaseOutcome = z.output<typeof releaseOutcome>;
export const releaseAnswers = z.object({ answers: z.array(z.object({ outcome: releaseOutcome })) });

const pendOutcome = z.enum(['pending', 'settled', 'abandoned', 'unknown']);
export type PendOutcome = z.output<typeof pendOutcome>;
export const pendAnswer = z.object({ answer: z.object({ outcome: pendOutcome }) });

export const pendingAnswers = z.object({
  answers: z.array(
    z.object({
      hold: z.string(),
      reason: z.enum(['missing', 'expired']),
      reference: z.string().nullable(),
      attempts: z.number().int(),
      since: time,
      called_at: time,
      held: money,
      estimate: money,
    }),
  ),
});
/**
 * A call whose cost is not known; reference is the router's own id of it, where known. `held` is the maximum that it can
 * cost, `estimate` what it is settled at if its cost is never found.
 */
export type PendingCost = z.output<typeof pendingAnswers>['answers'][number];

export const postAnswer = z.object({
  answer: z.object({
    outcome: z
      .enum(['booked', 'replayed', 'conflict'])
      .transform((outcome) => (outcome === 'booked' ? 'posted' : outcome)),
    id: z.string(),
  }),
});
export type PostOutcome = z.output<typeof postAnswer>['answer']['outcome'];
