// What a caller hears of a quota: headers with every answer, a hint when it runs low, a problem when it does not
// suffice.
import { Problem } from '../../lib/problem.ts';
import type { HoldAnswer } from './ledger/shapes.ts';
import { formatMoney, type Money } from './ledger/money.ts';
import type { Payer } from './payer.ts';
import { quotaExhausted } from './problems.ts';

/** A daily quota as it stands. */
export interface Quota {
  readonly limit: Money;
  readonly used: Money;
  /** Reserved for calls under way. */
  readonly held: Money;
  readonly resetsAt: Date;
}

/** What is left of it for new calls. */
export function leftOf({ limit, used, held }: Quota): Money {
  const left = limit - used - held;
  return (left > 0n ? left : 0n) as Money;
}

/** Quantities are counted in millionths of a dollar, since these headers take whole numbers only. */
const microDollar = 1_000_000n;

/** Headers of the IETF draft "RateLimit header fields for HTTP". `t`: seconds until the quota begins afresh. */
export function rateLimitHeaders(quota: Quota | undefined, payer: Payer, now: number): Record<string, string> {
  if (quota === undefined) return {};
  const name = payer.kind === 'app' ? 'app-day' : 'free-day';
  const seconds = Math.max(0, Math.ceil((quota.resetsAt.getTime() - now) / 1000));
  return {
    'ratelimit-policy': `"${name}";q=${(quota.limit / microDollar).toString()};w=86400;qu="micro-usd"`,
    ratelimit: `"${name}";r=${(leftOf(quota) / microDollar).toString()};t=${seconds}`,
  };
}

/** Said when less than a fifth is left. */
export function lowQuotaHint(quota: Quota | undefined): string | undefined {
  if (quota === undefined || leftOf(quota) * 5n >= quota.limit) return undefined;
  return (
    `${formatMoney(leftOf(quota))} USD of today's free quota of ${formatMoney(quota.limit)} USD is left, until ${quota.resetsAt.toISOString()}. ` +
    'To go on without a limit, send your own key of the model router: Authorization: Bearer sk-…'
  );
}

/** One way to go on. */
export interface Action {
  readonly action: 'use-own-key' | 'shorten' | 'wait';
  readonly description: string;
  readonly header?: string;
  readonly until?: string;
}

export function waysOn(quota: Quota, payer: Payer): Action[] {
  const until = quota.resetsAt.toISOString();
  return [
    ...(payer.kind === 'app'
      ? []
      : [
          {
            action: 'use-own-key' as const,
            description: 'Send your own key of the model router: the call is billed to it, and no quota applies.',
            header: 'Authorization: Bearer sk-…',
          },
        ]),
    ...(leftOf(quota) > 0n
      ? [
          {
            action: 'shorten' as const,
            description:
              'Ask for fewer tokens (max_tokens), a shorter prompt or a cheaper model: what is left covers a smaller call.',
          },
        ]
      : []),
    { action: 'wait', description: 'Wait until the quota begins afresh.', until },
  ];
}

/** The refusal of a call that the quota does not cover. `most`: what it could have cost. */
export function quotaProblem(answer: HoldAnswer, payer: Payer, most: Money, now: number): Problem {
  const everyone = answer.refused_by === 'credit';
  const quota = refusedQuota(answer, payer, most);
  const whose = everyone ? 'all callers together' : { anonymous: 'you', key: 'you', app: 'this app' }[payer.kind];
  const usd = (amount: Money): string => `${formatMoney(amount)} USD`;
  return new Problem(
    quotaExhausted,
    `this call can cost up to ${usd(most)}, and of the ${usd(quota.limit)} a day for ${whose} ${usd(leftOf(quota))} is left; it begins afresh at ${quota.resetsAt.toISOString()}`,
    {
      headers: {
        ...rateLimitHeaders(quota, payer, now),
        'retry-after': String(Math.max(1, Math.ceil((quota.resetsAt.getTime() - now) / 1000))),
      },
      members: {
        quota: {
          scope: everyone ? 'everyone' : { anonymous: 'caller', key: 'caller', app: 'app' }[payer.kind],
          currency: 'USD',
          limit: formatMoney(quota.limit),
          used: formatMoney(quota.used),
          reserved: formatMoney(quota.held),
          resets_at: quota.resetsAt.toISOString(),
        },
        actions: waysOn(quota, payer),
      },
    },
  );
}

function refusedQuota(answer: HoldAnswer, payer: Payer, most: Money): Quota {
  const side = answer.refused_by === 'credit' ? answer.credit : answer.debit;
  const { limit } = answer.refused_by === 'credit' ? payer.credit : payer.debit;
  return { limit: limit ?? most, used: side?.used ?? most, held: side?.held ?? most, resetsAt: answer.day_ends_at };
}
