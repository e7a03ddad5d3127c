// The controller of HostedApps: its watches, and the lookups that it runs outside the cluster.
import type { Registry } from 'prom-client';
import { labels } from '../../crds/names.ts';
import type { CloseRequest } from '../../crds/reports.ts';
import {
  createController,
  createLabelMapping,
  createWatch,
  type Client,
  type Controller,
  type EventRecorder,
  type Logger,
  type Store,
  type Watch,
} from '../../lib/kubernetes/index.ts';
import { isQueued } from '../build-queue/build-queue.ts';
import type { ActivatorPool, ActivityRecord } from '../idle/activators.ts';
import type { WorkerRecord } from '../usage/busy-workers.ts';
import type { Job } from '../objects/kinds.ts';
import type { Pruner } from '../space/pruner.ts';
import type { Space } from '../space/space.ts';
import { createDomainLookup } from '../steps/domains/proof.ts';
import { inspectPage, type PageQuery } from '../steps/publish/page.ts';
import { probe, type ProbeQuery } from '../steps/publish/probe.ts';
import { resolveRevision, type RevisionQuery } from '../steps/source/source.ts';
import type { Caches } from './caches.ts';
import type { InstallationConfig } from './installation-config.ts';
import { countApps, createBuildMetrics, registerAppMetrics } from './metrics.ts';
import { createReconciler } from './reconcile.ts';

export interface HostedAppControllerOptions {
  readonly client: Client;
  readonly caches: Caches;
  readonly config: InstallationConfig;
  readonly recorder: EventRecorder;
  /** Absent: nothing is removed from the registry. */
  readonly pruner?: Pruner | undefined;
  /** Absent: builds do not wait for disk space. */
  readonly space?: Space | undefined;
  readonly resyncMs: number;
  readonly log: Logger;
  readonly registry: Registry;
  /** Undefined where there is no activator. */
  readonly idle?:
    | {
        readonly pool: ActivatorPool;
        readonly record: ActivityRecord;
        /** Absent where what apps use is not measured. */
        readonly workers?: WorkerRecord | undefined;
      }
    | undefined;
}

/** Lookups in progress at the same time: of repositories at one host, and of apps and their pages through the gateway. */
const pollsPerHost = 4;
const maximumProbes = 16;
const maximumLooks = 4;
/** Apps whose domains are looked up at the same time. */
const maximumProofs = 8;
/** Agreements with the activators in progress at the same time. */
const maximumClosings = 8;

export function createHostedAppController(options: HostedAppControllerOptions): Controller {
  const { client, caches, config, recorder, pruner, space, resyncMs, log, registry, idle } = options;
  const metrics = createBuildMetrics(registry);
  registerAppMetrics(registry, () => countApps(caches.apps.list()));
  const onResult = (key: string): void => {
    controller.enqueue(key);
  };
  const polls = createBackgroundLookups({
    run: (query: RevisionQuery) => resolveRevision(query, options.config.gitAccess),
    group: ({ repository }) => repository.host,
    limit: pollsPerHost,
    onResult,
  });
  const gateway = { url: config.probeUrl ?? '', token: config.probeToken };
  const probes = createBackgroundLookups({
    run: ({ host, ...query }: ProbeQuery) => probe(gateway, host, query),
    group: () => 'gateway',
    limit: maximumProbes,
    onResult,
  });
  const pages = createBackgroundLookups({
    run: ({ host, path }: PageQuery) => inspectPage(gateway, host, path),
    group: () => 'gateway',
    limit: maximumLooks,
    onResult,
  });
  const { domains } = config;
  const proofs =
    domains &&
    createBackgroundLookups({
      run: createDomainLookup(domains.resolvers),
      group: () => 'dns',
      limit: maximumProofs,
      onResult,
    });
  const closings =
    idle === undefined
      ? undefined
      : createBackgroundLookups({
          run: (request: CloseRequest) => idle.pool.close(request),
          group: () => 'activators',
          limit: maximumClosings,
          onResult,
        });
  const toApp = createLabelMapping(labels.app, config.appsNamespace);
  const children = [
    caches.pipelinePods,
    caches.deployments,
    caches.services,
    caches.policies,
    caches.claims,
    caches.pods,
    caches.routes,
    caches.cronJobs,
    ...(caches.gateways === undefined ? [] : [caches.gateways]),
  ];
  const controller = createController({
    name: 'hosted-apps',
    workers: 8,
    resyncMs,
    log,
    registry,
    watches: [
      createWatch(caches.apps.store, undefined, { isChange: (app, old) => app.specHash !== old.specHash }),
      createWatch(caches.jobs, toApp),
      createWatch(caches.taskJobs, toApp),
      ...children.map(({ store }) => createWatch(store, toApp)),
      watchQueuePositions(caches.jobs, toApp),
      ...(space === undefined ? [] : [space.watchChanges(() => caches.jobs.list().filter(isQueued).flatMap(toApp))]),
    ],
    reconcile: createReconciler({
      ...{ client, caches, config, recorder, metrics, polls, probes, pages, proofs, closings, pruner },
      activity: idle?.record,
      workers: idle?.workers,
      shortage: () => space?.explainShortage(),
      layers: space === undefined ? undefined : (namespace, pod) => space.getLayers(namespace, pod),
    }),
  });
  return controller;
}

