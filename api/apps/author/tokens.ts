// Tokens of an app: the owner makes them with their author key, for programs and for people who only read. The database has
// their hashes; each has scopes, an end, and the key with which it was made.
import { z } from 'zod';
import { createAuthorToken, hashAuthorToken } from '../../../lib/ownership-file.ts';
import { Problem } from '../../../lib/problem.ts';
import { isSameSecret } from '../../../lib/sealed-text.ts';
import { type OpenLedger, prefixStatements } from '../../billing/index.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { readingProblems, tooManyTokens, unknownToken } from '../problems.ts';
import { type AuthorServices, changeProblems, slugParams } from './endpoints.ts';
import { scope, scopeMeanings, scopes, viewerScopes } from './scopes.ts';

/** Tokens of an app that have not ended. */
const maximumTokens = 50;
const maximumDays = 365;

const tokenRow = z.object({
  id: z.string(),
  app: z.string(),
  name: z.string(),
  hash: z.string(),
  scopes: z.array(scope),
  author_key: z.string(),
  created_at: z.date(),
  expires_at: z.date(),
  revoked_at: z.date().nullable(),
  last_used_at: z.date().nullable(),
});
export type TokenRow = z.output<typeof tokenRow>;

/** A token as it is stored. */
type NewToken = Pick<TokenRow, 'id' | 'app' | 'name' | 'hash' | 'scopes' | 'author_key'> & { readonly days: number };

const defineStatement = prefixStatements('author-tokens');
const columns = 'id, app, name, hash, scopes, author_key, created_at, expires_at, revoked_at, last_used_at';
const created = z.object({ created_at: z.date(), expires_at: z.date() });
const nothing = z.unknown();
const statements = {
  find: defineStatement('find', `select ${columns} from author.token where id = $1`, tokenRow),
  list: defineStatement(
    'list',
    `select ${columns} from author.token
      where app = $1 and least(expires_at, revoked_at) > now() - interval '30 days' order by created_at desc, id`,
    tokenRow,
  ),
  lock: defineStatement('lock', `select pg_advisory_xact_lock(hashtextextended('author.token:' || $1, 0))`, nothing),
  add: defineStatement(
    'add',
    `insert into author.token (id, app, name, hash, scopes, author_key, expires_at)
      select $1, $2, $3, $4, $5::text[], $6, now() + $7::int * interval '1 day'
      where (select count(*) from author.token where app = $2 and revoked_at is null and expires_at > now()) < ${maximumTokens}
      returning created_at, expires_at`,
    created,
  ),
  // The audit log keeps what was done with them.
  clean: defineStatement('clean', `delete from author.token where expires_at < now() - interval '90 days'`, nothing),
  revoke: defineStatement(
    'revoke',
    `update author.token set revoked_at = coalesce(revoked_at, now()) where id = $1 and app = $2 returning name`,
    z.object({ name: z.string() }),
  ),
  use: defineStatement('use', 'update author.token set last_used_at = now() where id = $1', nothing),
} as const;

export class TokenStore {
  readonly #database: () => OpenLedger['database'];

  /** @param database throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  constructor(database: () => OpenLedger['database']) {
    this.#database = database;
  }

  /** The row of a token, whether it has ended or not. */
  async find(token: string): Promise<TokenRow | undefined> {
    const hash = hashAuthorToken(token);
    const [row] = await this.#database().query(statements.find, [toTokenId(hash)]);
    return row !== undefined && isSameSecret(hash, row.hash) ? row : undefined;
  }

  /** Tokens that have not ended, and those that have within the last 30 days, the newest first. */
  async list(app: string): Promise<TokenRow[]> {
    return this.#database().query(statements.list, [app]);
  }

  /** Stores a token. Returns undefined if the app has too many. */
  async add(token: NewToken): Promise<z.output<typeof created> | undefined> {
    const { id, app, name, hash, days } = token;
    return this.#database().transaction(async (transaction) => {
      await transaction.query(statements.clean, []);
      await transaction.query(statements.lock, [app]);
      const values = [id, app, name, hash, token.scopes, token.author_key, days];
      return (await transaction.query(statements.add, values))[0];
    });
  }

  /** Ends a token. Returns its name; undefined if the app has none of this id. */
  async revoke(app: string, id: string): Promise<string | undefined> {
    return (await this.#database().query(statements.revoke, [id, app]))[0]?.name;
  }

  /** Records that a token is used, once a minute. */
  async recordUse({ id, last_used_at: last }: TokenRow): Promise<void> {
    if (last !== null && Date.now() - last.getTime() < 60_000) return;
    await this.#database().query(statements.use, [id]);
  }
}

/** By which lists and the audit log name a token. */
function toTokenId(hash: string): string {
  return hash.slice(0, 12);
}

const tokenView = z.object({
  id: z.string().describe('Names the token in the audit log, after `token:`.'),
  name: z.string(),
  scopes: z.array(scope),
  state: z.enum(['active', 'expired', 'revoked']),
  made_with: z.string().describe('First 12 digits of the hash of the author key with which it was made.'),
  created_at: z.string().describe('RFC 3339.'),
  expires_at: z.string(),
  revoked_at: z.string().optional(),
  last_used_at: z.string().optional().describe('To the minute; absent if it was never used.'),
});

export const tokensView = z.object({
  tokens: z.array(tokenView).describe('Those that are active or have ended within the last 30 days, newest first.'),
});

