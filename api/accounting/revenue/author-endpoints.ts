// Serves authors: their apps and keys, statements, the uses behind a line, and disputes.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import type { AppIndex } from '../../apps/index.ts';
import {
  billingProblems,
  type Database,
  formatMoney,
  ledgerUnavailable,
  ledgerUnconfigured,
  type PriceList,
} from '../../billing/index.ts';
import { createBufferedResponse, defineEndpoint, type Endpoint, JsonAnswer } from '../../http/index.ts';
import type { Receipts } from '../receipts/index.ts';
import { authorFrozen, authorKeyRequired, statementFinal, unknownAuthor, unknownLine } from '../problems.ts';
import { assertAuthorKey, assertNotFrozen, type Author, findAuthor, issueKey } from './author-access.ts';
import { events, lineById, months, openDispute } from './revenue-queries.ts';
import {
  addProofs,
  findVersion,
  formatMonth,
  formatStatementCsv,
  getFirstDay,
  monthField,
  provenStatement,
  readStatement,
  toCountingTerms,
} from './statement.ts';

export interface RevenueServices {
  readonly apps: Pick<AppIndex, 'listAll'>;
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
export function buildAuthorUrl(
  baseUrl: string,
  { author, handle }: Pick<Author, 'author' | 'handle'>,
  path: string,
  query: Readonly<Record<string, string>> = {},
): string {
  const host = author.slice(0, author.indexOf('/'));
  return `${baseUrl}/api/authors/${encodeURIComponent(handle)}/${path}?${new URLSearchParams({ ...query, host }).toString()}`;
}

/** An author and their apps, as anybody may read it. */
export const authorView = z.object({
  author: z.string().describe('Git host and owner.'),
  apps: z.array(
    z.object({
      slug: z.string(),
      id: z
        .string()
        .describe(
          'First slug of the app, under which its uses are recorded and signed. Differs if the app was renamed.',
        ),
      share: z.number().describe('Part of a use that the author accrues.'),
    }),
  ),
  has_key: z.boolean().describe('Whether a repository has the line of a key.'),
  statements_url: z.string(),
  keys_url: z.string().describe('POST to it for a key.'),
});

export function createAuthorEndpoints({ apps, baseUrl }: RevenueServices): Endpoint[] {
  return [
    defineEndpoint({
      method: 'GET',
      path: '/api/authors/{handle}',
      operation: 'getAuthor',
      tag: 'authors',
      summary: 'Get the hosted apps of an author and how to read their statements',
      description:
        'An author is the owner of repositories that are hosted here. What they earn is in their statements, which only they can read.',
      params: handleParams,
      query: z.strictObject(hostField),
      output: authorView,
      outputDescription: 'The author.',
      problems: [unknownAuthor],
      head: 'as GET',
      handler: async ({ params, query }) => {
        const { author, handle, apps: authorApps } = findAuthor(apps, params.handle, query.host);
        return Promise.resolve({
          author,
          apps: authorApps.map(({ app, slug, sharePpm }) => ({ slug, id: app, share: sharePpm / 1_000_000 })),
          has_key: authorApps.some(({ keys }) => keys.length > 0),
          statements_url: buildAuthorUrl(baseUrl, { author, handle }, 'statements'),
          keys_url: buildAuthorUrl(baseUrl, { author, handle }, 'keys'),
        });
      },
    }),
    defineEndpoint({
      method: 'POST',
      path: '/api/authors/{handle}/keys',
      operation: 'issueAuthorKey',
      tag: 'authors',
      summary: 'Get a key that opens the statements of an author',
      description:
        'Anybody can ask for a key. It is worth nothing until its line is committed to .moorage-owner on the default branch of a repository of the author, and nothing is stored here.',
      params: handleParams,
      query: z.strictObject(hostField),
      output: z.object({
        key: z.string().describe('Keep it secret. Send it as Authorization: Bearer.'),
        file: z.string().describe('File at the top of the default branch.'),
        line: z
          .string()
          .describe('The line for that file in the first repository of `lines`: a hash, which is safe to publish.'),
        lines: z
          .array(z.object({ repository: z.string(), line: z.string() }))
          .describe('The line for each repository; in another one it stands for nothing. One of them is enough.'),
        message: z.string(),
      }),
      outputDescription: 'The key and its line.',
      problems: [unknownAuthor],
      handler: async ({ params, query }) => Promise.resolve(issueKey(findAuthor(apps, params.handle, query.host))),
    }),
  ];
}

const csvType = 'text/csv';
export const statementProblems = billingProblems
  .filter((type) => type === ledgerUnavailable || type === ledgerUnconfigured)
  .concat(unknownAuthor, authorKeyRequired, authorFrozen);

export function createStatementEndpoints(services: RevenueServices): Endpoint[] {
  return [createListEndpoint(services), createStatementEndpoint(services)];
}

function createListEndpoint({ apps, database, baseUrl }: RevenueServices): Endpoint {
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
      const author = findAuthor(apps, params.handle, host);
      assertAuthorKey(headers, author);
      await assertNotFrozen(database(), author);
      const rows = await database().query(months, [author.author]);
      return {
        author: author.author,
        statements: rows.map(({ month, state, lines, earned, paid }) => ({
          month,
          state,
          lines,
          earned_usd: formatMoney(earned),
          paid_usd: formatMoney(paid),
          url: buildAuthorUrl(baseUrl, author, 'statement', { month }),
        })),
      };
    },
  });
}

