// What callers read about money: the kinds of problems, and their quota: in headers of every response, as a hint when it runs low, as a
// problem when it is exhausted.
import { z } from 'zod';
import { type ProblemType, Problem } from '../../lib/problem.ts';
import type { ReserveAnswer } from './ledger/statements.ts';
import { formatMoney, formatUsd, type Money } from './ledger/money.ts';
import type { LimitedAccount } from './ledger/ledger.ts';
import type { Payer } from './ledger/accounts.ts';

export const quotaExhausted: ProblemType = {
  slug: 'quota-exhausted',
  status: 402,
  title: 'Quota exceeded',
  description:
    'A call is made only if the quota covers its maximum cost. `quota` shows the limit, the used amount, and when it resets. ' +
    '`actions` lists the ways to continue: with your own API key, with a smaller or cheaper call, or after the reset.',
};

export const callsStopped: ProblemType = {
  slug: 'calls-stopped',
  status: 503,
  title: 'Calls are stopped for today',
  description:
    'A call cost this installation more than its computed maximum, so its caller and its model are stopped until the end of the day (UTC). `stopped` says which of the two applies. Calls with your own API key for the model router are not stopped.',
};

export const callsInFlight: ProblemType = {
  slug: 'calls-in-flight',
  status: 429,
  title: 'Too many calls in progress',
  description:
    "The number of concurrent model calls with this installation's key is limited, per caller and in total. A caller's second call of a day waits until the first one has ended. Try again after the number of seconds in Retry-After, or send your own API key for the model router.",
};

export const ledgerUnavailable: ProblemType = {
  slug: 'ledger-unavailable',
  status: 503,
  title: 'Ledger unavailable',
  description:
    'A call that cannot be recorded in the ledger is not made, so nothing was charged. Try again after the number of seconds in Retry-After.',
};

export const ledgerUnconfigured: ProblemType = {
  slug: 'ledger-unconfigured',
  status: 503,
  title: 'No ledger is configured',
  description:
    'Charged calls are recorded in a ledger, and this installation has no database for it. `detail` names the missing setting. Calls that are free of charge work without a ledger.',
};

export const idempotencyInFlight: ProblemType = {
  slug: 'idempotency-in-flight',
  status: 409,
  title: 'Request in progress',
  description:
    'A request with this Idempotency-Key is in progress. Try again after the number of seconds in Retry-After to get its response.',
};

export const idempotencyMismatch: ProblemType = {
  slug: 'idempotency-mismatch',
  status: 422,
  title: 'Idempotency key reused',
  description: 'An Idempotency-Key identifies one request. Send a new key with each new request.',
};

export const billingProblems: readonly ProblemType[] = [
  quotaExhausted,
  callsStopped,
  callsInFlight,
  ledgerUnavailable,
  ledgerUnconfigured,
  idempotencyInFlight,
  idempotencyMismatch,
];

/** A daily quota and what of it is used. */
export interface Quota {
  readonly limit: Money;
  readonly used: Money;
  /** Reserved for calls in progress. */
  readonly held: Money;
  readonly resetsAt: Date;
}

/** What remains of it for new calls. */
export function computeRemaining({ limit, used, held }: Quota): Money {
  const left = limit - used - held;
  return (left > 0n ? left : 0n) as Money;
}

/** Whose quota it is. */
const scopes = ['caller', 'network', 'everyone', 'app'] as const;
type QuotaScope = (typeof scopes)[number];

/** A quota as every answer and problem reports it. Amounts are decimal strings. */
export const quotaFields = z.object({
  scope: z.enum(scopes).describe('Owner of the quota: you, your network, the app, or everyone here.'),
  currency: z.literal('USD'),
  limit: z.string().describe('For a day (UTC).'),
  used: z.string(),
  reserved: z.string().describe('Reserved for calls in progress, and for those whose cost is pending.'),
  remaining: z.string().describe('Amount available for new calls.'),
  resets_at: z.string(),
});

/** The same in answers of tools and apps, which had a name of their own for what remains. */
export const lowQuotaFields = quotaFields
  .extend({ left: z.string().meta({ deprecated: true, description: 'The same as `remaining`.' }) })
  .describe('Your daily quota; included when it runs low.');

