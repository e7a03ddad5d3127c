// What the endpoints of authors have in common: who is meant, and the database.
import { z } from 'zod';
import type { AppIndex } from '../../../apps/index.ts';
import type { Database, PriceList } from '../../../billing/index.ts';
import type { Receipts } from '../../receipts/index.ts';
import type { Author } from '../access.ts';

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

/**
 * An address below an author, which names the host: without it the address ends to work once the owner name exists on a
 * second host, which anybody can bring about.
 */
export function authorUrl(
  baseUrl: string,
  { author, handle }: Pick<Author, 'author' | 'handle'>,
  path: string,
  query: Readonly<Record<string, string>> = {},
): string {
  const host = author.slice(0, author.indexOf('/'));
  return `${baseUrl}/api/authors/${encodeURIComponent(handle)}/${path}?${new URLSearchParams({ ...query, host }).toString()}`;
}
