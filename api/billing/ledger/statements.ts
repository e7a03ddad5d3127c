// The ledger's statements: one round trip each, parsed once per connection, answers checked and turned into our own types.
import { z } from 'zod';
import { money } from './money.ts';
import { prefixStatements } from '../database/database.ts';

const time = z.coerce.date();

const limitedBudget = z.object({ limit: money.nullable(), used: money, held: money });
/** One limited account after the call; limit is null where none was given. */
export type Budget = z.output<typeof limitedBudget>;

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
      debit: limitedBudget.nullable(),
      credit: limitedBudget.nullable(),
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
        debit: limitedBudget.nullable(),
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

const defineStatement = prefixStatements('ledger');

const nothing = z.unknown();
/** numeric and bigint come as text from both drivers, so they are cast to text or int where they are selected. */
const today = 'ledger.account_day($3, coalesce($4::timestamptz, clock_timestamp()))';
const theAccount = `(select id from ledger.account where kind = $1 and owner = $2 and day = ${today})`;

// Here the three verbs meet SQL, where reserve is ledger.hold and release is ledger.void. The functions keep their names:
// while replicas are replaced, older ones still call them.
export const reserve = defineStatement('reserve', 'select ledger.hold($1::jsonb, $2) as answers', reserveAnswers);
/** Where a request names networks. */
export const reserveInNetworks = defineStatement(
  'reserve-in-networks',
  'select ledger.hold_in_networks($1::jsonb, $2) as answers',
  reserveAnswers,
);
/** The same where a request is a call that is limited by more than money. */
export const reserveCalls = defineStatement(
  'reserve-calls',
  'select ledger.reserve($1::jsonb, $2) as answers',
  reserveAnswers,
);
export const settle = defineStatement('settle', 'select ledger.settle($1::jsonb, $2) as answers', settleAnswers);
export const release = defineStatement('release', 'select ledger.void($1::uuid[], $2) as answers', releaseAnswers);
export const releaseToolHolds = defineStatement(
  'release-tools',
  `select ledger.void(array(
    select p.hold_id from ledger.pending p join ledger.hold h on h.id = p.hold_id join ledger.account a on a.id = h.credit
    where a.kind in ('tool', 'revenue', 'margin') and p.abandoned_at is null order by p.hold_id limit 500), $1) as answers`,
  releaseAnswers,
);
export const pend = defineStatement(
  'pend',
  'select ledger.pend_at_estimate($1, $2, $3::jsonb, $4, $5, $6::numeric) as answer',
  pendAnswer,
);
export const expire = defineStatement(
  'expire',
  'select ledger.expire($1, $2) as count',
  z.object({ count: z.number().int() }),
);
export const claimPending = defineStatement(
  'claim',
  'select ledger.claim_pending($1, $2, $3) as answers',
  pendingAnswers,
);
export const deferPending = defineStatement('defer', 'select ledger.defer_pending($1, $2, $3, $4)', nothing);
export const post = defineStatement('post', 'select ledger.post($1, $2, $3::jsonb, $4) as answer', postAnswer);

export const balance = defineStatement(
  'balance',
  `select coalesce(sum(amount), 0)::text as balance from ledger.entry where account_id = ${theAccount}`,
  z.object({ balance: money }),
);

export const budget = defineStatement(
  'budget',
  `select coalesce(abs(max(balance)), 0)::text as used, coalesce(max(held), 0)::text as held from ledger.budget where account_id = ${theAccount}`,
  z.object({ used: money, held: money }),
);

export const appBudgets = defineStatement(
  'app-budgets',
  `select a.owner as app, a.day::text as day, abs(b.balance)::text as used
    from ledger.budget b join ledger.account a on a.id = b.account_id
    where a.kind = 'app' and a.day >= (coalesce($1::timestamptz, clock_timestamp()) at time zone 'utc')::date - 1`,
  z.object({ app: z.string(), day: z.string(), used: money }),
);

