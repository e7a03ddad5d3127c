// The operator's parts and how they hang together: wiring only.
import { Registry, collectDefaultMetrics } from 'prom-client';
import { labels } from '../crds/names.ts';
import { createLog } from '../lib/log.ts';
import { createBuildQueue } from './build-queue/build-queue.ts';
import { operatorConfig } from './config.ts';
import type { Pod } from './objects/kinds.ts';
import { activatorPool } from './idle/activators.ts';
import { activityRecord } from './idle/activity.ts';
import { createActivityTask } from './idle/task.ts';
import { byApp, mirror } from './reconcile/cache/caches.ts';
import { createHostedAppController } from './reconcile/controller.ts';
import { isNapping } from './steps/deploy/idle/nap.ts';
import { kubeletUsage } from './usage/kubelet.ts';
import { createUsageTask } from './usage/usage.ts';
import {
  createClient,
  createEventRecorder,
  createManager,
  defaultConnection,
  inClusterConnection,
} from '../lib/kubernetes/index.ts';

/** Runs until SIGTERM or the loss of leadership. */
export async function runOperator(): Promise<void> {
  const log = createLog('operator');
  const {
    installation: config,
    lease,
    internalPort,
    builds,
    resyncMs,
    usageMs,
    activityMs,
    serviceAccount,
  } = operatorConfig();
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });

  const connection =
    serviceAccount === undefined ? await defaultConnection() : await inClusterConnection(serviceAccount);
  const client = createClient(connection, { userAgent: 'moorage-operator' });
  const manager = createManager({ client, log, registry, healthPort: internalPort, leaderElection: lease });
  const caches = mirror(manager, config);
  const recorder = createEventRecorder({ client, controller: 'moorage.dev/operator', instance: lease.identity, log });

  const idle =
    config.idle === undefined
      ? undefined
      : { pool: activatorPool(client, config.systemNamespace), record: activityRecord(3 * activityMs) };
  const apps = createHostedAppController({ client, caches, config, recorder, resyncMs, log, registry, idle });
  manager.add(apps);
  if (idle !== undefined) {
    const changed = (app: string): void => {
      apps.enqueue(`${config.appsNamespace}/${app}`);
    };
    manager.addLeaderTask('activity', createActivityTask({ ...idle, intervalMs: activityMs, changed, log }));
  }
  manager.add(
    createBuildQueue({
      client,
      namespace: config.buildsNamespace,
      ...builds,
      jobs: caches.jobs,
      podsOf: ({ metadata }) => caches.pipelinePods.byIndex(byApp, metadata.labels?.[labels.app] ?? ''),
      log,
      registry,
    }),
  );
  if (usageMs > 0) {
    const read = kubeletUsage(connection, config.appsNamespace);
    const pods = (): readonly Pod[] => caches.pods.list().filter((pod) => !isNapping(pod));
    manager.addLeaderTask('usage', createUsageTask({ client, read, pods, intervalMs: usageMs, log, registry }));
  }
  await manager.run();
}
