// GET /api/authors/{handle} and POST /api/authors/{handle}/keys: what everybody may know of an author, and how he proves
// that he is one.
import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../../../http/index.ts';
import { findAuthor, issueKey } from '../access.ts';
import { unknownAuthor } from '../problems.ts';
import { authorUrl, handleParams, hostField, type RevenueServices } from './shared.ts';

export function authorEndpoints({ apps, baseUrl }: RevenueServices): Endpoint[] {
  return [
    defineEndpoint({
      method: 'GET',
      path: '/api/authors/{handle}',
      operation: 'getAuthor',
      tag: 'authors',
      summary: 'Get the hosted apps of an author and how he reads his statements',
      description:
        'An author is the owner of repositories that are hosted here. What he earns is in his statements, which only he can read.',
      params: handleParams,
      query: z.strictObject(hostField),
      output: z.object({
        author: z.string().describe('Git host and owner.'),
        apps: z.array(
          z.object({ slug: z.string(), share: z.number().describe('Part of a use that the author accrues.') }),
        ),
        has_key: z.boolean().describe('Whether a repository has the line of a key.'),
        statements_url: z.string(),
        keys_url: z.string().describe('POST to it for a key.'),
      }),
      outputDescription: 'The author.',
      problems: [unknownAuthor],
      head: 'as GET',
      handler: async ({ params, query }) => {
        const { author, handle, apps: own } = findAuthor(apps, params.handle, query.host);
        return Promise.resolve({
          author,
          apps: own.map(({ app, sharePpm }) => ({ slug: app, share: sharePpm / 1_000_000 })),
          has_key: own.some(({ keys }) => keys.length > 0),
          statements_url: authorUrl(baseUrl, { author, handle }, 'statements'),
          keys_url: authorUrl(baseUrl, { author, handle }, 'keys'),
        });
      },
    }),
    defineEndpoint({
      method: 'POST',
      path: '/api/authors/{handle}/keys',
      operation: 'issueAuthorKey',
      tag: 'authors',
      summary: 'Get a key with which an author reads his statements',
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
