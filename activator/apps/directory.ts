// Finds the app of a host name, and the addresses at which its pods may take a request.
import type { Store } from '../../lib/kubernetes/index.ts';
import type { AppView, PodView } from './view.ts';

/** Where a pod of an app listens. */
export interface Backend {
  readonly pod: string;
  readonly address: string;
  readonly port: number;
  readonly isReady: boolean;
}

export interface Directory {
  /** @param host as in the header Host, with or without a port */
  find(host: string | undefined): AppView | undefined;
  get(name: string): AppView | undefined;
  /** Those that are ready, or where none is, those on their way. */
  backends(app: string): readonly Backend[];
  /** Calls `changed` with the name of an app of which anything has changed. */
  subscribe(changed: (app: string) => void): void;
}

export interface DirectoryOptions {
  readonly apps: Store<AppView>;
  /** With the index {@link byApp}. */
  readonly pods: Store<PodView>;
  readonly namespace: string;
  readonly domain: string;
}

/** Longer than a pod takes to end. */
const retiredMs = 45_000;

/** Index of pods. */
export const byApp = 'app';
export const podIndexers = { [byApp]: ({ view }: PodView): readonly string[] => [view.app] };

export function createDirectory({ apps, pods, namespace, domain }: DirectoryOptions): Directory {
  /**
   * UIDs of pods that ran when their app was put to sleep, and until when that counts: they are on their way out,
   * whatever the cache knows of them.
   */
  const retired = new Map<string, number>();
  const get = (name: string): AppView | undefined => apps.get(`${namespace}/${name}`);

  apps.subscribe((change) => {
    if (change.type !== 'updated' || change.object.view.idle?.state !== 'Asleep') return;
    if (change.old.view.idle?.state === 'Asleep') return;
    const until = performance.now() + retiredMs;
    for (const { metadata } of pods.byIndex(byApp, change.object.metadata.name)) retired.set(metadata.uid, until);
  });
  pods.subscribe((change) => {
    if (change.type === 'deleted') retired.delete(change.object.metadata.uid);
  });

  return {
    get,
    find(host = '') {
      const name = host.replace(/:\d{1,5}$/, '').toLowerCase();
      return name.endsWith(`.${domain}`) ? get(name.slice(0, -domain.length - 1)) : undefined;
    },
    backends(app) {
      const found = pods.byIndex(byApp, app).flatMap(({ metadata, view }): Backend[] => {
        const { address, port, isReady } = view;
        const isRetired = performance.now() < (retired.get(metadata.uid) ?? 0);
        return address === undefined || port === 0 || isRetired ? [] : [{ pod: metadata.name, address, port, isReady }];
      });
      const ready = found.filter(({ isReady }) => isReady);
      return ready.length > 0 ? ready : found;
    },
    subscribe(changed) {
      apps.subscribe(({ object }) => {
        changed(object.metadata.name);
      });
      pods.subscribe(({ object }) => {
        changed(object.view.app);
      });
    },
  };
}
