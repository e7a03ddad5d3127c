// GET /api/charges: what a caller's own calls of a day cost, each with its transaction and proof, signed.
import { z } from 'zod';
import { isUnguessable, type LedgerHandle, ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint, createValidationProblem } from '../../http/index.ts';
import { modelProblems, type PayerFor } from '../../models/index.ts';
import { dayText, provenLine, sumCharged, sumPostedTo } from './format/documents.ts';
import { signature } from './format/signature.ts';
import { receiptsUnconfigured } from '../problems.ts';
import type { LinkedTransaction, Receipts } from './receipts.ts';
import { chargesByCaller, range } from './ledger-log-queries.ts';

export interface ChargesOptions {
  readonly receipts: Receipts;
  readonly ledger: Pick<LedgerHandle, 'get'>;
  readonly payerFor: PayerFor;
  readonly baseUrl: string;
}

const path = '/api/charges';

const charge = provenLine.extend({
  hold: z.string().describe('Id of the call in the ledger.'),
  at: z.string().describe('When the call began (UTC).'),
  kind: z.string().describe('ask, compare, tool or app.'),
  tool: z.string().nullable(),
  app: z.string().nullable(),
  model: z.string().nullable(),
  cost_usd: z
    .string()
    .nullable()
    .describe('Cost of the call in USD; null while unknown, and on a sealed day until it can be proven.'),
  charged_usd: z
    .string()
    .nullable()
    .describe('Amount that we charge you for the transaction, in USD; null until it is linked.'),
  cost_source: z
    .string()
    .describe(
      'Source of the cost: billed, router_computed, router_record, tariff, estimated (from list prices, if the router never reported it), or pending.',
    ),
});

const charges = z.object({
  type: z
    .enum(['charges-2', 'charges'])
    .describe(
      'charges-2: the leaf contains every field of the line (`leaf.call`). charges: the earlier form, for calls linked before that; the leaf contains only id, caller, day and amounts.',
    ),
  issuer: z.string(),
  made_at: z.string(),
  caller: z.string().describe('Salted hash of your key, or of your network address.'),
  day: dayText,
  lines: z.array(charge),
  next: z.string().nullable().describe('URL of the next page; null on the last one.'),
  signature,
});

type ChargeRow = z.output<typeof chargesByCaller.row>;

const query = z.strictObject({
  day: dayText.describe('UTC day, like 2026-11-23.'),
  limit: z.coerce.number().int().min(1).max(200).default(50).describe('Maximum number of calls, 1 to 200; default 50.'),
  request: z
    .string()
    .max(64)
    .optional()
    .describe(
      'Only the calls of this request, by the X-Request-Id of its response. Required without an API key, because others may call from your address.',
    ),
  after: z.string().max(120).optional().describe('Cursor: part of `next` of the previous page.'),
});

export function createChargesEndpoint({ receipts, ledger, payerFor, baseUrl }: ChargesOptions): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path,
    operation: 'listCharges',
    returnsCallerData: true,
    tag: 'ledger',
    summary: 'List the costs of your calls on a day',
    description:
      'Your own calls of a UTC day, by your API key; without one, those of one request, by its id. Each has its cost, its transaction in the ledger and, once its day is sealed, the proof that the day contains it. Signed; `npm run verify` checks it.',
    query,
    output: charges,
    outputDescription: 'The charges, in chronological order.',
    problems: [receiptsUnconfigured, ledgerUnavailable, ledgerUnconfigured, ...modelProblems],
    handler: async ({ query: { day, limit, request, after } }, context) => {
      receipts.assertSigns();
      const { kind, owner } = await payerFor(context);
      if (kind !== 'key') assertRequest(request);
      const { database } = ledger.get();
      // Read first: a day that is sealed meanwhile has proofs below.
      const [sealed] = await database.query(range, []);
      const [afterTime, afterId] = after === undefined ? ['-infinity', ''] : readCursor(after);
      const rows = await database.query(chargesByCaller, [owner, day, afterTime, afterId, limit + 1, request ?? null]);
      const page = rows.slice(0, limit);
      const transactions = page.flatMap(({ transaction }) => (transaction === null ? [] : [transaction]));
      const proofs = await receipts.readProofs(transactions);
      const last = rows.length > limit ? page.at(-1) : undefined;
      const isSealed = sealed?.last != null && day <= sealed.last;
      const lines = page.map((row) => {
        const linked = row.transaction === null ? undefined : proofs.get(row.transaction);
        return isSealed ? toProvenLine(row, linked) : toLine(row, linked);
      });
      return receipts.sign({
        type: lines.some(({ leaf }) => leaf !== null && leaf.call === undefined)
          ? ('charges' as const)
          : ('charges-2' as const),
        made_at: new Date().toISOString(),
        caller: owner,
        day,
        lines,
        next:
          last === undefined
            ? null
            : `${baseUrl}${path}?day=${day}&limit=${limit}${request === undefined ? '' : `&request=${encodeURIComponent(request)}`}&after=${writeCursor(last.at, last.id)}`,
      });
    },
  });
}

/** Callers without a key are known by an address that others share. @throws Problem (invalid-request) */
function assertRequest(request: string | undefined): void {
  if (request !== undefined && isUnguessable(request)) return;
  throw createValidationProblem([
    {
      in: 'query',
      field: 'request',
      message:
        request === undefined
          ? 'is missing: without an API key, charges are not listed'
          : 'is too easy to guess: without an API key, others could find it',
      fix: 'Send the X-Request-Id of the response, or your API key as Authorization: Bearer sk-….',
    },
  ]);
}

/** Of a sealed day nothing is claimed that cannot be proven: what was settled later waits for its own day to be sealed. */
function toProvenLine(row: ChargeRow, linked: LinkedTransaction | undefined): z.output<typeof charge> {
  return linked?.proof === undefined
    ? toLine({ ...row, cost: null, source: 'pending' }, undefined)
    : toLine(row, linked);
}

function toLine(row: ChargeRow, linked: LinkedTransaction | undefined): z.output<typeof charge> {
  const { kind, tool, app, model } = row;
  const call = { hold: row.id, at: row.at, kind, tool, app, model, cost_source: row.source };
  if (linked === undefined)
    return { ...call, cost_usd: row.cost, charged_usd: null, account: null, amount: null, leaf: null, proof: null };
  const { leaf, proof = null } = linked;
  const amount = sumPostedTo(leaf, row.account) ?? null;
  // As it was linked, whatever the use says by now.
  const { caller: _caller, ...recorded } = leaf.call ?? { ...call, caller: null };
  return { ...recorded, cost_usd: amount, charged_usd: sumCharged(leaf), account: row.account, amount, leaf, proof };
}

const cursorTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$/;
const cursorId = /^[0-9a-f-]{36}$/;

function writeCursor(at: string, id: string): string {
  return Buffer.from(`${at} ${id}`).toString('base64url');
}

function readCursor(text: string): [string, string] {
  const [at = '', id = ''] = Buffer.from(text, 'base64url').toString('utf8').split(' ');
  if (cursorTime.test(at) && !Number.isNaN(Date.parse(at)) && cursorId.test(id)) return [at, id];
  throw createValidationProblem([
    {
      in: 'query',
      field: 'after',
      message: 'is not a position in this list',
      fix: 'Take it from `next` of the previous page, or omit it for the first page.',
    },
  ]);
}
