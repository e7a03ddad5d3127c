// Asks a forge for one repository through the guarded fetcher, and says in a sentence why there is no answer.
import { Problem } from '../../../../lib/problem.ts';
import type { Fetcher } from '../../../tools/index.ts';
import {
  addressesOf,
  type ForgeAddress,
  type ForgeKind,
  type ForgeReport,
  type ForgeRepository,
  type KnownForge,
  readReport,
} from './forges.ts';

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

type Fetched = Awaited<ReturnType<Fetcher['fetch']>>;

const unreachable = 'The forge could not be reached.';
const unreadable = 'The forge did not answer in a form that is known here.';
const gone = 'The forge has no public repository at this address.';
const maxWaitMs = 86_400_000;

/** @throws the reason of the signal when it is aborted */
export async function askForge(question: ForgeQuestion): Promise<ForgeAnswer> {
  let answer: ForgeAnswer = { outcome: 'failed', reason: unreadable };
  for (const address of addressesOf(question.repository, question.known)) {
    answer = await askAt(address, question);
    // A forge of another kind does not have this address, or answers with a page.
    if (answer.outcome !== 'gone' && !(answer.outcome === 'failed' && answer.reason === unreadable)) return answer;
  }
  return answer;
}

async function askAt(address: ForgeAddress, { before, fetcher, signal }: ForgeQuestion): Promise<ForgeAnswer> {
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
    return answerOf(fetched, address.kind);
  } catch (error) {
    signal.throwIfAborted();
    return { outcome: 'failed', reason: reasonOf(error) };
  }
}

function answerOf({ status, headers, bytes }: Fetched, kind: ForgeKind): ForgeAnswer {
  if (status === 304) return { outcome: 'unchanged' };
  if (status === 404 || status === 410) return { outcome: 'gone', reason: gone };
  if (status === 429 || (status === 403 && headers.get('x-ratelimit-remaining') === '0'))
    return { outcome: 'limited', reason: 'The forge limits how often it is asked.', waitMs: waitOf(headers) };
  if (status !== 200) return { outcome: 'failed', reason: `The forge answered with status ${status}.` };
  const report = readReport(kind, bytes);
  return report === undefined
    ? { outcome: 'failed', reason: unreadable }
    : { outcome: 'answered', kind, etag: headers.get('etag'), report };
}

/** Until when the forge wants to be left alone: Retry-After in seconds, or the time at which its limit is reset. */
function waitOf(headers: Headers): number {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const reset = Number(headers.get('x-ratelimit-reset') ?? Number.NaN) * 1_000 - Date.now();
  const wait = [seconds * 1_000, reset].find((ms) => Number.isFinite(ms) && ms > 0) ?? 3_600_000;
  return Math.min(Math.ceil(wait), maxWaitMs);
}

function reasonOf(error: unknown): string {
  if (error instanceof Problem && error.type.slug === 'url-refused')
    return 'The forge is not asked: it is not on the open internet.';
  return unreachable;
}
