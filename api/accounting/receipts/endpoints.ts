// Endpoints of the signed record: sealed days, the newest checkpoint, and the keys that they are checked with.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { type LedgerHandle, ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { checkpoint, dayText, ledgerDay } from './format/documents.ts';
import { keySet } from './format/signature.ts';
import * as statements from './ledger-log-queries.ts';
import { noCheckpoint, receiptsUnconfigured, unknownDay } from '../problems.ts';
import type { Receipts } from './receipts.ts';

export interface EndpointsOptions {
  readonly receipts: Receipts;
  readonly ledger: Pick<LedgerHandle, 'get'>;
  readonly baseUrl: string;
}

const path = '/api/ledger/days';
const tag = 'ledger';
const unavailable = [receiptsUnconfigured, ledgerUnavailable, ledgerUnconfigured];
const dayField = dayText.describe('UTC day, like 2026-11-23.');

export function createRecordEndpoints(options: EndpointsOptions): Endpoint[] {
  return [
    createDaysEndpoint(options),
    createDayEndpoint(options),
    createCheckpointEndpoint(options),
    createKeysEndpoint(options),
  ];
}

function createDaysEndpoint({ receipts, ledger, baseUrl }: EndpointsOptions): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path,
    operation: 'listLedgerDays',
    tag,
    summary: 'List the sealed days of the ledger',
    description:
      'Each UTC day of the ledger with the Merkle root (RFC 6962) of its transactions, chained to the previous day and signed. Keep a copy: `npm run verify` checks statements, charges and the database itself against it.',
    query: z.strictObject({
      before: dayText.optional().describe('Only days before this one: the last day of the previous page.'),
      limit: z.coerce
        .number()
        .int()
        .min(1)
        .max(366)
        .default(31)
        .describe('Maximum number of days, 1 to 366; default 31.'),
    }),
    output: z.object({
      type: z.literal('ledger-days'),
      issuer: z.string(),
      days: z.array(ledgerDay),
      next: z.string().nullable().describe('URL of the next page; null on the last one.'),
    }),
    outputDescription: 'The days, newest first.',
    problems: unavailable,
    handler: async ({ query: { before, limit } }) => {
      receipts.assertSigns();
      const rows = await ledger.get().database.query(statements.days, [before ?? null, limit + 1]);
      const days = rows.slice(0, limit).map(({ document }) => document);
      const last = rows.length > limit ? days.at(-1) : undefined;
      const next = last === undefined ? null : `${baseUrl}${path}?before=${last.day}&limit=${limit}`;
      return { type: 'ledger-days' as const, issuer: baseUrl, days, next };
    },
  });
}

function createDayEndpoint({ receipts, ledger }: EndpointsOptions): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: `${path}/{day}`,
    operation: 'getLedgerDay',
    tag,
    summary: 'Get a sealed day of the ledger',
    description: 'One UTC day with its Merkle root and its signature. It never changes.',
    params: z.strictObject({ day: dayField }),
    output: ledgerDay,
    outputDescription: 'The day.',
    problems: [unknownDay, ...unavailable],
    handler: async ({ params: { day } }) => {
      receipts.assertSigns();
      const { database } = ledger.get();
      const [row] = await database.query(statements.oneDay, [day]);
      if (row !== undefined) return row.document;
      const [{ first, last } = { first: null, last: null }] = await database.query(statements.range, []);
      const there = first === null ? 'No day is sealed yet.' : `Days from ${first} to ${String(last)} are.`;
      throw new Problem(unknownDay, `${day} is not sealed. ${there}`, { members: { first, last } });
    },
  });
}

function createCheckpointEndpoint({ receipts, ledger }: EndpointsOptions): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/api/ledger/checkpoint',
    operation: 'getLedgerCheckpoint',
    tag,
    summary: 'Get the newest checkpoint of the ledger',
    description:
      'The signed state of the days that are not sealed yet, at most a few seconds old. Keep it to prove later that nothing before it was changed.',
    output: checkpoint,
    outputDescription: 'The checkpoint.',
    problems: [noCheckpoint, ...unavailable],
    handler: async () => {
      receipts.assertSigns();
      const [row] = await ledger.get().database.query(statements.readCheckpoint, []);
      if (row === undefined) throw new Problem(noCheckpoint, 'The ledger has no transaction yet.');
      return row.document;
    },
  });
}

function createKeysEndpoint({ receipts }: EndpointsOptions): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: '/.well-known/jwks.json',
    operation: 'getReceiptKeys',
    tag,
    summary: 'Get the public keys of receipts',
    description: 'A JSON Web Key Set (RFC 7517): the current signing key, and earlier ones.',
    output: keySet,
    outputDescription: 'The keys.',
    maxAgeSeconds: 300,
    problems: [receiptsUnconfigured],
    handler: () => {
      receipts.assertSigns();
      return Promise.resolve(receipts.keys);
    },
  });
}
