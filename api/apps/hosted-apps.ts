// HostedApps as the API reads them: the resource, a cache that finds them by repository, owner/name and caller, and the
// author of each.
import type { StoredHostedApp } from '../../crds/hosted-app.ts';
import {
  createLabelIndexer,
  defineResource,
  type Indexer,
  type KubeType,
  type Store,
} from '../../lib/kubernetes/index.ts';
import { chooseDomainOwner, listServedDomains } from '../../crds/domains.ts';
import { group, kind, labels, plural, version } from '../../crds/names.ts';
import { isOwnedBy } from '../../crds/previews.ts';
import { listFormerSlugs, listTakenSlugs, readSlug } from '../../crds/slugs.ts';
import { sortAgain } from '../../lib/values.ts';
import {
  parseAcceptedRepository,
  hashRepository,
  markPrivate,
  type Repository,
  parseRepository,
  RepositoryError,
  type GitHosts,
} from '../../lib/repository.ts';
import { createUnknownNameProblem, Problem } from '../../lib/problem.ts';
import { notSubmitted, unknownApp } from './problems.ts';
import { createValidationProblem } from '../http/index.ts';
import { readSettings, resolveSpec } from '../../crds/effective-settings.ts';

/** A HostedApp as read from the API server. */
export type App = KubeType<StoredHostedApp>;

export const hostedApps = defineResource<App>({ group, version, kind, plural, namespaced: true });

const repositoryIndex = 'repository';
const pathIndex = 'path';
const callerIndex = 'caller';
const networkIndex = 'network';
const domainIndex = 'domain';
const previewIndex = 'preview';
const slugIndex = 'slug';

/** The indexers for the store of {@link createAppIndex}. They read the spec, so that manually created apps are found too. */
export const appIndexers: Readonly<Record<string, Indexer<App>>> = {
  [repositoryIndex]: skipPreviews((app) => [hashRepository(readRepository(app).url)]),
  [pathIndex]: skipPreviews((app) => [formatRepositoryPath(app)]),
  [callerIndex]: skipPreviews(createLabelIndexer(labels.caller)),
  [networkIndex]: skipPreviews(createLabelIndexer(labels.network)),
  [domainIndex]: skipPreviews(({ status }) => listServedDomains(status)),
  [slugIndex]: skipPreviews(({ spec: { control = {} } }) => [
    ...new Set([control.slug ?? [], control.formerSlugs?.map(({ name }) => name) ?? []].flat()),
  ]),
  [previewIndex]: ({ spec }) => (spec.previewOf === undefined ? [] : [spec.previewOf.app]),
};

function skipPreviews(indexer: Indexer<App>): Indexer<App> {
  return (app) => (isPreview(app) ? [] : indexer(app));
}

function isPreview({ spec }: App): boolean {
  return spec.previewOf !== undefined;
}

/**
 * Finds apps in the cache. If several have the same repository, the oldest one counts. Only `listPreviews` returns
 * previews, so that no list, rank, tool, feed or account has them.
 */
export interface AppIndex {
  /** The app of this ID, slug or former slug that still leads to it. */
  get(name: string): App | undefined;
  /** The app that has a name now, or had it so lately that nobody else may get it. */
  findNameHolder(name: string): App | undefined;
  /** Previews of the app, sorted by name, without those of an earlier app with its name. */
  listPreviews(app: App): readonly App[];
  findByRepository(hash: string): App | undefined;
  /** Apps whose repository is `owner/name` on any host; case does not matter. */
  listByPath(owner: string, name: string): readonly App[];
  listByCaller(hash: string): readonly App[];
  listByNetwork(hash: string): readonly App[];
  /** The app that answers at an own domain. */
  findByDomain(domain: string): App | undefined;
  /** All apps, the oldest first. Returns the same array until an app changes. */
  listAll(): readonly App[];
  readonly size: number;
  /** Calls `changed` after each change of the app, including its removal. Returns a function that unsubscribes. */
  subscribe(name: string, changed: () => void): () => void;
  /** Resolves when the cache holds the app of this UID, or after `timeoutMs`. */
  waitForApp(app: App, timeoutMs: number): Promise<void>;
  /** Resolves when there is an app of this repository, or after the timeout. */
  waitForPath(owner: string, name: string, timeoutMs: number): Promise<void>;
}

