// Decides what may be asked of the registry: a build reads and writes its own app's repositories, and those of nobody
// else; the operator lists and removes the manifests of an app.
import { cacheRepository, imageRepository, platformFolders } from '../../crds/names.ts';
import type { AppIdentity, TokenPurpose } from '../../lib/app-tokens.ts';

/** A request of the distribution API that may be made. */
export interface RegistryRequest {
  readonly repository: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The upload that it goes on with, as the proxy named it. */
  readonly session?: string;
}

export type Decision =
  { readonly allowed: RegistryRequest } | { readonly refused: string; readonly status: 403 | 404 | 405 };

const component = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const digest = '[a-z0-9+._-]+:[0-9a-f]{32,128}';
const form = new RegExp(
  `^/v2/(?<repository>${component}(?:/${component})*)/(?:` +
    `(?<manifest>manifests/(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}|(?<digest>${digest})))|` +
    `(?<upload>blobs/uploads/(?<session>[A-Za-z0-9_.-]*))|` +
    `(?<blob>blobs/${digest})|` +
    `(?<list>tags/list|referrers/${digest}))$`,
);

const reading = ['GET', 'HEAD'];
const kinds = ['manifest', 'upload', 'blob', 'list'] as const;
type Kind = (typeof kinds)[number];

/** A build never removes anything: it would take from what serves. The operator never pushes. */
const methods: Readonly<Record<TokenPurpose, Readonly<Record<Kind, readonly string[]>>>> = {
  push: {
    manifest: [...reading, 'PUT'],
    upload: ['GET', 'POST', 'PATCH', 'PUT', 'DELETE'],
    blob: reading,
    list: reading,
  },
  prune: { manifest: [...reading, 'DELETE'], upload: [], blob: [], list: ['GET'] },
};

const who: Readonly<Record<TokenPurpose, string>> = { push: 'A build', prune: 'The operator' };

interface Address {
  readonly kind: Kind;
  readonly repository: string;
  /** Name of an upload that goes on; empty for one that begins, and for all else. */
  readonly session: string;
  /** A manifest that is named by its digest. */
  readonly isDigest: boolean;
}

/** What a path names; undefined when it is none of the distribution API, or spelled in a way that a registry decodes. */
function addressOf(path: string): Address | undefined {
  const groups = form.exec(path)?.groups;
  const kind = kinds.find((each) => groups?.[each] !== undefined);
  if (groups === undefined || kind === undefined) return undefined;
  const { repository = '', session = '', digest: byDigest } = groups;
  return { kind, repository, session, isDigest: byDigest !== undefined };
}

/** An upload is begun without a name and goes on under one; a manifest is removed by what it is, not by what it is called. */
function mayBe(method: string, { kind, session, isDigest }: Address, purpose: TokenPurpose): boolean {
  if (!methods[purpose][kind].includes(method)) return false;
  if (kind === 'upload') return (method === 'POST') === (session === '');
  return method !== 'DELETE' || isDigest;
}

/** A base image, as anybody may read it at Docker Hub. */
function isReadByAll(method: string, { kind, repository }: Address): boolean {
  const ofPlatform = platformFolders.some((folder) => repository.startsWith(`${folder}/`));
  return !ofPlatform && kind !== 'upload' && reading.includes(method);
}

/**
 * Judges a request of a build of `app`, or of the operator about it. `mirrors` says that the registry stands in for
 * Docker Hub, whose images any build may read.
 */
export function judge(
  method: string,
  url: string,
  { purpose, ...app }: AppIdentity & { readonly purpose: TokenPurpose },
  mirrors: boolean,
): Decision {
  const [path = '', query = ''] = url.split(/\?(.*)/s);
  const address = addressOf(path);
  if (address === undefined) return { refused: 'This is no request of the distribution API.', status: 404 };
  if (!mayBe(method, address, purpose)) return { refused: `${who[purpose]} must not ${method} here.`, status: 405 };
  const { repository, session } = address;
  const own = [imageRepository(app), cacheRepository(app)];
  if (!own.includes(repository) && !(purpose === 'push' && mirrors && isReadByAll(method, address)))
    return { refused: `A token of ${app.name} gives no access to ${repository}.`, status: 403 };
  const allowed = { repository, path, query: ownMount(new URLSearchParams(query), own) };
  return { allowed: session === '' ? allowed : { ...allowed, session } };
}

/**
 * The query without a mount from a repository of somebody else: the registry, asked by an account that may read all,
 * would link that layer. Without it, the layer is uploaded.
 */
function ownMount(query: URLSearchParams, own: readonly string[]): URLSearchParams {
  const sources = query.getAll('from');
  if (query.has('mount') && (sources.length !== 1 || !own.includes(sources[0] ?? ''))) {
    query.delete('mount');
    query.delete('from');
  }
  return query;
}