export function toQuotaView<Scope extends string = QuotaScope>(
  quota: Quota,
  scope: Scope,
): Omit<z.output<typeof quotaFields>, 'scope'> & { scope: Scope } {
  return {
    scope,
    currency: 'USD',
    limit: formatMoney(quota.limit),
    used: formatMoney(quota.used),
    reserved: formatMoney(quota.held),
    remaining: formatMoney(computeRemaining(quota)),
    resets_at: quota.resetsAt.toISOString(),
  };
}

/** The quota of a caller where it runs low, and how to continue; nothing otherwise. */
export function toLowQuotaView(
  quota: Quota | undefined,
): { readonly quota: z.output<typeof lowQuotaFields>; readonly hint: string } | undefined {
  const hint = formatLowQuotaHint(quota);
  if (quota === undefined || hint === undefined) return undefined;
  const view = toQuotaView(quota, 'caller');
  return { quota: { ...view, left: view.remaining }, hint };
}

/** Quantities are counted in millionths of a dollar, since these headers take whole numbers only. */
const microDollar = 1_000_000n;

/**
 * Headers of the IETF draft "RateLimit header fields for HTTP", where `t` is the seconds until the quota resets, and the
 * hint when less than a fifth remains: for readers of headers, and for responses that hold no JSON. Headers are ASCII.
 */
export function formatQuotaHeaders(quota: Quota | undefined, payer: Payer, now: number): Record<string, string> {
  if (quota === undefined) return {};
  const name = { anonymous: 'free-day', key: 'key-day', app: 'app-day' }[payer.kind];
  const seconds = Math.max(0, Math.ceil((quota.resetsAt.getTime() - now) / 1000));
  const hint = formatLowQuotaHint(quota);
  return {
    ...(hint === undefined ? {} : { 'x-quota-hint': hint.replaceAll('…', '...') }),
    'ratelimit-policy': `"${name}";q=${(quota.limit / microDollar).toString()};w=86400;qu="micro-usd"`,
    ratelimit: `"${name}";r=${(computeRemaining(quota) / microDollar).toString()};t=${seconds}`,
  };
}

/** Sent when less than a fifth remains. */
export function formatLowQuotaHint(quota: Quota | undefined): string | undefined {
  if (quota === undefined || computeRemaining(quota) * 5n >= quota.limit) return undefined;
  return `You have ${formatBalance(quota)} daily quota left; it resets at ${formatReset(quota)}. To continue without a quota, ${ownKeyText}`;
}

/** How to continue with a key that the model router bills directly. Ends a text, without a period that would join the key. */
const ownKeyText = 'send your own API key for the model router: Authorization: Bearer sk-…';

/** Like `$0.00089 of your $0.004`. */
function formatBalance(quota: Quota, whose = 'your'): string {
  return `${formatUsd(computeRemaining(quota))} of ${whose} ${formatUsd(quota.limit)}`;
}

/** Like `00:00 UTC`: daily quotas reset at the next one. */
function formatReset({ resetsAt }: Quota): string {
  return `${resetsAt.toISOString().slice(11, 16)} UTC`;
}

/** One way to continue. */
export interface Action {
  readonly action: 'use-own-key' | 'shorten' | 'choose-cheaper' | 'use-models' | 'wait';
  readonly description: string;
  readonly header?: string;
  readonly until?: string;
}

/** `fixed`: the price of a tool or an app is asked for, which no shorter prompt lowers. */
export function listActions(quota: Quota, payer: Payer, fixed: boolean): Action[] {
  const until = quota.resetsAt.toISOString();
  return [
    ...keyActions[payer.kind](fixed),
    ...(computeRemaining(quota) > 0n && (fixed || payer.kind !== 'key')
      ? [fixed ? chooseCheaper(quota) : shorten]
      : []),
    { action: 'wait', description: 'Wait until the quota resets.', until },
  ];
}