function createStatementEndpoint({ apps, database, baseUrl, disputeDays, receipts }: RevenueServices): Endpoint {
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
    handler: async ({ params, query: { month = formatMonth(new Date()), host } }, { headers, mediaType }) => {
      const author = findAuthor(apps, params.handle, host);
      assertAuthorKey(headers, author);
      await assertNotFrozen(database(), author);
      const statement = await readStatement(database(), {
        author: author.author,
        month,
        baseUrl,
        disputeDays,
        buildEventsUrl: (line) => buildAuthorUrl(baseUrl, author, `lines/${line}/events`),
      });
      const private_ = { 'cache-control': 'no-store' };
      if (mediaType !== csvType) return new JsonAnswer(await addProofs(statement, receipts));
      return createBufferedResponse(formatStatementCsv(statement), {
        headers: {
          ...private_,
          'content-type': `${csvType}; charset=utf-8`,
          'content-disposition': `attachment; filename="${author.handle}-${month}.csv"`,
        },
      });
    },
  });
}

const pageSize = 1_000;
const usesLine = z.object({ app: z.string(), day: z.string(), item: z.string(), events: z.string() });
const idField = z.string().regex(/^[1-9]\d{0,17}$/, 'must be the id of a line');

export function createLineEndpoint({ apps, database, prices, baseUrl }: RevenueServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/authors/{handle}/lines/{line}/events',
    operation: 'listLineEvents',
    tag: 'authors',
    summary: 'List the uses that a line of a statement counts',
    description: `The ids of all uses of that day which count for the author, in the order of time, ${pageSize} at a time. SHA-256 of all ids joined by line feeds is events_sha256 of the newest line of the day. Single uses are kept for a limited time (MOORAGE_KEEP_DAYS). Needs a key of the author.`,
    params: handleParams.extend({ line: idField.describe('Id of the line') }),
    query: z.strictObject({
      after: z
        .string()
        .refine(isPosition, 'must be the value of `next` of the page before')
        .optional()
        .describe('`next` of the page before'),
      ...hostField,
    }),
    output: z.object({
      line: z.string(),
      app: z.string(),
      day: z.string(),
      item: z.string(),
      events_sha256: z.string(),
      events: z.array(z.object({ id: z.string(), at: z.string() })),
      next: z.string().nullable().describe('Send as `after` for the next page; null at the end.'),
      next_url: z.string().nullable(),
    }),
    outputDescription: 'The uses.',
    problems: [...statementProblems, unknownLine],
    head: 'as GET',
    handler: async ({ params, query }, { headers }) => {
      const author = findAuthor(apps, params.handle, query.host);
      assertAuthorKey(headers, author);
      await assertNotFrozen(database(), author);
      const line = await findLine(database(), params.line, author);
      const rows = await database().query(events, [
        params.line,
        author.author,
        ...toCountingTerms(findVersion(prices, line.day)),
        ...parsePosition(query.after),
        pageSize,
      ]);
      const last = rows.length === pageSize ? rows.at(-1) : undefined;
      const next = last === undefined ? null : `${last.at_text},${last.id}`;
      return {
        line: params.line,
        app: line.app,
        day: line.day,
        item: line.item,
        events_sha256: line.events,
        events: rows.map((row) => ({ id: row.id, at: row.at_text })),
        next,
        next_url:
          next === null ? null : buildAuthorUrl(baseUrl, author, `lines/${params.line}/events`, { after: next }),
      };
    },
  });
}

