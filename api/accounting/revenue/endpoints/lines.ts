// GET /api/authors/{handle}/lines/{line}/events: the single uses that a line of a statement counts.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../../../http/index.ts';
import type { Database } from '../../../billing/index.ts';
import { type Author, findAuthor, refuseFrozen, requireKey } from '../access.ts';
import { unknownLine } from '../problems.ts';
import { toCountingTerms, versionOn } from '../shares.ts';
import { events, lineOf } from '../store/statements.ts';
import { statementProblems } from './statements.ts';
import { authorUrl, handleParams, hostField, type RevenueServices } from './shared.ts';

const pageSize = 1_000;
const countedLine = z.object({ app: z.string(), day: z.string(), item: z.string(), events: z.string() });
const idField = z.string().regex(/^[1-9]\d{0,17}$/, 'must be the id of a line');

export function lineEndpoint({ apps, database, prices, baseUrl }: RevenueServices): Endpoint {
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
      const found = findAuthor(apps, params.handle, query.host);
      requireKey(headers, found);
      await refuseFrozen(database(), found);
      const line = await findLine(database(), params.line, found);
      const rows = await database().query(events, [
        params.line,
        found.author,
        ...toCountingTerms(versionOn(prices, line.day)),
        ...positionOf(query.after),
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
        next_url: next === null ? null : authorUrl(baseUrl, found, `lines/${params.line}/events`, { after: next }),
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
  const [line] = await database.query(lineOf, [id, author]);
  const read = countedLine.safeParse(line);
  if (read.success) return read.data;
  throw new Problem(unknownLine, `The statements of ${handle} have no line ${id} that counts uses.`);
}

/** A time with its fraction as the database writes it, and an id. */
function isPosition(text: string): boolean {
  const [, time = ''] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z),[!-~]{1,200}$/.exec(text) ?? [];
  return !Number.isNaN(Date.parse(time));
}

/** Time and id of the last use of the page before. */
function positionOf(after: string | undefined): [string | null, string | null] {
  if (after === undefined) return [null, null];
  const comma = after.indexOf(',');
  return [after.slice(0, comma), after.slice(comma + 1)];
}