/** How each payer continues with a key; an app cannot send one. */
const keyActions: Readonly<Record<Payer['kind'], (fixed: boolean) => Action[]>> = {
  anonymous: (fixed) => [
    {
      action: 'use-own-key',
      description: fixed
        ? 'Send your own API key for the model router. The price of the call then counts against the daily limit for callers with a key, not against the free quota.'
        : 'Send your own API key for the model router. The call is billed to that key, not to the free quota.',
      header: 'Authorization: Bearer sk-…',
    },
  ],
  key: () => [
    {
      action: 'use-models',
      description:
        'Call models directly with your key, for example POST /api/ask. They are billed to it without a limit here.',
      header: 'Authorization: Bearer sk-…',
    },
  ],
  app: () => [],
};

const shorten: Action = {
  action: 'shorten',
  description:
    'Set a lower max_tokens, shorten the prompt, or choose a cheaper model. The remaining quota covers a smaller call.',
};

function chooseCheaper(quota: Quota): Action {
  return {
    action: 'choose-cheaper',
    description: `Choose a tool whose price is at most $${formatMoney(computeRemaining(quota))}, or one that is free: GET /t lists the price of each. The price of this call does not depend on its length.`,
  };
}

/** Who pays, and the two sides of what was to be reserved. */
export interface Refusal {
  readonly payer: Payer;
  /** Whether it is a price of our own, the same whatever is sent. */
  readonly fixed: boolean;
  readonly debit: LimitedAccount;
  readonly credit: LimitedAccount;
}

/** The refusal of a call that the quota does not cover. */
export function createQuotaProblem(answer: ReserveAnswer, refused: Refusal, maxCost: Money, now: number): Problem {
  const { payer, fixed } = refused;
  const scope = {
    credit: 'everyone',
    network: 'network',
    debit: { anonymous: 'caller', key: 'caller', app: 'app' }[payer.kind],
  }[findRefusedSide(answer)];
  const quota = toRefusedQuota(answer, refused, maxCost);
  return new Problem(
    quotaExhausted,
    `This call ${fixed ? 'costs' : 'can cost up to'} ${formatUsd(maxCost)}. ${describeShortage(quota, payer, scope)}`,
    {
      headers: {
        ...formatQuotaHeaders(quota, payer, now),
        'retry-after': String(Math.max(1, Math.ceil((quota.resetsAt.getTime() - now) / 1000))),
      },
      members: {
        quota: toQuotaView(quota, scope),
        actions: listActions(quota, payer, fixed),
      },
    },
  );
}

/** What is short, when it resets, and how to continue with an own key: each payer continues in another way. */
function describeShortage(quota: Quota, payer: Payer, scope: string): string {
  const reset = `left; it resets at ${formatReset(quota)}`;
  const own =
    payer.kind === 'app'
      ? 'To continue now, call a model router directly with your own API key.'
      : `To continue now, ${ownKeyText}`;
  if (scope === 'network')
    return `The network around your address has ${formatBalance(quota, 'its')} daily quota for callers without a key ${reset}. ${own}`;
  if (scope === 'everyone')
    return `This installation has ${formatBalance(quota, 'its')} daily limit for all callers ${reset}. ${own}`;
  if (payer.kind === 'key')
    return `You have ${formatBalance(quota)} daily limit for tools, apps and margins with a key ${reset}. Models are not limited by it: to continue now, call them with your key (POST /api/ask, Authorization: Bearer sk-…). The operator of this installation can raise the limit.`;
  if (payer.kind === 'app')
    return `The app has ${formatBalance(quota, 'its')} daily budget ${reset}. The operator of this installation can raise the budget. ${own}`;
  return `You have ${formatBalance(quota)} daily quota ${reset}. ${own}`;
}

/** Whose quota has refused; other reasons have problems of their own. */
function findRefusedSide({ refused_by: by }: ReserveAnswer): 'debit' | 'credit' | 'network' {
  return by === 'credit' || by === 'network' ? by : 'debit';
}

function toRefusedQuota(answer: ReserveAnswer, { debit, credit }: Refusal, maxCost: Money): Quota {
  const side = answer.refused_by === 'credit' ? answer.credit : answer.debit;
  const { limit } = { credit, debit, network: answer.debit ?? debit }[findRefusedSide(answer)];
  return {
    limit: limit ?? maxCost,
    used: side?.used ?? maxCost,
    held: side?.held ?? maxCost,
    resetsAt: answer.day_ends_at,
  };
}
