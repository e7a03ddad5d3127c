// Asks a forge, with the token of an account, who the account is and whether it can push to a repository.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import type { Repository } from '../../../lib/repository.ts';
import { forgeUnreachable } from '../problems.ts';
import type { ForgeKind, SignInProvider } from './config.ts';

/** A forge answers within this time. */
const limitMs = 10_000;
const maximumBytes = 1_048_576;

const accessLevel = z.object({ access_level: z.int() }).nullish();

/** How each kind of forge is asked, and what of its answer counts. */
interface Dialect {
  /** Path of the account. */
  readonly account: string;
  readonly toRepositoryPath: (owner: string, name: string) => string;
  readonly login: z.ZodType<string>;
  /** The full name of the repository and whether the account can push to it. */
  readonly permissions: z.ZodType<{ readonly name: string; readonly canPush: boolean }>;
}

/** GitLab lets developers (30) push. */
const developer = 30;

const githubPermissions = z
  .looseObject({ full_name: z.string(), permissions: z.object({ push: z.boolean() }).optional() })
  .transform(({ full_name: name, permissions }) => ({ name, canPush: permissions?.push === true }));

const likeGitHub = {
  account: '/user',
  toRepositoryPath: (owner, name) => `/repos/${encodeURIComponent(owner)}/${encodeURIComponent(name)}`,
  login: z.looseObject({ login: z.string().min(1).max(100) }).transform(({ login }) => login),
  permissions: githubPermissions,
} satisfies Dialect;

const dialects: Readonly<Record<ForgeKind, Dialect>> = {
  github: likeGitHub,
  gitea: likeGitHub,
  gitlab: {
    account: '/user',
    toRepositoryPath: (owner, name) => `/projects/${encodeURIComponent(`${owner}/${name}`)}`,
    login: z.looseObject({ username: z.string().min(1).max(100) }).transform(({ username }) => username),
    permissions: z
      .looseObject({
        path_with_namespace: z.string(),
        permissions: z.object({ project_access: accessLevel, group_access: accessLevel }).optional(),
      })
      .transform(({ path_with_namespace: name, permissions }) => {
        const levels = [permissions?.project_access?.access_level, permissions?.group_access?.access_level];
        return { name, canPush: levels.some((level) => level !== undefined && level >= developer) };
      }),
  },
};

/**
 * The name of the account that a token belongs to; undefined if the forge does not accept the token.
 *
 * @throws Problem (forge-unreachable)
 */
export async function fetchAccount(provider: SignInProvider, token: string): Promise<string | undefined> {
  const { account, login } = dialects[provider.forge];
  return fetchFromForge(provider, account, token, login);
}

/**
 * Whether an account can push to a repository now. A repository of another host, a package, and one that the forge knows by
 * another name, are none that it can vouch for.
 *
 * @throws Problem (forge-unreachable)
 */
export async function canPush(provider: SignInProvider, repository: Repository, token: string): Promise<boolean> {
  const { host, owner, name } = repository;
  if (repository.package !== undefined || host !== provider.host) return false;
  const { toRepositoryPath, permissions } = dialects[provider.forge];
  const found = await fetchFromForge(provider, toRepositoryPath(owner, name), token, permissions);
  return found?.canPush === true && found.name.toLowerCase() === `${owner}/${name}`.toLowerCase();
}

/** Undefined if the forge refuses, which it also does for what the account may not see. */
async function fetchFromForge<Value>(
  { apiUrl, label }: SignInProvider,
  path: string,
  token: string,
  schema: z.ZodType<Value>,
): Promise<Value | undefined> {
  const fail = (why: string): Problem =>
    new Problem(
      forgeUnreachable,
      `${label} ${why}, so it is unknown what your account may do. Nothing was changed. Try again in a minute.`,
      { headers: { 'retry-after': '60' } },
    );
  const headers = { accept: 'application/json', authorization: `Bearer ${token}`, 'user-agent': 'moorage' };
  // A redirect leads to another repository or host, which must not get the token.
  const options = { headers, redirect: 'manual', signal: AbortSignal.timeout(limitMs) } as const;
  const response = await fetch(`${apiUrl}${path}`, options).catch(() => {
    throw fail('does not answer');
  });
  const text = await readText(response).catch(() => {
    throw fail('did not end its answer');
  });
  const { status } = response;
  // A forge also answers 403 and 429 if an account has asked too often.
  if (status >= 500 || status === 429 || response.headers.get('x-ratelimit-remaining') === '0')
    throw fail(`answers ${status}`);
  if (status !== 200) return undefined;
  const parsed = schema.safeParse(parseJson(text));
  if (!parsed.success) throw fail('gave an answer of another form');
  return parsed.data;
}

async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maximumBytes) throw new Error('the answer is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
