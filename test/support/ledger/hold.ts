// A hold for tests of the ledger.
import { randomUUID } from 'node:crypto';
import { toCallerAccount, toPlatformAccount } from '../../../api/billing/ledger/accounts.ts';
import type { ReserveRequest } from '../../../api/billing/ledger/ledger.ts';
import { parseMoney as usd, type Money } from '../../../api/billing/ledger/money.ts';

/** A hold on accounts that no other test uses. */
export function createHold(
  changes: Partial<ReserveRequest> & {
    caller?: string;
    quota?: Money | null;
    router?: string;
    cap?: Money | null;
  } = {},
): ReserveRequest {
  const { caller = randomUUID(), quota = usd('1'), router = randomUUID(), cap = usd('10'), ...rest } = changes;
  return {
    id: randomUUID(),
    amount: usd('0.01'),
    ttlMs: 60_000,
    debit: { account: toCallerAccount(caller), limit: quota },
    credit: { account: toPlatformAccount(router), limit: cap },
    ...rest,
  };
}
