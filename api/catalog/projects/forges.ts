// Requests stars and licence of a repository from its forge (GitHub, GitLab, Gitea).
import licenses from 'spdx-license-list';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { parseAcceptedRepository } from '../../../lib/repository.ts';
import { type KnownForge, knownForges } from '../../apps/index.ts';
import type { Fetcher } from '../../tools/index.ts';

export type ForgeAnswer =
  | {
      readonly outcome: 'answered';
      readonly kind: ForgeKind;
      readonly etag: string | null;
      readonly report: ForgeReport;
    }
  | { readonly outcome: 'unchanged' }
  /** There is no such repository. */
  | { readonly outcome: 'gone'; readonly reason: string }
  /** The whole forge is to be left alone for a while. */
  | { readonly outcome: 'limited'; readonly reason: string; readonly waitMs: number }
  | { readonly outcome: 'failed'; readonly reason: string };

export interface ForgeQuestion {
  readonly repository: ForgeRepository;
  /** Which kind answered before, with which ETag. */
  readonly before: { readonly forge: ForgeKind | null; readonly etag: string | null };
  readonly fetcher: Pick<Fetcher, 'fetch'>;
  readonly signal: AbortSignal;
  readonly known?: Readonly<Record<string, KnownForge>> | undefined;
}

type FetchResult = Awaited<ReturnType<Fetcher['fetch']>>;

const unreachable = 'The forge could not be reached.';
const unreadable = 'The forge did not answer in a form that is known here.';
const gone = 'The forge has no public repository at this address.';
const maxWaitMs = 86_400_000;

/** @throws the reason of the signal when it is aborted */
export async function requestReport(question: ForgeQuestion): Promise<ForgeAnswer> {
  let answer: ForgeAnswer = { outcome: 'failed', reason: unreadable };
  for (const address of listAddresses(question.repository, question.known)) {
    answer = await requestFrom(address, question);
    // A forge of another kind does not have this address, or answers with a page.
    if (answer.outcome !== 'gone' && !(answer.outcome === 'failed' && answer.reason === unreadable)) return answer;
  }
  return answer;
}

async function requestFrom(address: ForgeAddress, { before, fetcher, signal }: ForgeQuestion): Promise<ForgeAnswer> {
  const { forge, etag } = before;
  try {
    const fetched = await fetcher.fetch({
      url: address.url,
      headers: {
        accept: 'application/json',
        'user-agent': 'Moorage/1.1 (counts stars)',
        ...(etag === null || forge !== address.kind ? {} : { 'if-none-match': etag }),
      },
      maxBytes: 1_000_000,
      timeoutMs: 10_000,
      signal,
    });
    return toAnswer(fetched, address.kind);
  } catch (error) {
    signal.throwIfAborted();
    return { outcome: 'failed', reason: describeError(error) };
  }
}

function toAnswer({ status, headers, bytes }: FetchResult, kind: ForgeKind): ForgeAnswer {
  if (status === 304) return { outcome: 'unchanged' };
  if (status === 404 || status === 410) return { outcome: 'gone', reason: gone };
  if (status === 429 || (status === 403 && headers.get('x-ratelimit-remaining') === '0'))
    return { outcome: 'limited', reason: 'The forge limits how often it is asked.', waitMs: readWait(headers) };
  if (status !== 200) return { outcome: 'failed', reason: `The forge answered with status ${status}.` };
  const report = readReport(kind, bytes);
  return report === undefined
    ? { outcome: 'failed', reason: unreadable }
    : { outcome: 'answered', kind, etag: headers.get('etag'), report };
}

/** Until when the forge wants to be left alone: Retry-After in seconds, or the time at which its limit is reset. */
function readWait(headers: Headers): number {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const reset = Number(headers.get('x-ratelimit-reset') ?? Number.NaN) * 1_000 - Date.now();
  const wait = [seconds * 1_000, reset].find((ms) => Number.isFinite(ms) && ms > 0) ?? 3_600_000;
  return Math.min(Math.ceil(wait), maxWaitMs);
}

function describeError(error: unknown): string {
  if (error instanceof Problem && error.type.slug === 'url-refused')
    return 'The forge is not asked: it is not on the open internet.';
  return unreachable;
}

export const forgeKinds = ['github', 'gitea', 'gitlab'] as const;
export type ForgeKind = (typeof forgeKinds)[number];

