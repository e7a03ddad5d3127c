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
import { isQueued } from '../build-queue/order.ts';
import type { ActivatorPool, ActivityRecord } from '../idle/activators.ts';
import type { Job } from '../objects/kinds.ts';
import type { Pruner } from '../space/pruner.ts';
import type { Space } from '../space/space.ts';
import { inspectPage } from '../steps/publish/page.ts';
import { probe, type ProbeQuery } from '../steps/publish/probe.ts';
import { resolveRevision, type RevisionQuery } from '../steps/source/source.ts';
import { createBackgroundLookups } from './background-lookups.ts';
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
  readonly idle?: { readonly pool: ActivatorPool; readonly record: ActivityRecord } | undefined;
}

/** Lookups in progress at the same time: of repositories at one host, and of apps and their pages through the gateway. */
const pollsPerHost = 4;
const maximumProbes = 16;
const maximumLooks = 4;
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
    run: (query: RevisionQuery) => resolveRevision(query, options.config.gitReadSecret),
    group: ({ repository }) => repository.host,
    limit: pollsPerHost,
    onResult,
  });
  const gateway = { url: config.probeUrl ?? '', token: config.probeToken };
  const probes = createBackgroundLookups({
    run: ({ host, attempts }: ProbeQuery) => probe(gateway, host, { attempts }),
    group: () => 'gateway',
    limit: maximumProbes,
    onResult,
  });
  const pages = createBackgroundLookups({
    run: (host: string) => inspectPage(gateway, host),
    group: () => 'gateway',
    limit: maximumLooks,
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
      ...children.map(({ store }) => createWatch(store, toApp)),
      watchQueuePositions(caches.jobs, toApp),
      ...(space === undefined ? [] : [space.watchChanges(() => caches.jobs.list().filter(isQueued).flatMap(toApp))]),
    ],
    reconcile: createReconciler({
      ...{ client, caches, config, recorder, metrics, polls, probes, pages, closings, pruner },
      activity: idle?.record,
      shortage: () => space?.explainShortage(),
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
