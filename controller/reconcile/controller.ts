// The controller of HostedApps: what wakes it, and the errands that it runs outside the cluster.
import type { Registry } from 'prom-client';
import { isQueued } from '../build-queue/order.ts';
import { labels } from '../../crds/names.ts';
import {
  createController,
  labelKey,
  watches,
  type Client,
  type Controller,
  type EventRecorder,
  type Logger,
  type Store,
  type Watch,
} from '../../lib/kubernetes/index.ts';
import type { Caches } from './cache/caches.ts';
import { createErrands } from './errands.ts';
import type { Job } from '../objects/kinds.ts';
import { probe } from '../steps/publish/probe.ts';
import { createReconciler } from './reconcile.ts';
import type { Settings } from './settings.ts';
import { askRepository, type SourceQuestion } from '../steps/source/ls-remote.ts';

export interface HostedAppControllerOptions {
  readonly client: Client;
  readonly caches: Caches;
  readonly settings: Settings;
  readonly recorder: EventRecorder;
  readonly resyncMs: number;
  readonly log: Logger;
  readonly registry: Registry;
}

/** Repositories of one host asked at once. */
const pollsPerHost = 4;

/** Makes the controller. */
export function createHostedAppController(options: HostedAppControllerOptions): Controller {
  const { client, caches, settings, recorder, resyncMs, log, registry } = options;
  const answered = (key: string): void => {
    controller.enqueue(key);
  };
  const polls = createErrands({
    run: (question: SourceQuestion) => askRepository(question, settings.gitHosts),
    group: ({ repo }) => hostOf(repo),
    limit: pollsPerHost,
    answered,
  });
  const probes = createErrands({
    run: (host: string) => probe(settings.probeUrl ?? '', host),
    group: () => 'gateway',
    limit: 16,
    answered,
  });
  const toApp = labelKey(labels.app, settings.appsNamespace);
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
      watches(caches.apps.store, undefined, { changed: (app, old) => app.wanted !== old.wanted }),
      watches(caches.jobs, toApp),
      ...children.map(({ store }) => watches(store, toApp)),
      placesInQueue(caches.jobs, toApp),
    ],
    reconcile: createReconciler({ client, caches, settings, recorder, polls, probes }),
  });
  return controller;
}

/** Wakes all that wait when one of them leaves the queue: their places have changed. */
function placesInQueue(jobs: Store<Job>, toApp: (job: Job) => readonly string[]): Watch {
  return {
    start: (enqueue) =>
      jobs.subscribe((change) => {
        const left =
          change.type === 'updated'
            ? isQueued(change.old) && !isQueued(change.object)
            : change.type === 'deleted' && isQueued(change.object);
        if (left) for (const job of jobs.list().filter(isQueued)) toApp(job).forEach(enqueue);
      }),
    resyncKeys: () => [],
    get hasSynced() {
      return jobs.hasSynced;
    },
    whenSynced: (signal) => jobs.whenSynced(signal),
  };
}

function hostOf(repo: string): string {
  return URL.canParse(repo) ? new URL(repo).host : '';
}
