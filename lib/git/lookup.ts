// Lets the API ask the operator whether a repository can be read, before anything is created for it, and which author keys
// its newest commit has. The operator reaches git servers; the API faces the internet and runs no git.
import type { IncomingMessage, RequestListener } from 'node:http';
import { json } from 'node:stream/consumers';
import { z } from 'zod';
import { readRepository, RepositoryError, type GitHosts, type Repository } from '../repository.ts';
import { isSameSecret } from '../sealed-text.ts';

/** Path on the operator's internal port. */
export const lookupPath = '/repository';

/**
 * How a repository is read: `public` over https, `private` over SSH with its deploy key. `either` tries the second if the
 * first finds none. `none`: its server is not asked, and the answer has the deploy key alone.
 */
export type LookupVia = z.infer<typeof lookupVia>;
const lookupVia = z.enum(['public', 'private', 'either', 'none']);

const lookupRequest = z.strictObject({
  repo: z.string().max(512),
  via: lookupVia.default('public'),
  /** Whether the answer names the author keys. */
  keys: z.boolean().default(false),
});
export type LookupQuery = Omit<z.output<typeof lookupRequest>, 'repo'>;

/** The public half of a deploy key, for a person who adds it to a repository. */
const offeredKey = z.object({
  publicKey: z.string(),
  fingerprint: z.string(),
  /** Where its forge takes it; absent: not known. */
  page: z.string().optional(),
});
export type OfferedKey = z.output<typeof offeredKey>;

/** The git server's response: the newest commit, or why there is none. If `final`, a retry does not help. */
export const lookupAnswer = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    commit: z.string(),
    /** What HEAD points to, like refs/heads/main; HEAD itself if the server does not say. */
    reference: z.string(),
    /** It was read with its deploy key. */
    isPrivate: z.boolean().optional(),
    /** Hashes of the author keys in the newest commit; absent if they were not requested or cannot be read. */
    authorKeys: z.array(z.string()).optional(),
  }),
  z.object({
    ok: z.literal(false),
    rule: z.string(),
    message: z.string(),
    fix: z.string(),
    final: z.boolean(),
    /** The key that would open it, if it is private; absent: this installation has none for its server. */
    deployKey: offeredKey.optional(),
  }),
]);
export type LookupAnswer = z.output<typeof lookupAnswer>;

export interface LookupListenerOptions {
  readonly token: string;
  readonly hosts: GitHosts;
  /** Asks the git server. Never rejects. */
  readonly resolve: (repository: Repository, query: LookupQuery) => Promise<LookupAnswer>;
  /** Maximum concurrent lookups; others wait. */
  readonly limit: number;
  /** How long a lookup may wait for its turn; default 10 s, after which {@link createLookupClient} has given up. */
  readonly patienceMs?: number;
}

const answerMs = 10_000;

/** Further lookups are refused: their turn would come too late. */
const maximumWaiting = 64;

/** Answers lookups. Concurrent lookups of one repository share one request to its server. */
export function createLookupListener({
  token,
  hosts,
  resolve,
  limit,
  patienceMs = answerMs,
}: LookupListenerOptions): RequestListener {
  const lookups = new Map<string, Promise<LookupAnswer>>();
  const waiting: (() => void)[] = [];
  let running = 0;

  async function resolveInTurn(repository: Repository, query: LookupQuery): Promise<LookupAnswer> {
    const askedAt = performance.now();
    if (running < limit) running += 1;
    else await new Promise<void>((begin) => waiting.push(begin));
    try {
      // Otherwise lookups on a slow server, which nobody waits for any more, would hold up those that come after them.
      if (performance.now() - askedAt > patienceMs) throw new Error('the caller has given up');
      return await resolve(repository, query);
    } finally {
      const begin = waiting.shift();
      if (begin === undefined) running -= 1;
      else begin();
    }
  }

  async function answer(request: IncomingMessage): Promise<[status: number, body?: LookupAnswer]> {
    if (!hasBearerToken(request, token)) return [401];
    if (request.method !== 'POST') return [405];
    // A repository has at most 512 characters.
    if (Number(request.headers['content-length'] ?? Infinity) > 4_096) return [413];
    const parsed = lookupRequest.safeParse(await json(request).catch(() => undefined));
    if (!parsed.success) return [400];
    // Only allowed hosts, whatever the caller says, so that a compromised API can reach no other.
    const repository = readRepository(parsed.data.repo, hosts);
    if (repository instanceof RepositoryError) return [400];
    const { repo: _repo, ...query } = parsed.data;
    // No server is asked, so nothing is slow, and who asks for keys holds up nobody.
    if (query.via === 'none') return [200, await resolve(repository, query)];
    const subject = `${repository.url} ${query.via} ${query.keys}`;
    const pending = lookups.get(subject);
    if (pending === undefined && waiting.length >= maximumWaiting) return [503];
    const lookup = pending ?? resolveInTurn(repository, query).finally(() => lookups.delete(subject));
    lookups.set(subject, lookup);
    return [200, await lookup];
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

function hasBearerToken({ headers }: IncomingMessage, token: string): boolean {
  return isSameSecret(headers.authorization ?? '', `Bearer ${token}`);
}

export interface LookupClientOptions {
  /** Base URL of the operator's internal port. */
  readonly operatorUrl: string;
  readonly token: string;
  readonly timeoutMs?: number;
}

/**
 * Looks up the newest commit of a repository, and the author keys in it if `keys` is set. Unless `via` says otherwise, it is
 * read as the repository says, publicly or with its deploy key.
 *
 * @throws Error if the operator does not answer in time
 */
export function createLookupClient({
  operatorUrl,
  token,
  timeoutMs = answerMs,
}: LookupClientOptions): (repository: Repository, query?: Partial<LookupQuery>) => Promise<LookupAnswer> {
  return async ({ cloneUrl, isPrivate = false }, query = {}) => {
    const response = await fetch(new URL(lookupPath, operatorUrl), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ repo: cloneUrl, via: isPrivate ? 'private' : 'public', ...query }),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!response.ok) throw new Error(`the operator answered ${response.status}`);
    return lookupAnswer.parse(await response.json());
  };
}
