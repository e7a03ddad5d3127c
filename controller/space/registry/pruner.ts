// Decides when an app is pruned: after each pipeline and each rollout, beside the reconciler, and when it is deleted.
import type { HostedAppStatus } from '../../../crds/hosted-app.ts';
import { isRunning } from '../../build-queue/order.ts';
import type { Deployment, HostedAppObject, Job } from '../../objects/kinds.ts';
import { createBackgroundLookups } from '../../reconcile/background-lookups.ts';
import { messageOf, type Logger } from '../../../lib/kubernetes/index.ts';
import type { SpaceMetrics } from '../metrics.ts';
import { digestsIn, type ImageRecords } from './keep.ts';
import { emptyRepositories, pruneApp, type PruneOptions } from './prune.ts';
import { RemovalRefused } from './repository.ts';

export interface PrunerOptions extends PruneOptions {
  /** Its pipeline Jobs, as they are now. */
  readonly jobsOf: (app: string) => readonly Job[];
  readonly log: Logger;
  readonly metrics: SpaceMetrics;
}

/** An app with what runs it. */
export interface PruneSubject {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly status: HostedAppStatus;
  readonly deployment: Deployment | undefined;
}

export interface Pruner {
  /** Prunes the app, unless that was done since its last pipeline and rollout, or a pipeline of it runs. */
  consider(app: PruneSubject): void;
  /** Removes all that an app that is being deleted has in the registry. False: it is to be tried again. */
  empty(app: HostedAppObject, signal: AbortSignal): Promise<boolean>;
  /** Forgets an app. */
  forget(key: string): void;
}

/** Apps that are pruned at once. */
const maximumPrunes = 2;
/** An app is held no longer than this for a registry that cannot be asked. */
const patienceMs = 10 * 60_000;

interface Query {
  readonly key: string;
  readonly identity: string;
  readonly owner: { readonly name: string; readonly uid: string };
  readonly records: ImageRecords;
}

/** Makes one that has pruned nothing yet: after a start of the operator, each app is looked at once. */
export function createPruner(options: PrunerOptions): Pruner {
  const { log, metrics, jobsOf } = options;
  const pruned = new Map<string, string>();
  const isIdle = (app: string): boolean => !jobsOf(app).some(isRunning);

  async function run({ key, identity, owner, records }: Query): Promise<'ended'> {
    const { name: app } = owner;
    try {
      const { removed, bytes } = await pruneApp(owner, records, options, () => isIdle(app));
      metrics.removed.inc(removed);
      metrics.stored.set({ app, kind: 'images' }, bytes.images);
      metrics.stored.set({ app, kind: 'cache' }, bytes.cache);
      if (removed > 0) log.info({ app, removed }, 'images that are no longer kept were removed from the registry');
      pruned.set(key, identity);
    } catch (error) {
      metrics.failures.inc({ of: 'registry' });
      log.warn({ app, error: messageOf(error) }, 'images that are no longer kept could not be removed');
      // What a registry refuses, it will refuse again; the next pipeline asks once more.
      if (error instanceof RemovalRefused) pruned.set(key, identity);
    }
    return 'ended';
  }

  const prunes = createBackgroundLookups<Query, 'ended'>({
    run,
    group: () => 'registry',
    limit: maximumPrunes,
    onResult: () => undefined,
  });

  return {
    consider({ name, namespace, uid, status, deployment }) {
      const { history = [], built, served, releases } = status;
      const key = `${namespace}/${name}`;
      const needed = digestsIn(JSON.stringify([built?.image, served?.image, releases, deployment]));
      const identity = [uid, history[0]?.number, ...needed].join(' ');
      if (history.length === 0 || pruned.get(key) === identity || !isIdle(name)) return;
      // One that failed is forgotten here, so that it is tried again.
      prunes.take(key, identity);
      prunes.start(key, identity, { key, identity, owner: { name, uid }, records: { needed, history } });
    },
    async empty({ metadata }, signal) {
      const { name, uid, deletionTimestamp = '' } = metadata;
      metrics.stored.remove({ app: name, kind: 'images' });
      metrics.stored.remove({ app: name, kind: 'cache' });
      try {
        metrics.removed.inc(await emptyRepositories({ name, uid }, options, signal));
        return true;
      } catch (error) {
        const isFinal = error instanceof RemovalRefused || Date.now() - Date.parse(deletionTimestamp) > patienceMs;
        metrics.failures.inc({ of: 'registry' });
        const outcome = isFinal ? 'they are left in the registry' : 'it is tried again';
        log.warn({ app: name, uid, error: messageOf(error), outcome }, 'images of a deleted app could not be removed');
        return isFinal;
      }
    },
    forget(key) {
      pruned.delete(key);
      prunes.forget(key);
    },
  };
}
