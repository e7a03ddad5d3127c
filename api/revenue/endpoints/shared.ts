// What the endpoints of authors have in common: who is meant, and the database.
import { z } from 'zod';
import type { AppIndex } from '../../apps/index.ts';
import type { Database, PriceList } from '../../billing/index.ts';
import type { Receipts } from '../../receipts/index.ts';

export interface RevenueServices {
  readonly apps: Pick<AppIndex, 'all'>;
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while no ledger is open */
  readonly database: () => Database;
  readonly prices: PriceList;
  readonly receipts: Receipts;
  readonly baseUrl: string;
  /** Days after the end of a month in which its statement can be disputed. */
  readonly disputeDays: number;
}

export const handleParams = z.strictObject({
  handle: z.string().min(1).max(100).describe('Owner of the repositories, such as octo of github.com/octo/hello'),
});

export const hostField = {
  host: z.string().max(255).optional().describe('Git host, required if the owner has repositories on several'),
};

/** The part of a query that names the host. */
export function hostQuery(host: string | undefined): string {
  return host === undefined ? '' : `&host=${encodeURIComponent(host)}`;
}
