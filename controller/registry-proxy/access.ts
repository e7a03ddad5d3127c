// Decides what a build may ask of the registry: read and write its own app's repositories, read those of nobody.
import { cacheRepository, imageRepository, platformFolders } from '../../crds/image-names.ts';
import type { PushIdentity } from '../../lib/push-token.ts';

/** A request of the distribution API that a build may make. */
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
    `(?<manifest>manifests/(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,127}|${digest}))|` +
    `(?<upload>blobs/uploads/(?<session>[A-Za-z0-9_.-]*))|` +
    `(?<blob>blobs/${digest})|` +
    `(?<list>tags/list|referrers/${digest}))$`,
);

const reading = ['GET', 'HEAD'];
const methods = {
  manifest: [...reading, 'PUT'],
  upload: ['GET', 'POST', 'PATCH', 'PUT', 'DELETE'],
  blob: reading,
  list: reading,
};

type Kind = keyof typeof methods;

interface Address {
  readonly kind: Kind;
  readonly repository: string;
  /** Name of an upload that goes on; empty for one that begins, and for all else. */
  readonly session: string;
}

/** What a path names; undefined when it is none of the distribution API, or spelled in a way that a registry decodes. */
function addressOf(path: string): Address | undefined {
  const groups = form.exec(path)?.groups;
  const kind = (Object.keys(methods) as Kind[]).find((each) => groups?.[each] !== undefined);
  if (groups === undefined || kind === undefined) return undefined;
  return { kind, repository: groups['repository'] ?? '', session: groups['session'] ?? '' };
}

/** An upload is begun without a name and goes on under one. */
function mayBe(method: string, { kind, session }: Address): boolean {
  return (
    methods[kind].some((each) => each === method) && (kind !== 'upload' || (method === 'POST') === (session === ''))
  );
}

/** A base image, as anybody may read it at Docker Hub. */
function isReadByAll(method: string, { kind, repository }: Address): boolean {
  const ofPlatform = platformFolders.some((folder) => repository.startsWith(`${folder}/`));
  return !ofPlatform && kind !== 'upload' && reading.includes(method);
}

/**
 * Judges a request of a build of `app`. `mirrors` says that the registry stands in for Docker Hub, whose images anybody
 * may read.
 */
export function judge(method: string, url: string, app: PushIdentity, mirrors: boolean): Decision {
  const [path = '', query = ''] = url.split(/\?(.*)/s);
  const address = addressOf(path);
  if (address === undefined) return { refused: 'This is no request of the distribution API.', status: 404 };
  if (!mayBe(method, address)) return { refused: `A build must not ${method} here.`, status: 405 };
  const { repository, session } = address;
  const own = [imageRepository(app), cacheRepository(app)];
  if (!own.includes(repository) && !(mirrors && isReadByAll(method, address)))
    return { refused: `The builds of ${app.name} have no access to ${repository}.`, status: 403 };
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
