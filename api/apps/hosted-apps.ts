// The HostedApps as the API reads them: the resource, and a cache found by repository, by owner/name and by caller.
import type { StoredHostedApp } from '../../crds/hosted-app.ts';
import { byLabel, defineResource, type Indexer, type KubeType, type Store } from '../../lib/kubernetes/index.ts';
import { group, kind, labels, plural, version } from '../../crds/names.ts';
import { sortAgain } from '../../lib/values.ts';
import { acceptedRepository, repositoryHash, type Repository } from '../../lib/repository.ts';

/** A HostedApp as read from the API server. */
export type App = KubeType<StoredHostedApp>;

export const hostedApps = defineResource<App>({ group, version, kind, plural, namespaced: true });

const repositoryIndex = 'repository';
const pathIndex = 'path';
const callerIndex = 'caller';
const networkIndex = 'network';

/** Indexers that the store of {@link appIndex} needs. They read the spec, so that an app made by hand is found too. */
export const appIndexers: Readonly<Record<string, Indexer<App>>> = {
  [repositoryIndex]: (app) => [repositoryHash(repositoryOf(app).url)],
  [pathIndex]: (app) => [repositoryPath(app)],
  [callerIndex]: byLabel(labels.caller),
  [networkIndex]: byLabel(labels.network),
};

/** Finds apps in the cache. Of several for one repository, the oldest is meant. */
export interface AppIndex {
  get(name: string): App | undefined;
  byRepository(hash: string): App | undefined;
  /** Apps whose repository is `owner/name` on whatever host; case does not matter. */
  byPath(owner: string, name: string): readonly App[];
  byCaller(hash: string): readonly App[];
  byNetwork(hash: string): readonly App[];
  /** All of them, the oldest first. The same list until an app changes. */
  all(): readonly App[];
  readonly size: number;
  /** Calls `changed` after each change of the app, its removal included. Returns the way to stop it. */
  subscribe(name: string, changed: () => void): () => void;
  /** Resolves when the cache holds the app of this UID, or after `timeoutMs`. */
  whenSeen(app: App, timeoutMs: number): Promise<void>;
}

/** Reads apps of one namespace from a store made with {@link appIndexers}. */
export function appIndex(store: Store<App>, namespace: string): AppIndex {
  const keyed = (name: string): string => `${namespace}/${name}`;
  /** With thousands of apps, sorting anew is most of what a list costs. */
  let sorted: readonly App[] = [];
  let version = -1;
  const all = (): readonly App[] => {
    if (version !== store.version) sorted = sortAgain(sorted, store.list(namespace), byAge);
    version = store.version;
    return sorted;
  };
  const subscribe = (name: string, changed: () => void): (() => void) =>
    store.subscribe(({ object }) => {
      if (object.metadata.name === name) changed();
    });
  return {
    get: (name) => store.get(keyed(name)),
    byRepository: (hash) => oldestFirst(store.byIndex(repositoryIndex, hash))[0],
    byPath: (owner, name) => oldestFirst(store.byIndex(pathIndex, `${owner}/${name}`.toLowerCase())),
    byCaller: (hash) => store.byIndex(callerIndex, hash),
    byNetwork: (hash) => store.byIndex(networkIndex, hash),
    all,
    get size() {
      return store.size;
    },
    subscribe,
    async whenSeen(app, timeoutMs) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const timer = setTimeout(resolve, timeoutMs, undefined);
      const look = (): void => {
        const seen = store.get(keyed(app.metadata.name));
        if (seen !== undefined && BigInt(seen.metadata.resourceVersion) >= BigInt(app.metadata.resourceVersion))
          resolve(undefined);
      };
      const stop = subscribe(app.metadata.name, look);
      look();
      await promise;
      clearTimeout(timer);
      stop();
    },
  };
}

/** Orders by age, so that every replica names the same app first. */
export function oldestFirst(apps: readonly App[]): App[] {
  return [...apps].sort(byAge);
}

function byAge({ metadata: a }: App, { metadata: b }: App): number {
  if (a.creationTimestamp === b.creationTimestamp) return a.name < b.name ? -1 : 1;
  return a.creationTimestamp < b.creationTimestamp ? -1 : 1;
}

/** The repository of an app, in normal form. */
export function repositoryOf(app: App): Repository {
  return acceptedRepository(app.spec.source.repo);
}

function repositoryPath(app: App): string {
  const { owner, name } = repositoryOf(app);
  return `${owner}/${name}`.toLowerCase();
}