/** Creates an index of the apps in one namespace, over a store that has {@link appIndexers}. */
export function createAppIndex(store: Store<App>, namespace: string): AppIndex {
  const toKey = (name: string): string => `${namespace}/${name}`;
  const getById = (name: string): App | undefined => {
    const app = store.get(toKey(name));
    return app === undefined || isPreview(app) ? undefined : app;
  };
  const findBySlug = (name: string, isHeld: (app: App, now: Date) => boolean): App | undefined => {
    const now = new Date();
    return getById(name) ?? sortByAge(store.listByIndex(slugIndex, name)).find((app) => isHeld(app, now));
  };
  /** Kept, because with thousands of apps a list spends most of its time sorting. */
  let sorted: readonly App[] = [];
  let version = -1;
  const listAll = (): readonly App[] => {
    if (version !== store.version)
      sorted = sortAgain(
        sorted,
        store.list(namespace).filter((app) => !isPreview(app)),
        compareAge,
      );
    version = store.version;
    return sorted;
  };
  const subscribe = (name: string, changed: () => void): (() => void) =>
    store.subscribe(({ object }) => {
      if (object.metadata.name === name) changed();
    });
  /** Asks again whenever the store changes. */
  const waitUntil = async (timeoutMs: number, isMet: () => boolean): Promise<void> => {
    if (isMet()) return;
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(resolve, timeoutMs, undefined);
    const look = (): void => {
      if (isMet()) resolve(undefined);
    };
    const stop = store.subscribe(look);
    await promise;
    clearTimeout(timer);
    stop();
  };
  return {
    get: (name) => findBySlug(name, (app, now) => readSlug(app) === name || listFormerSlugs(app, now).includes(name)),
    findNameHolder: (name) => findBySlug(name, (app, now) => listTakenSlugs(app, now).includes(name)),
    listPreviews: (app) =>
      store
        .listByIndex(previewIndex, app.metadata.name)
        .filter((preview) => isOwnedBy(preview, app))
        .toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1)),
    findByRepository: (hash) => sortByAge(store.listByIndex(repositoryIndex, hash))[0],
    listByPath: (owner, name) => sortByAge(store.listByIndex(pathIndex, `${owner}/${name}`.toLowerCase())),
    listByCaller: (hash) => store.listByIndex(callerIndex, hash),
    listByNetwork: (hash) => store.listByIndex(networkIndex, hash),
    findByDomain: (domain) => chooseDomainOwner(store.listByIndex(domainIndex, domain), domain),
    listAll,
    get size() {
      return listAll().length;
    },
    subscribe,
    async waitForApp(app, timeoutMs) {
      await waitUntil(timeoutMs, () => {
        const seen = store.get(toKey(app.metadata.name));
        return seen !== undefined && BigInt(seen.metadata.resourceVersion) >= BigInt(app.metadata.resourceVersion);
      });
    },
    async waitForPath(owner, name, timeoutMs) {
      await waitUntil(timeoutMs, () => store.listByIndex(pathIndex, `${owner}/${name}`.toLowerCase()).length > 0);
    },
  };
}

/** Sorts the oldest first, so that every replica selects the same app. */
export function sortByAge(apps: readonly App[]): App[] {
  return [...apps].sort(compareAge);
}

function compareAge({ metadata: a }: App, { metadata: b }: App): number {
  if (a.creationTimestamp === b.creationTimestamp) return a.name < b.name ? -1 : 1;
  return a.creationTimestamp < b.creationTimestamp ? -1 : 1;
}

/** Reads the repository of an app, in normal form. */
export function readRepository(app: App): Repository {
  return markPrivate(parseAcceptedRepository(app.spec.source.repo), app.spec.source.private);
}

/** Host, owner and name of its repository, like github.com/octo/hello. An author key is bound to it. */
export function formatKeyRepository(app: App): string {
  const { host, owner, name } = readRepository(app);
  return `${host}/${owner}/${name}`;
}

function formatRepositoryPath(app: App): string {
  const { owner, name } = readRepository(app);
  return `${owner}/${name}`.toLowerCase();
}

/** The app of this name. @throws Problem (unknown-app) with similar names */
export function getApp(apps: Pick<AppIndex, 'get' | 'listAll'>, slug: string): App {
  const app = apps.get(slug);
  if (app !== undefined) return app;
  throw createUnknownNameProblem(unknownApp, {
    says: 'Unknown app',
    name: slug,
    names: apps.listAll().map(readSlug),
    all: '/agent-capabilities.json lists the live apps.',
  });
}

