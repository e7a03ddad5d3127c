// Uses of metered calls against what the ledger has settled for them, kind by kind and call by call.
import { z } from 'zod';
import { formatMoney, money, type Statement, type Transaction, zero } from '../../../billing/index.ts';
import {
  addSums,
  type Comparison,
  type Day,
  type Difference,
  type Line,
  negateSum,
  subtract,
  type Sum,
  zeroSum,
} from '../comparison.ts';
import { type ApartKind, type LineName } from '../result.ts';

const kinds = ['ask', 'compare', 'v1', 'tool', 'app', 'model'] as const satisfies readonly LineName[];
const bigint = z.coerce.number().int();
const kind = z.enum(kinds);

/** What a call is, in one word: as it should be, apart, or what is wrong with it. */
const callVerdicts = `select *, case
    when state in ('open', 'pending', 'expired') and use_cost is null then case state when 'open' then 'open' else 'pending' end
    when state = 'abandoned' and use_cost is null then 'abandoned'
    when booked is null and use_cost is null then 'none'
    when booked is null then 'not_booked'
    when state is null then 'no_hold'
    when not is_used then case when is_late then 'late_without_use' else 'no_use' end
    when use_cost is null then 'no_use'
    when use_cost <> booked then 'cost_differs'
    when hold_cost is distinct from booked then 'hold_differs'
    else 'equal' end as verdict
  from reconciliation.calls($1, $2)`;

const sumsByKind: Statement<{
  kind: z.output<typeof kind>;
  uses: number;
  used: z.output<typeof money>;
  settlements: number;
  settled: z.output<typeof money>;
}> = {
  name: 'reconciliation-calls',
  text: `select kind, count(use_cost)::text as uses, coalesce(sum(use_cost), 0)::text as used,
      count(booked)::text as settlements, coalesce(sum(booked), 0)::text as settled
    from reconciliation.calls($1, $2) group by kind`,
  row: z.object({ kind, uses: bigint, used: money, settlements: bigint, settled: money }),
};

const apartSums: Statement<{ kind: ApartKind; events: number; usd: z.output<typeof money> }> = {
  name: 'reconciliation-apart',
  text: `select verdict as kind, count(*)::text as events, coalesce(sum(held), 0)::text as usd
    from (${callVerdicts}) c where verdict in ('open', 'pending', 'abandoned') group by 1 order by 1`,
  row: z.object({ kind: z.enum(['open', 'pending', 'abandoned']), events: bigint, usd: money }),
};

const faultKinds = ['not_booked', 'no_hold', 'late_without_use', 'no_use', 'cost_differs', 'hold_differs'] as const;
const faults: Statement<{
  id: string;
  verdict: (typeof faultKinds)[number];
  used: z.output<typeof money> | null;
  booked: z.output<typeof money> | null;
}> = {
  name: 'reconciliation-call-faults',
  text: `select id, verdict, use_cost::text as used, booked::text from (${callVerdicts}) c
    where verdict in (${faultKinds.map((name) => `'${name}'`).join(', ')}) order by id`,
  row: z.object({ id: z.string(), verdict: z.enum(faultKinds), used: money.nullable(), booked: money.nullable() }),
};

/** Settlements whose hold is gone, and whose use is not there either, or it would have been found by that. */
const orphans: Statement<{ reference: string; amount: z.output<typeof money> }> = {
  name: 'reconciliation-orphans',
  text: `select t.reference, e.amount::text from ledger.transaction t join ledger.entry e on e.transaction_id = t.id and e.line = 1
    where t.kind = 'settle' and t.at >= $1 and t.at < $2 and not exists (select from ledger.hold h where h.transaction_id = t.id)
      and not exists (select from ledger.usage u where 'settle:' || u.id = t.reference and u.kind <> 'visit'
        and u.at >= $1::timestamptz - interval '1 day' and u.at < $2) order by 1`,
  row: z.object({ reference: z.string(), amount: money }),
};

/** Calls that the platform paid more for than was reserved. Both sides agree on them, so they change no sum. */
const overruns: Statement<{
  id: string;
  held: z.output<typeof money>;
  cost: z.output<typeof money>;
  model: string | null;
}> = {
  name: 'reconciliation-overruns',
  text: `select hold_id::text as id, held::text, cost::text, model from ledger.overrun where called_at >= $1 and called_at < $2 order by 1`,
  row: z.object({ id: z.string(), held: money, cost: money, model: z.string().nullable() }),
};

const retention: Statement<{ is_kept: boolean }> = {
  name: 'reconciliation-kept',
  // One more day than uses: holds go hour by hour, and what was settled early in a day was held on the day before.
  text: "select ($1::timestamptz at time zone 'utc')::date > kept_from + 1 as is_kept from metering.progress",
  row: z.object({ is_kept: z.boolean() }),
};

export async function compareLedger(transaction: Transaction, { from, to }: Day): Promise<Comparison> {
  const [isKept] = await transaction.query(retention, [from]);
  if (isKept?.is_kept !== true)
    return {
      name: 'ledger',
      lines: [],
      differences: [],
      notKnown: 'The single uses and holds of this day are no longer kept.',
    };
  const byKind = await transaction.query(sumsByKind, [from, to]);
  const orphaned = await transaction.query(orphans, [from, to]);
  const aboveHold = (await transaction.query(overruns, [from, to])).map(({ id, held, cost, model }): Difference => ({
    kind: 'above_hold',
    subject: id,
    ...zeroSum,
    detail: `${model ?? 'a model'}: cost ${formatMoney(cost)} USD, ${formatMoney(held)} reserved`,
  }));
  const lines = kinds.flatMap((name): Line[] => {
    const row = byKind.find((one) => one.kind === name);
    if (row === undefined) return [];
    const left = { events: row.uses, usd: row.used };
    const right = { events: row.settlements, usd: row.settled };
    return left.events + right.events === 0 ? [] : [{ name, left, right }];
  });
  const mismatches = (await transaction.query(faults, [from, to])).map(({ id, verdict, used, booked }): Difference => ({
    kind: verdict,
    subject: id,
    ...subtract(toSum(used), toSum(booked)),
  }));
  return {
    name: 'ledger',
    lines: [...lines, ...toOrphanLines(orphaned.map(({ amount }) => toSum(amount)))],
    differences: [
      ...mismatches,
      ...aboveHold,
      ...orphaned.map(({ reference, amount }): Difference => ({
        kind: 'no_hold',
        subject: reference,
        ...negateSum(toSum(amount)),
      })),
    ],
    apart: await transaction.query(apartSums, [from, to]),
  };
}

function toSum(amount: z.output<typeof money> | null): Sum {
  return { events: amount === null ? 0 : 1, usd: amount ?? zero };
}

/** Settlements of which no kind is known any more. */
function toOrphanLines(settled: readonly Sum[]): Line[] {
  return settled.length === 0 ? [] : [{ name: 'model', of: 'without a hold', left: zeroSum, right: addSums(settled) }];
}
