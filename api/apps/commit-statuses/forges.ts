// How the status of a commit is reported to each kind of forge, and what the forge's answer means.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import type { Repository } from '../../../lib/repository.ts';
import { forgeUnsupported } from '../problems.ts';
import type { ForgeKind, SignInProvider } from '../sign-in/config.ts';

/** A host and the forge behind it. */
export interface KnownForge {
  readonly kind: ForgeKind;
  /** Base URL of its API. */
  readonly api: string;
}

export const knownForges: Readonly<Record<string, KnownForge>> = {
  'github.com': { kind: 'github', api: 'https://api.github.com' },
  'gitlab.com': { kind: 'gitlab', api: 'https://gitlab.com/api/v4' },
  'codeberg.org': { kind: 'gitea', api: 'https://codeberg.org/api/v1' },
};

export type ForgeProvider = Pick<SignInProvider, 'host' | 'forge' | 'apiUrl'>;

/**
 * Finds the forge of a repository: one that everyone knows, or one with whose accounts authors sign in here.
 *
 * @throws Problem (forge-unsupported)
 */
export function findForge(repository: Repository, providers: readonly ForgeProvider[]): KnownForge {
  const { host, url } = repository;
  if (repository.package !== undefined)
    throw new Problem(forgeUnsupported, `${url} is a package, which has no commits at a forge.`);
  const provider = providers.find((each) => each.host === host);
  if (provider !== undefined) return { kind: provider.forge, api: provider.apiUrl };
  if (Object.hasOwn(knownForges, host) && knownForges[host] !== undefined) return knownForges[host];
  const hosts = [...new Set([...Object.keys(knownForges), ...providers.map((each) => each.host)])];
  throw new Problem(
    forgeUnsupported,
    `This installation does not know which forge ${host} is. It knows ${hosts.join(', ')}. Its operator can add ${host} to MOORAGE_SIGN_IN_PROVIDERS.`,
  );
}

/** Name under which a forge shows the status. */
export const statusName = 'moorage';

/** Maximum characters of a description, which is GitHub's. */
export const maximumDescription = 140;

/** `ended`: the build was given up for another commit before there was a result. */
export const statusState = z.enum(['pending', 'success', 'failure', 'ended']);
export type StatusState = z.output<typeof statusState>;

export interface ReportedStatus {
  readonly commit: string;
  readonly state: StatusState;
  readonly description: string;
  readonly targetUrl: string;
}

/** An HTTP request to a forge. */
export interface StatusRequest {
  readonly url: string;
  readonly method: 'POST';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** GitLab: https://docs.gitlab.com/api/commits/#set-commit-pipeline-status */
const gitlabStates = { pending: 'pending', success: 'success', failure: 'failed', ended: 'canceled' } as const;
/** GitHub: https://docs.github.com/en/rest/commits/statuses. Gitea and Forgejo have the same. */
const githubStates = { pending: 'pending', success: 'success', failure: 'failure', ended: 'error' } as const;

export function buildStatusRequest(
  { kind, api }: KnownForge,
  { owner, name }: Pick<Repository, 'owner' | 'name'>,
  { commit, state, description, targetUrl }: ReportedStatus,
  token: string,
): StatusRequest {
  const headers = {
    accept: 'application/json',
    'content-type': 'application/json',
    authorization: `Bearer ${token}`,
    'user-agent': 'moorage',
  };
  const common = { description, target_url: targetUrl };
  const sha = encodeURIComponent(commit);
  if (kind === 'gitlab')
    return {
      url: `${api}/projects/${encodeURIComponent(`${owner}/${name}`)}/statuses/${sha}`,
      method: 'POST',
      headers,
      body: JSON.stringify({ ...common, name: statusName, state: gitlabStates[state] }),
    };
  return {
    url: `${api}/repos/${encodeURIComponent(owner)}/${encodeURIComponent(name)}/statuses/${sha}`,
    method: 'POST',
    headers,
    body: JSON.stringify({ ...common, context: statusName, state: githubStates[state] }),
  };
}

/** What to do after the answer of a forge. */
export type StatusAnswer =
  | { readonly outcome: 'delivered' }
  /** The forge rejects the token. */
  | { readonly outcome: 'token-refused'; readonly status: number }
  /** Another attempt would have the same result. */
  | { readonly outcome: 'refused'; readonly why: string }
  | { readonly outcome: 'failed'; readonly why: string; readonly waitMs?: number };

const maxWaitMs = 4 * 3_600_000;
const errorBody = z.looseObject({ message: z.unknown() });

/** Nothing that the forge wrote is repeated: it could quote the token. */
export function readStatusAnswer(
  kind: ForgeKind,
  { status, headers, bytes }: { readonly status: number; readonly headers: Headers; readonly bytes: Uint8Array },
): StatusAnswer {
  if (status >= 200 && status < 300) return { outcome: 'delivered' };
  if (status >= 300 && status < 400)
    return {
      outcome: 'refused',
      why: `The forge redirects (${status}), which is not followed. Was the repository moved?`,
    };
  if (isLimit(status, headers))
    return { outcome: 'failed', why: `The forge limits requests (${status}).`, ...readWait(headers) };
  if (status >= 500 || status === 408) return { outcome: 'failed', why: `The forge answered with status ${status}.` };
  return readRefusal(kind, status, readMessage(bytes));
}

/** @param message in lower case */
function readRefusal(kind: ForgeKind, status: number, message: string): StatusAnswer {
  // GitLab, of a status that is repeated because its first answer was lost.
  if (kind === 'gitlab' && status === 400 && message.includes('cannot transition status'))
    return { outcome: 'delivered' };
  // Of a commit that the forge does not have, such as after a forced push.
  const isOfCommit = /\b(?:commit|sha|object)\b/.test(message);
  if (status === 404 && isOfCommit) return { outcome: 'refused', why: 'The forge does not have the commit.' };
  if (status === 401 || status === 403 || status === 404) return { outcome: 'token-refused', status };
  return { outcome: 'refused', why: `The forge refused the status of this commit (${status}).` };
}

/** GitHub also answers 403 if it was asked too often. */
function isLimit(status: number, headers: Headers): boolean {
  if (status === 429) return true;
  return status === 403 && (headers.get('x-ratelimit-remaining') === '0' || headers.has('retry-after'));
}

function readWait(headers: Headers): { waitMs?: number } {
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const reset = Number(headers.get('x-ratelimit-reset') ?? Number.NaN) * 1_000 - Date.now();
  const wait = [seconds * 1_000, reset].find((ms) => Number.isFinite(ms) && ms > 0);
  return wait === undefined ? {} : { waitMs: Math.min(Math.ceil(wait), maxWaitMs) };
}

function readMessage(bytes: Uint8Array): string {
  try {
    const { message } = errorBody.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
    return (typeof message === 'string' ? message : JSON.stringify(message)).toLowerCase();
  } catch {
    return '';
  }
}
