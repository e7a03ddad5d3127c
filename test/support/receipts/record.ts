// A ledger with postings, and its signed record, for tests of receipts.
import { generateKeyPairSync } from 'node:crypto';
import { z } from 'zod';
import type { Database } from '../../../api/billing/index.ts';
import { toPublicKey } from '../../../api/accounting/receipts/format/signature.ts';
import { advanceLog, type LogOptions, type LogStep, Signer } from '../../../api/accounting/receipts/ledger-log.ts';

export const issuer = 'https://moorage.localhost';
export const { privateKey } = generateKeyPairSync('ed25519');
/** As an environment variable has it. */
export const receiptKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
export const keys = { keys: [toPublicKey(privateKey)] };
export const signer = new Signer(issuer, privateKey, keys);

const post = {
  name: 'test-post',
  text: 'select ledger.post($1, $2, $3::jsonb, $4) as answer',
  row: z.object({ answer: z.object({ outcome: z.literal('booked'), id: z.string() }) }),
};

export interface Posting {
  readonly reference: string;
  readonly at: string;
  readonly caller?: string;
  readonly amount?: string;
  readonly kind?: string;
}

/** Posts from a caller's daily account to the platform's. @returns the number of the transaction */
export async function postAt(
  on: Pick<Database, 'query'>,
  { reference, at, caller = 'caller', amount = '0.01', kind = 'settle' }: Posting,
): Promise<string> {
  const lines = [
    { kind: 'caller', owner: caller, daily: true, amount },
    { kind: 'platform', owner: 'router', daily: true, amount: `-${amount}` },
  ];
  const [row] = await on.query(post, [reference, kind, JSON.stringify(lines), at]);
  if (row === undefined) throw new Error('not posted');
  return row.answer.id;
}

/** Brings the record up to date as of a time, step by step. */
export async function advanceTo(
  database: Database,
  now: string,
  options: Partial<LogOptions> = {},
): Promise<Omit<LogStep, 'more'>> {
  const total = { linked: 0, sealed: 0 };
  for (;;) {
    const step = await advanceLog({ database, signer, now: () => new Date(now), ...options });
    total.linked += step.linked;
    total.sealed += step.sealed;
    if (!step.more) return total;
  }
}
