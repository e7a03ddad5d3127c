// POST /api/authors/{handle}/disputes: an author objects to a statement, or to one line of it.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../../../http/index.ts';
import { findAuthor, refuseFrozen, requireKey } from '../access.ts';
import { statementFinal, unknownLine } from '../problems.ts';
import { firstDay, monthField } from '../statement/month.ts';
import { lineOf, openDispute } from '../store/statements.ts';
import { statementProblems } from './statements.ts';
import { handleParams, hostField, type RevenueServices } from './shared.ts';

export function disputeEndpoint({ apps, database }: RevenueServices): Endpoint {
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
      const found = findAuthor(apps, params.handle, query.host);
      requireKey(headers, found);
      await refuseFrozen(database(), found);
      const { month, line, message } = body;
      if (line !== undefined) {
        const [known] = await database().query(lineOf, [line, found.author]);
        if (known?.month.slice(0, 7) !== month)
          throw new Problem(
            unknownLine,
            `The statement of ${month} has no line ${line}. Ids of lines are in the statement.`,
          );
      }
      const id = randomUUID();
      const [opened] = await database().query(openDispute, [
        id,
        found.author,
        firstDay(month),
        line ?? null,
        message,
        null,
      ]);
      if (opened === undefined)
        throw new Problem(
          statementFinal,
          `The statement of ${month} is final. Contact the operator of this installation.`,
        );
      log.warn({ author: found.author, month, line, dispute: id }, 'an author disputes a statement');
      return {
        id,
        month,
        state: 'disputed' as const,
        message: `Your dispute of ${month} is recorded. Its answer will be in the statement.`,
      };
    },
  });
}
