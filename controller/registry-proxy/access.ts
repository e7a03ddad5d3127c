// Authorizes requests to the registry: a build reads and writes only its own app's repositories; the operator lists and
// removes the manifests of an app.
import { createHmac } from 'node:crypto';
import { formatCacheRepository, formatImageRepository, platformFolders } from '../../crds/names.ts';
import type { AppIdentity, TokenPurpose } from '../../lib/app-tokens.ts';
import { isSameSecret } from '../../lib/sealed-text.ts';

/** A request of the distribution API that may be made. */
export interface RegistryRequest {
  readonly repository: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The upload that it continues, by the name that the proxy gave it. */
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

/** A build never removes anything: it could remove what serves. The operator never pushes. */
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
  /** Name of an upload that continues; empty for one that begins, and for everything else. */
  readonly session: string;
  /** A manifest that is named by its digest. */
  readonly isDigest: boolean;
}

/** Undefined for a path outside the distribution API, or one spelled in a way that a registry would decode. */
function parseAddress(path: string): Address | undefined {
  const groups = form.exec(path)?.groups;
  const kind = kinds.find((each) => groups?.[each] !== undefined);
  if (groups === undefined || kind === undefined) return undefined;
  const { repository = '', session = '', digest: byDigest } = groups;
  return { kind, repository, session, isDigest: byDigest !== undefined };
}

/** An upload begins without a name and continues under one; a manifest is removed by digest, never by tag. */
function isMethodAllowed(method: string, { kind, session, isDigest }: Address, purpose: TokenPurpose): boolean {
  if (!methods[purpose][kind].includes(method)) return false;
  if (kind === 'upload') return (method === 'POST') === (session === '');
  return method !== 'DELETE' || isDigest;
}

/** True for reading a base image, which is public at Docker Hub. */
function isPublicRead(method: string, { kind, repository }: Address): boolean {
  const ofPlatform = platformFolders.some((folder) => repository.startsWith(`${folder}/`));
  return !ofPlatform && kind !== 'upload' && reading.includes(method);
}

/**
 * Judges a request of a build of `app`, or of the operator about it. `mirrors` says that the registry stands in for
 * Docker Hub, whose images any build may read.
 */
export function judgeRequest(
  method: string,
  url: string,
  { purpose, ...app }: AppIdentity & { readonly purpose: TokenPurpose },
  mirrors: boolean,
): Decision {
  const [path = '', query = ''] = url.split(/\?(.*)/s);
  const address = parseAddress(path);
  if (address === undefined) return { refused: 'This is no request of the distribution API.', status: 404 };
  if (!isMethodAllowed(method, address, purpose))
    return { refused: `${who[purpose]} must not ${method} here.`, status: 405 };
  const { repository, session } = address;
  const ownRepositories = [formatImageRepository(app), formatCacheRepository(app)];
  if (!ownRepositories.includes(repository) && !(purpose === 'push' && mirrors && isPublicRead(method, address)))
    return { refused: `A token of ${app.name} gives no access to ${repository}.`, status: 403 };
  const allowed = { repository, path, query: dropForeignMount(new URLSearchParams(query), ownRepositories) };
  return { allowed: session === '' ? allowed : { ...allowed, session } };
}

/**
 * Removes a mount from another app's repository: the account can read everything, so the registry would link that layer.
 * Without the mount, the layer is uploaded.
 */
function dropForeignMount(query: URLSearchParams, ownRepositories: readonly string[]): URLSearchParams {
  const sources = query.getAll('from');
  if (query.has('mount') && (sources.length !== 1 || !ownRepositories.includes(sources[0] ?? ''))) {
    query.delete('mount');
    query.delete('from');
  }
  return query;
}

// Names of uploads as builds see them: the registry's address of an upload, whatever its form, sealed with its repository.

function computeSeal(repository: string, target: string, secret: string): Buffer {
  return createHmac('sha256', secret).update(`moorage upload 1\n${repository}\n${target}`).digest().subarray(0, 16);
}

/** The name of an upload. `target` is its path and query at the registry. */
export function sealUpload(repository: string, target: string, secret: string): string {
  return `${Buffer.from(target).toString('base64url')}.${computeSeal(repository, target, secret).toString('base64url')}`;
}

/** Path and query of an upload at the registry; undefined when the name was not given out for this repository. */
export function openUpload(repository: string, name: string, secret: string): string | undefined {
  const [encoded = '', mac = ''] = name.split('.');
  const target = Buffer.from(encoded, 'base64url').toString();
  return isSameSecret(Buffer.from(mac, 'base64url'), computeSeal(repository, target, secret)) ? target : undefined;
}