/** Enqueues all apps in the build queue when one leaves it: their positions have changed. */
function watchQueuePositions(jobs: Store<Job>, toApp: (job: Job) => readonly string[]): Watch {
  return {
    start: (enqueue) =>
      jobs.subscribe((change) => {
        const hasLeft =
          change.type === 'updated'
            ? isQueued(change.old) && !isQueued(change.object)
            : change.type === 'deleted' && isQueued(change.object);
        if (hasLeft) for (const job of jobs.list().filter(isQueued)) toApp(job).forEach(enqueue);
      }),
    listResyncKeys: () => [],
    get hasSynced() {
      return jobs.hasSynced;
    },
    waitUntilSynced: (signal) => jobs.waitUntilSynced(signal),
  };
}

// Slow lookups outside the cluster run in the background, so that a dead server delays only its own apps.

/** Lookups by app. None has to survive a restart: a lost lookup is started again. */
export interface BackgroundLookups<Query, Result> {
  /** Starts a lookup, unless the same one is in progress. */
  start(key: string, identity: string, query: Query): void;
  /** Takes the result of exactly this lookup, once. */
  take(key: string, identity: string): Result | undefined;
  /** Forgets an app. */
  forget(key: string): void;
}

export interface LookupOptions<Query, Result> {
  /** Must not reject. */
  run: (query: Query) => Promise<Result>;
  /** Lookups of one group (a host) wait for each other beyond `limit`, and for no other group. */
  group: (query: Query) => string;
  limit: number;
  /** Called when a result is there to be taken. */
  onResult: (key: string) => void;
}

interface Lookup<Result> {
  readonly identity: string;
  result?: Result;
}

export function createBackgroundLookups<Query, Result>(
  options: LookupOptions<Query, Result>,
): BackgroundLookups<Query, Result> {
  const lookups = new Map<string, Lookup<Result>>();
  const groups = new Map<string, { running: number; waiting: (() => void)[] }>();

  function schedule(name: string, run: () => Promise<void>): void {
    const group = groups.get(name) ?? { running: 0, waiting: [] };
    groups.set(name, group);
    const begin = (): void => {
      group.running += 1;
      void run().finally(() => {
        group.running -= 1;
        group.waiting.shift()?.();
        if (group.running === 0) groups.delete(name);
      });
    };
    if (group.running < options.limit) begin();
    else group.waiting.push(begin);
  }

  return {
    start(key, identity, query) {
      if (lookups.get(key)?.identity === identity) return;
      const lookup: Lookup<Result> = { identity };
      lookups.set(key, lookup);
      schedule(options.group(query), async () => {
        if (lookups.get(key) !== lookup) return;
        lookup.result = await options.run(query);
        if (lookups.get(key) === lookup) options.onResult(key);
      });
    },
    take(key, identity) {
      const lookup = lookups.get(key);
      if (lookup?.result === undefined || lookup.identity !== identity) return undefined;
      lookups.delete(key);
      return lookup.result;
    },
    forget(key) {
      lookups.delete(key);
    },
  };
}
