// GET /api/authors/{handle}/statements and /statement: what an author has earned, by month and by line.
import { z } from 'zod';
import { bufferedResponse, defineEndpoint, type Endpoint, jsonResponse } from '../../../http/index.ts';
import { billingProblems, formatMoney, ledgerUnavailable, ledgerUnconfigured } from '../../../billing/index.ts';
import { findAuthor, refuseFrozen, requireKey } from '../access.ts';
import { authorFrozen, authorKeyRequired, unknownAuthor } from '../problems.ts';
import { statementCsv } from '../statement/csv.ts';
import { monthField, monthOf } from '../statement/month.ts';
import { readStatement } from '../statement/read.ts';
import { proven, provenStatement } from '../statement/proven.ts';
import { months } from '../store/statements.ts';
import { authorUrl, handleParams, hostField, type RevenueServices } from './shared.ts';

const csvType = 'text/csv';
export const statementProblems = billingProblems
  .filter((type) => type === ledgerUnavailable || type === ledgerUnconfigured)
  .concat(unknownAuthor, authorKeyRequired, authorFrozen);

export function statementEndpoints(services: RevenueServices): Endpoint[] {
  return [listEndpoint(services), statementEndpoint(services)];
}

function listEndpoint({ apps, database, baseUrl }: RevenueServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/authors/{handle}/statements',
    operation: 'listStatements',
    tag: 'authors',
    summary: 'List the statements of an author',
    description: 'One statement a month, newest first. Needs a key of the author.',
    params: handleParams,
    query: z.strictObject(hostField),
    output: z.object({
      author: z.string(),
      statements: z.array(
        z.object({
          month: z.string(),
          state: z.string(),
          lines: z.int(),
          earned_usd: z.string().describe('Shares and corrections, USD.'),
          paid_usd: z.string(),
          url: z.string(),
        }),
      ),
    }),
    outputDescription: 'The statements.',
    problems: statementProblems,
    head: 'as GET',
    handler: async ({ params, query: { host } }, { headers }) => {
      const found = findAuthor(apps, params.handle, host);
      requireKey(headers, found);
      await refuseFrozen(database(), found);
      const rows = await database().query(months, [found.author]);
      return {
        author: found.author,
        statements: rows.map(({ month, state, lines, earned, paid }) => ({
          month,
          state,
          lines,
          earned_usd: formatMoney(earned),
          paid_usd: formatMoney(paid),
          url: authorUrl(baseUrl, found, 'statement', { month }),
        })),
      };
    },
  });
}

function statementEndpoint({ apps, database, baseUrl, disputeDays, receipts }: RevenueServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/authors/{handle}/statement',
    operation: 'getStatement',
    tag: 'authors',
    summary: 'Get the statement of a month',
    description:
      'Each line says which uses it counts, at which version of the price list, and which transaction of the ledger posted it. As JSON or, with Accept: text/csv, as CSV. ' +
      'Each has its transaction as the ledger has it and, once that day is sealed, the proof; all of it is signed, and `npm run verify` checks it. Lines are never changed: what was wrong gets another line. Once the time for disputes is over the statement is final. Needs a key of the author.',
    params: handleParams,
    query: z.strictObject({
      month: monthField.optional().describe('Month, UTC, like 2026-11; default the current one'),
      ...hostField,
    }),
    output: provenStatement,
    outputDescription: 'The statement.',
    produces: ['application/json', csvType],
    problems: statementProblems,
    head: 'as GET',
    handler: async ({ params, query: { month = monthOf(new Date()), host } }, { headers, mediaType }) => {
      const found = findAuthor(apps, params.handle, host);
      requireKey(headers, found);
      await refuseFrozen(database(), found);
      const statement = await readStatement(database(), {
        author: found.author,
        month,
        baseUrl,
        disputeDays,
        eventsUrl: (line) => authorUrl(baseUrl, found, `lines/${line}/events`),
      });
      const private_ = { 'cache-control': 'no-store' };
      if (mediaType !== csvType) return jsonResponse(await proven(statement, receipts), { headers: private_ });
      return bufferedResponse(statementCsv(statement), {
        headers: {
          ...private_,
          'content-type': `${csvType}; charset=utf-8`,
          'content-disposition': `attachment; filename="${found.handle}-${month}.csv"`,
        },
      });
    },
  });
}
