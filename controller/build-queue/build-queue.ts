// Releases the oldest suspended Jobs while fewer than the limit are running.
import type { Registry } from 'prom-client';
import { labels } from '../../crds/names.ts';
import {
  createController,
  done,
  watches,
  type Client,
  type Controller,
  type Logger,
  type Store,
} from '../../lib/kubernetes/index.ts';
import { jobs as jobResource, type Job } from '../objects/kinds.ts';
import { inOrder, isQueued, isRunning } from './order.ts';

export interface BuildQueueOptions {
  readonly client: Client;
  readonly namespace: string;
  /** Maximum number of concurrent builds. */
  readonly concurrency: number;
  readonly jobs: Store<Job>;
  readonly log: Logger;
  readonly registry: Registry;
}

const key = 'queue';

/**
 * Makes the controller. It has one key, so it never works twice at once, and lists from the server, so it never counts
 * from a stale cache.
 */
export function createBuildQueue(options: BuildQueueOptions): Controller {
  const { client, namespace, concurrency, log, registry } = options;
  return createController({
    name: 'build-queue',
    workers: 1,
    log,
    registry,
    watches: [watches(options.jobs, () => [key], { changed: (job, old) => isRunning(job) !== isRunning(old) })],
    async reconcile(_key, { signal, log: context }) {
      if (!options.jobs.list().some(isQueued)) return done;
      const all: Job[] = [];
      // Most Jobs have done their work well and are kept for their logs; the server need not send them.
      const unfinished = { namespace, labelSelector: labels.app, fieldSelector: 'status.successful=0' };
      for await (const job of client.listAll(jobResource, { ...unfinished, signal })) all.push(job);
      const free = Math.max(0, concurrency - all.filter(isRunning).length);
      for (const job of inOrder(all).slice(0, free)) {
        const { uid, resourceVersion } = job.metadata;
        const patch = { metadata: { uid, resourceVersion }, spec: { suspend: false } };
        await client.patch(jobResource, job.metadata, patch, { type: 'application/merge-patch+json', signal });
        context.info({ job: job.metadata.name }, 'build started');
      }
      return done;
    },
  });
}