/** @throws Problem (unknown-line) */
async function findLine(
  database: Database,
  id: string,
  { author, handle }: Author,
): Promise<Record<'app' | 'day' | 'item' | 'events', string>> {
  const [line] = await database.query(lineById, [id, author]);
  const parsed = usesLine.safeParse(line);
  if (parsed.success) return parsed.data;
  throw new Problem(unknownLine, `The statements of ${handle} have no line ${id} that counts uses.`);
}

/** A time with its fraction as the database writes it, and an id. */
function isPosition(text: string): boolean {
  const [, time = ''] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z),[!-~]{1,200}$/.exec(text) ?? [];
  return !Number.isNaN(Date.parse(time));
}

/** Time and id of the last use of the page before. */
function parsePosition(after: string | undefined): [string | null, string | null] {
  if (after === undefined) return [null, null];
  const comma = after.indexOf(',');
  return [after.slice(0, comma), after.slice(comma + 1)];
}

export function createDisputeEndpoint({ apps, database }: RevenueServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/api/authors/{handle}/disputes',
    operation: 'openDispute',
    tag: 'authors',
    summary: 'Dispute a statement',
    description:
      'The statement is then disputed, and does not become final before the operator of this installation has answered. What comes of it is a line of kind dispute, or an answer without one. Needs a key of the author.',
    params: handleParams,
    query: z.strictObject(hostField),
    body: z
      .strictObject({
        month: monthField,
        line: z
          .string()
          .regex(/^[1-9]\d{0,17}$/, 'must be the id of a line')
          .optional()
          .describe('Id of the line; without it the whole statement is disputed'),
        message: z
          .string()
          .trim()
          .min(1)
          .max(2_000)
          .regex(/^[^\0]*$/, 'must not contain NUL')
          .describe('What is wrong, in your own words'),
      })
      .describe('{"month": "2026-11", "message": "..."}, optionally with "line"'),
    output: z.object({ id: z.string(), month: z.string(), state: z.literal('disputed'), message: z.string() }),
    outputDescription: 'The dispute.',
    problems: [...statementProblems, unknownLine, statementFinal],
    handler: async ({ params, query, body }, { headers, log }) => {
      const author = findAuthor(apps, params.handle, query.host);
      assertAuthorKey(headers, author);
      await assertNotFrozen(database(), author);
      const { month, line, message } = body;
      if (line !== undefined) {
        const [known] = await database().query(lineById, [line, author.author]);
        if (known?.month.slice(0, 7) !== month)
          throw new Problem(
            unknownLine,
            `The statement of ${month} has no line ${line}. Ids of lines are in the statement.`,
          );
      }
      const id = randomUUID();
      const [opened] = await database().query(openDispute, [
        id,
        author.author,
        getFirstDay(month),
        line ?? null,
        message,
        null,
      ]);
      if (opened === undefined)
        throw new Problem(
          statementFinal,
          `The statement of ${month} is final. Contact the operator of this installation.`,
        );
      log.warn({ author: author.author, month, line, dispute: id }, 'an author disputed a statement');
      return {
        id,
        month,
        state: 'disputed' as const,
        message: `Your dispute of ${month} is recorded. Its answer will be in the statement.`,
      };
    },
  });
}
