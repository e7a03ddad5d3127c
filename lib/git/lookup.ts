// Asks the operator whether a repository can be read, before anything is made for it. The operator reaches git servers;
// the API faces the internet, and runs no git.
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, RequestListener } from 'node:http';
import { json } from 'node:stream/consumers';
import { z } from 'zod';
import { readRepository, RepositoryError, type GitHosts, type Repository } from '../repository.ts';

/** Path at the operator's internal port. */
export const lookupPath = '/repository';

const lookupRequest = z.strictObject({ repo: z.string().max(512) });

/** What the git server said: the newest commit, or why there is none. `final`: asking again does not help. */
export const lookupAnswer = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    commit: z.string(),
    /** What HEAD stands for, like refs/heads/main; HEAD itself where the server does not say. */
    reference: z.string(),
  }),
  z.object({ ok: z.literal(false), rule: z.string(), message: z.string(), fix: z.string(), final: z.boolean() }),
]);
export type LookupAnswer = z.output<typeof lookupAnswer>;

export interface LookupListenerOptions {
  readonly token: string;
  readonly hosts: GitHosts;
  /** Asks the git server. Never rejects. */
  readonly resolve: (repository: Repository) => Promise<LookupAnswer>;
  /** Maximum lookups at once; one more is refused. */
  readonly limit: number;
}

/** Answers lookups. Two of one repository at the same time are one. */
export function lookupListener({ token, hosts, resolve, limit }: LookupListenerOptions): RequestListener {
  const running = new Map<string, Promise<LookupAnswer>>();

  async function answer(request: IncomingMessage): Promise<[status: number, body?: LookupAnswer]> {
    if (!showsBearer(request, token)) return [401];
    if (request.method !== 'POST') return [405];
    // A repository has at most 512 characters.
    if (Number(request.headers['content-length'] ?? Infinity) > 4_096) return [413];
    const asked = lookupRequest.safeParse(await json(request).catch(() => undefined));
    if (!asked.success) return [400];
    // Only allowed hosts, whatever the caller says: a taken-over API asks for nothing else.
    const repository = readRepository(asked.data.repo, hosts);
    if (repository instanceof RepositoryError) return [400];
    const known = running.get(repository.url);
    if (known === undefined && running.size >= limit) return [503];
    const found = known ?? resolve(repository).finally(() => running.delete(repository.url));
    running.set(repository.url, found);
    return [200, await found];
  }

  return (request, response) => {
    answer(request).then(
      ([status, body]) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? { status }));
      },
      () => {
        response.destroy();
      },
    );
  };
}

function showsBearer({ headers }: IncomingMessage, token: string): boolean {
  const [given, expected] = [Buffer.from(headers.authorization ?? ''), Buffer.from(`Bearer ${token}`)];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

export interface LookupClientOptions {
  /** Base URL of the operator's internal port. */
  readonly operatorUrl: string;
  readonly token: string;
  readonly timeoutMs?: number;
}

/** Asks for the newest commit of a repository. @throws Error when the operator does not answer, or not in time */
export function lookupClient({
  operatorUrl,
  token,
  timeoutMs = 10_000,
}: LookupClientOptions): (repository: Repository) => Promise<LookupAnswer> {
  return async ({ cloneUrl }) => {
    const response = await fetch(new URL(lookupPath, operatorUrl), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ repo: cloneUrl }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!response.ok) throw new Error(`the operator answered ${response.status}`);
    return lookupAnswer.parse(await response.json());
  };
}