/** A repository on a forge. */
export interface ForgeRepository {
  /** In normal form: the same for all spellings. */
  readonly url: string;
  readonly host: string;
  /** Owner and name; on GitLab there may be groups between them. */
  readonly path: readonly string[];
}

/** Where to ask. */
export interface ForgeAddress {
  readonly kind: ForgeKind;
  readonly url: string;
}

/** What a forge reports. */
export interface ForgeReport {
  readonly stars: number;
  /** SPDX identifier. */
  readonly license: string | undefined;
  /** Number of the account that owns the repository, which stays when names change; undefined where it is not said. */
  readonly account?: string;
}

/** The repository at an address; undefined where the address does not have the form of one. */
export function parseForgeRepository(address: string): ForgeRepository | undefined {
  if (!URL.canParse(address)) return undefined;
  const { protocol, host, pathname } = new URL(address);
  const path = pathname
    .replace(/\/$/, '')
    .replace(/\.git$/i, '')
    .split('/')
    .slice(1);
  // A registry of packages knows no stars.
  if (parseAcceptedRepository(address).package !== undefined) return undefined;
  if (path.length < 2 || path.some((part) => !/^(?!\.{1,2}$)[\w.~+-]{1,100}$/.test(part))) return undefined;
  return { url: `${protocol}//${host}/${path.join('/')}`, host, path };
}

/** Where to ask for a repository, in this order. A host that is not known is asked as each kind that anybody can run. */
export function listAddresses(
  { host, path, url }: ForgeRepository,
  known: Readonly<Record<string, KnownForge>> = knownForges,
): ForgeAddress[] {
  const forge = known[host];
  if (forge !== undefined) return [createAddress(forge, path)];
  const { origin } = new URL(url);
  const guesses: KnownForge[] = [
    { kind: 'gitea', api: `${origin}/api/v1` },
    { kind: 'gitlab', api: `${origin}/api/v4` },
  ];
  return guesses.map((guess) => createAddress(guess, path));
}

function createAddress({ kind, api }: KnownForge, path: readonly string[]): ForgeAddress {
  const parts = path.map((part) => encodeURIComponent(part));
  if (kind === 'gitlab') return { kind, url: `${api}/projects/${parts.join('%2F')}?license=true` };
  return { kind, url: `${api}/repos/${parts.slice(0, 2).join('/')}` };
}

const stars = z.int().min(0).max(2_147_483_647);
const owned = z.looseObject({ id: z.int().positive() }).nullish().catch(null);
const toAccountField = (kind: ForgeKind, owner: { id: number } | null | undefined): { account?: string } =>
  owner == null ? {} : { account: `${kind}:${owner.id}` };
const shapes = {
  github: z
    .looseObject({
      stargazers_count: stars,
      license: z.looseObject({ spdx_id: z.string().nullish() }).nullish(),
      owner: owned,
    })
    .transform((body) => ({
      stars: body.stargazers_count,
      license: toSpdxId(body.license?.spdx_id),
      ...toAccountField('github', body.owner),
    })),
  gitea: z
    .looseObject({ stars_count: stars, licenses: z.array(z.string()).nullish(), owner: owned })
    .transform((body) => ({
      stars: body.stars_count,
      license: toSingleLicense(body.licenses ?? []),
      ...toAccountField('gitea', body.owner),
    })),
  gitlab: z
    .looseObject({
      star_count: stars,
      license: z.looseObject({ key: z.string().nullish() }).nullish(),
      namespace: owned,
    })
    .transform((body) => ({
      stars: body.star_count,
      license: toSpdxId(body.license?.key),
      ...toAccountField('gitlab', body.namespace),
    })),
} satisfies Record<ForgeKind, z.ZodType<ForgeReport>>;

/** What an answer reports; undefined where it is not one of this kind of forge. */
export function readReport(kind: ForgeKind, bytes: Uint8Array): ForgeReport | undefined {
  try {
    return shapes[kind].safeParse(JSON.parse(Buffer.from(bytes).toString('utf8'))).data;
  } catch {
    return undefined;
  }
}

const ids = new Map(Object.keys(licenses).map((id) => [id.toLowerCase(), id]));

/** The identifier as SPDX spells it; undefined for what is none, such as NOASSERTION. */
function toSpdxId(text: string | null | undefined): string | undefined {
  return ids.get(text?.toLowerCase() ?? '');
}

/** Several licences may be a choice or hold for different parts; nobody says which. */
function toSingleLicense(licenses: readonly string[]): string | undefined {
  return licenses.length === 1 ? toSpdxId(licenses[0]) : undefined;
}