/** A repository in a path; `host` distinguishes namesakes on several hosts. */
export interface RepositoryName {
  readonly owner: string;
  readonly name: string;
  readonly host?: string | undefined;
}

/** Finds the app of a repository. @throws Problem (invalid-request, not-submitted) */
export function findApp(apps: AppIndex, hosts: GitHosts, repository: RepositoryName): App {
  const { owner, name } = normalizeName(hosts, repository);
  const matches = apps.listByPath(owner, name);
  const host = repository.host?.toLowerCase() ?? selectHost(matches, hosts);
  const app = matches.find((candidate) => readRepository(candidate).host === host);
  if (app !== undefined) return app;
  const where = host === undefined ? '' : ` on ${host}`;
  throw new Problem(
    notSubmitted,
    `${owner}/${name}${where} has not been submitted. To submit it, send POST /api/submit with {"repo": "${owner}/${name}"}.`,
  );
}

/**
 * Finds the app of a repository, and waits for one that another replica has just created: its author asks for the status at
 * once, and any replica may answer. @throws Problem as findApp
 */
export async function findNewApp(apps: AppIndex, hosts: GitHosts, repository: RepositoryName): Promise<App> {
  const { owner, name } = normalizeName(hosts, repository);
  await apps.waitForPath(owner, name, replicaLagMs);
  return findApp(apps, hosts, repository);
}

/** How long a replica usually takes, at most, to see what another one has created. */
const replicaLagMs = 500;

/** Selects the first allowed host if the repository is hosted from it, otherwise the only host it is hosted from. */
function selectHost(matches: readonly App[], hosts: GitHosts): string | undefined {
  const hostNames = new Set(matches.map((app) => readRepository(app).host));
  const preferredHost = hosts.allowed[0];
  if (preferredHost !== undefined && hostNames.has(preferredHost)) return preferredHost;
  if (hostNames.size < 2) return [...hostNames][0] ?? preferredHost;
  throw createValidationProblem([
    {
      in: 'query',
      field: 'host',
      message: `is required, because repositories with this name are hosted from several git hosts: ${[...hostNames].join(', ')}`,
      fix: `Add ?host= with one of them, such as ?host=${[...hostNames][0] ?? ''}.`,
    },
  ]);
}

function normalizeName(hosts: GitHosts, { owner, name, host }: RepositoryName): { owner: string; name: string } {
  if (host !== undefined && !hosts.allowed.includes(host.toLowerCase())) {
    throw createValidationProblem([
      {
        in: 'query',
        field: 'host',
        message: `must be an allowed git host; ${host} is not`,
        fix: `Use one of: ${hosts.allowed.join(', ')}.`,
      },
    ]);
  }
  if (owner.startsWith('@')) return { owner, name };
  try {
    return parseRepository(`${owner}/${name}`, hosts);
  } catch (error) {
    if (!(error instanceof RepositoryError)) throw error;
    throw createValidationProblem([
      { in: 'path', field: 'owner, name', message: `is not accepted: ${error.message}`, fix: error.fix },
    ]);
  }
}

/** The author of an app: the owner of its repository, their share of its revenue, and their keys. */
export interface Authorship {
  /** Name of its HostedApp, under which revenue is recorded. */
  readonly app: string;
  readonly slug: string;
  /** Git host and owner of its repository in lower case, for whom revenue accrues. */
  readonly author: string;
  /** As {@link formatKeyRepository} gives it. */
  readonly repository: string;
  /** The author's share in parts per million. */
  readonly sharePpm: number;
  /** Hash of the caller who submitted it, as used for payers; undefined if it was not submitted through the API. */
  readonly submitter: string | undefined;
  /** Hashes of the author keys in the repository, which give access to statements. */
  readonly keys: readonly string[];
}

export function readAuthorship(app: App): Authorship {
  const { host, owner } = readRepository(app);
  const { author } = resolveSpec(app, readSettings(app.status?.built?.settings));
  return {
    app: app.metadata.name,
    slug: readSlug(app),
    author: `${host}/${owner}`.toLowerCase(),
    repository: formatKeyRepository(app),
    sharePpm: Math.round(Number(author.share) * 1_000_000),
    submitter: app.metadata.labels?.[labels.caller],
    keys: app.status?.authorKeys ?? [],
  };
}