export const createdTokenView = z.object({
  id: z.string(),
  token: z.string().describe('Shown only in this answer, and not stored. Send it as Authorization: Bearer.'),
  name: z.string(),
  scopes: z.array(scope),
  expires_at: z.string().describe('RFC 3339.'),
  message: z.string(),
});

const meanings = scopes.map((name) => `\`${name}\` (${scopeMeanings[name]})`).join('; ');

const tokenBody = z.strictObject({
  name: z
    .string()
    .trim()
    .min(1)
    .max(60)
    .regex(/^[^\p{Cc}\p{Cf}]*$/u, 'must be text on one line')
    .describe('What it is for, as the audit log shows it, such as GitHub Actions.'),
  scopes: z
    .array(scope)
    .min(1)
    .max(scopes.length)
    .default([...viewerScopes])
    .describe(`What it may do: ${meanings}. Default: ${viewerScopes.join(' and ')}, which change nothing.`),
  expires_in_days: z.int().min(1).max(maximumDays).describe(`Days until it ends, from 1 to ${maximumDays}.`),
});

export function createTokenEndpoints(services: AuthorServices): Endpoint[] {
  return [createListEndpoint(services), createTokenEndpoint(services), createRevokeEndpoint(services)];
}

function createListEndpoint({ access, tokens }: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}/tokens',
    operation: 'listTokens',
    tag: 'apps',
    summary: 'List the tokens of an app',
    description: 'Names, scopes, ends and last uses. The tokens themselves are not stored.',
    params: slugParams,
    output: tokensView,
    outputDescription: 'The tokens.',
    returnsCallerData: true,
    problems: readingProblems,
    head: 'as GET',
    handler: async ({ params }, context) => {
      const { app } = await access.identify(params.slug, context, 'listTokens');
      return { tokens: (await tokens.list(app.metadata.uid)).map(toTokenView) };
    },
  });
}

function toTokenView(row: TokenRow): z.input<typeof tokenView> {
  const { id, name, revoked_at: revoked, expires_at: expires } = row;
  return {
    id,
    name,
    scopes: row.scopes,
    state: revoked !== null ? 'revoked' : expires.getTime() <= Date.now() ? 'expired' : 'active',
    made_with: row.author_key.slice(0, 12),
    created_at: row.created_at.toISOString(),
    expires_at: expires.toISOString(),
    revoked_at: revoked?.toISOString(),
    last_used_at: row.last_used_at?.toISOString(),
  };
}

function createTokenEndpoint({ access, tokens }: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'POST',
    path: '/api/apps/{slug}/tokens',
    operation: 'createToken',
    tag: 'apps',
    summary: 'Make a token for an app',
    description:
      'For programs such as CI, and for people who may look and change nothing. It opens this app alone, and ends at its time, when it is revoked, or with the line of the key with which it is made. It cannot make tokens or delete the app.',
    params: slugParams,
    body: tokenBody,
    output: createdTokenView,
    outputDescription: 'The token.',
    returnsCallerData: true,
    problems: [...changeProblems, tooManyTokens],
    handler: async ({ params: { slug }, body }, context) => {
      const { name, expires_in_days: days } = body;
      const wanted = [...new Set(body.scopes)];
      const token = createAuthorToken();
      const hash = hashAuthorToken(token);
      const id = toTokenId(hash);
      const detail = { id, name, scopes: wanted, days };
      return access.act(slug, context, { operation: 'createToken', action: 'create-token', detail }, async (owner) => {
        const stored = await tokens.add({
          ...{ id, app: owner.app.metadata.uid, name, hash },
          ...{ scopes: wanted, author_key: owner.keyHash ?? '', days },
        });
        if (stored === undefined)
          throw new Problem(
            tooManyTokens,
            `An app has at most ${maximumTokens} tokens that have not ended. DELETE /api/apps/${slug}/tokens/{id} revokes one.`,
          );
        const expires = stored.expires_at.toISOString();
        const message = `Keep the token: it is shown only now. It may ${wanted.join(', ')} until ${expires}.`;
        return { id, token, name, scopes: wanted, expires_at: expires, message };
      });
    },
  });
}

function createRevokeEndpoint({ access, tokens }: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'DELETE',
    path: '/api/apps/{slug}/tokens/{id}',
    operation: 'revokeToken',
    tag: 'apps',
    summary: 'Revoke a token of an app',
    description: 'It opens nothing from now on. Revoking it again changes nothing.',
    params: slugParams.extend({
      id: z
        .string()
        .regex(/^[0-9a-f]{12}$/, 'must be the id of a token, 12 hexadecimal digits')
        .describe('Id of the token, as the list has it.'),
    }),
    output: z.object({ id: z.string(), name: z.string(), message: z.string() }),
    outputDescription: 'The token is revoked.',
    problems: [...changeProblems, unknownToken],
    handler: async ({ params: { slug, id } }, context) =>
      access.act(
        slug,
        context,
        { operation: 'revokeToken', action: 'revoke-token', detail: { id } },
        async ({ app }) => {
          const name = await tokens.revoke(app.metadata.uid, id);
          if (name === undefined)
            throw new Problem(unknownToken, `${slug} has no token ${id}. GET /api/apps/${slug}/tokens lists them.`);
          return { id, name, message: `${name} is revoked.` };
        },
      ),
  });
}