export const overruns = defineStatement(
  'overruns',
  `select count(*)::int as calls, coalesce(sum(cost - held), 0)::text as excess from ledger.overrun
    where day = (coalesce($1::timestamptz, clock_timestamp()) at time zone 'utc')::date and lifted_at is null`,
  z.object({ calls: z.number(), excess: money }),
);
export const counts = defineStatement(
  'counts',
  `select (select count(*)::int from ledger.hold where state = 'open') as open,
    (select count(*)::int from ledger.pending where abandoned_at is null) as pending,
    (select count(*)::int from ledger.pending where abandoned_at is not null) as abandoned`,
  z.object({ open: z.number(), pending: z.number(), abandoned: z.number() }),
);

export const oldestPending = defineStatement(
  'oldest-pending',
  `select coalesce(greatest(extract(epoch from coalesce($1::timestamptz, clock_timestamp()) - min(since)), 0), 0)::float8 as seconds
    from ledger.pending where abandoned_at is null`,
  z.object({ seconds: z.number() }),
);

export const purgeDetail = defineStatement(
  'purge-detail',
  `with networks as (delete from ledger.network_use where day < (coalesce($1::timestamptz, clock_timestamp()) - interval '2 days')::date),
  payers as (delete from ledger.proven_payer where at < coalesce($1::timestamptz, clock_timestamp()) - interval '2 days')
  select ledger.purge_detail(coalesce($1::timestamptz, clock_timestamp()) - $2 * interval '1 day', $3) as count`,
  z.object({ count: z.number().int() }),
);

export const audit = defineStatement('audit', 'select fault from ledger.audit()', z.object({ fault: z.string() }));

export const imbalance = defineStatement(
  'imbalance',
  'select coalesce(sum(amount), 0)::text as total from ledger.entry',
  z.object({ total: money }),
);
export const ping = defineStatement('ping', 'select 1 as one', nothing);

export const beginRequest = defineStatement(
  'begin-request',
  'select ledger.begin_request($1, $2, $3, $4, $5, $6, $7) as answer',
  z.object({
    answer: z.discriminatedUnion('outcome', [
      z.object({ outcome: z.literal('begun') }),
      z.object({ outcome: z.literal('mismatch') }),
      z.object({ outcome: z.literal('in_flight'), lease_until: z.coerce.date() }),
      z.object({ outcome: z.literal('answered'), response: z.unknown() }),
    ]),
  }),
);
export const finishRequest = defineStatement(
  'finish-request',
  'update ledger.idempotency set response = $4::json where scope = $1 and key = $2 and owner = $3 and response is null',
  nothing,
);
export const noteKeyedCall = defineStatement(
  'note-keyed-call',
  'select ledger.note_keyed_call($1, $2, $3, $4, $5, $6)::text as retry_of',
  z.object({ retry_of: z.string().nullable() }),
);
export const forgetRequest = defineStatement(
  'forget-request',
  'delete from ledger.idempotency where scope = $1 and key = $2 and owner = $3 and response is null',
  nothing,
);
export const trimRequests = defineStatement(
  'trim-requests',
  `delete from ledger.idempotency where scope = $1 and key in (
    select key from (select key, row_number() over newest as n, sum(pg_column_size(response)) over newest as bytes
      from ledger.idempotency where scope = $1 and response is not null window newest as (order by expires_at desc, key)) kept
    where n > $2::int or bytes > $3::bigint)`,
  nothing,
);
export const purgeRequests = defineStatement(
  'purge-requests',
  `with calls as (delete from ledger.keyed_call where hold_id in
    (select hold_id from ledger.keyed_call where at <= coalesce($1::timestamptz, clock_timestamp()) - interval '400 days' limit 1000)),
  gone as (delete from ledger.idempotency where (scope, key) in
    (select scope, key from ledger.idempotency where expires_at <= coalesce($1::timestamptz, clock_timestamp()) limit 1000 for update skip locked) returning 1)
  select count(*)::int as count from gone`,
  z.object({ count: z.number() }),
);

export const dropDays = defineStatement(
  'drop-days',
  "select metering.drop_days(coalesce($1::timestamptz, clock_timestamp()) - $2 * interval '1 day') as count",
  z.object({ count: z.number().int() }),
);
export const makeDays = defineStatement(
  'make-days',
  'select ledger.make_days($1, $2) as count',
  z.object({ count: z.number().int() }),
);
