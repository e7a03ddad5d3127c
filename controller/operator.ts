// Wires the parts of the operator together, and runs them until SIGTERM or the loss of leadership.
import { collectDefaultMetrics, Registry } from 'prom-client';
import { labels } from '../crds/names.ts';
import {
  createClient,
  createEventRecorder,
  createManager,
  readDefaultConnection,
  readInClusterConnection,
} from '../lib/kubernetes/index.ts';
import { createLog } from '../lib/telemetry.ts';
import { createBuildQueue } from './build-queue/build-queue.ts';
import { readOperatorConfig } from './config.ts';
import { createCertificateTask } from './gateway-certificate.ts';
import { createActivatorPool, createActivityRecord, createActivityTask } from './idle/activators.ts';
import { byApp, createCaches } from './reconcile/caches.ts';
import { createHostedAppController } from './reconcile/controller.ts';
import { createPreviewController } from './previews/previews.ts';
import { createRetentionTask } from './retention/retention.ts';
import { createPruner } from './space/pruner.ts';
import { createDiskMetrics, createDiskReader, createSpace, createSpaceMetrics } from './space/space.ts';
import { isNapping } from './steps/deploy/rest.ts';
import { createLookupRoutes } from './steps/source/lookups.ts';
import { createComputeReporter } from './usage/compute.ts';
import { createWorkerRecord } from './usage/busy-workers.ts';
import { createUsageReader, createUsageTask } from './usage/usage.ts';

const certificateMs = 300_000;

/** Runs until SIGTERM or the loss of leadership. */
export async function runOperator(): Promise<void> {
  const log = createLog('operator');
  const read = readOperatorConfig();
  const { installation: config, lease, internalPort, builds, resyncMs, usageMs, activityMs, serviceAccount } = read;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });

  const connection =
    serviceAccount === undefined ? await readDefaultConnection() : await readInClusterConnection(serviceAccount);
  const client = createClient(connection, { userAgent: 'moorage-operator' });
  const manager = createManager({
    ...{ client, log, registry, healthPort: internalPort, leaderElection: lease },
    routes: createLookupRoutes(config, read.internalToken, log),
  });
  const caches = createCaches(manager, config);
  const recorder = createEventRecorder({ client, controller: 'moorage.dev/operator', instance: lease.identity, log });

  const metrics = createSpaceMetrics(registry);
  const proxyUrl = `http://${config.registry.proxy}`;
  const { prune, imageLimit, intervalMs, ...looked } = read.space;
  const space = createSpace({
    ...looked,
    read: createDiskReader(connection, read.kubeletPort),
    disks: createDiskMetrics(registry, config.systemNamespace),
    listPods: () => [...caches.pipelinePods.list(), ...caches.pods.list()],
    proxyUrl,
    intervalMs,
    log,
    metrics,
  });
  if (intervalMs > 0) manager.addLeaderTask('space', (signal) => space.run(signal));
  const pruner = createPruner({
    url: proxyUrl,
    tokenSecret: config.registry.tokenSecret,
    imageLimit,
    cacheBytes: config.pipeline.cacheBytes,
    listJobs: (app) => caches.jobs.listByIndex(byApp, app),
    log,
    metrics,
  });

  const idle =
    config.idle === undefined
      ? undefined
      : {
          pool: createActivatorPool(client, config.systemNamespace),
          record: createActivityRecord(3 * activityMs),
          // The kubelet measures less often than it is asked.
          workers: usageMs > 0 ? createWorkerRecord(4 * usageMs + 60_000) : undefined,
        };
  const apps = createHostedAppController({
    ...{ client, caches, config, recorder, space, resyncMs, log, registry, idle },
    pruner: prune ? pruner : undefined,
  });
  manager.add(apps);
  manager.add(createPreviewController({ client, apps: caches.apps, config, resyncMs, log, registry }));
  manager.addLeaderTask(
    'retention',
    createRetentionTask({
      ...{ client, namespace: config.appsNamespace, keepMs: config.keepDataMs, log },
      listClaims: () => caches.claims.list(),
      getApp: (name) => caches.apps.get(`${config.appsNamespace}/${name}`),
    }),
  );
  const enqueueApp = (app: string): void => {
    apps.enqueue(`${config.appsNamespace}/${app}`);
  };
  if (idle !== undefined) {
    const task = createActivityTask({
      ...idle,
      intervalMs: activityMs,
      onChange: enqueueApp,
      onStateChange: () => {
        apps.resync();
      },
      log,
    });
    manager.addLeaderTask('activity', task);
  }
  manager.add(
    createBuildQueue({
      client,
      namespace: config.buildsNamespace,
      ...builds,
      space,
      jobs: caches.jobs,
      listPods: ({ metadata }) => caches.pipelinePods.listByIndex(byApp, metadata.labels?.[labels.app] ?? ''),
      log,
      registry,
    }),
  );
  if (usageMs > 0) {
    const usage = createUsageReader(connection, config.appsNamespace, read.kubeletPort);
    const compute = read.compute === undefined ? undefined : createComputeReporter({ ...read.compute, log, registry });
    const task = createUsageTask({
      ...{ client, read: usage, intervalMs: usageMs, log, registry },
      listPods: () => caches.pods.list(),
      isFitted: (pod) => !isNapping(pod),
      report: compute,
      observe: (pods, findUse) => idle?.workers?.observe(pods, findUse, Date.now()).forEach(enqueueApp),
    });
    manager.addLeaderTask('usage', task);
  }
  if (config.probeUrl?.startsWith('https:') === true) {
    const seen = { gateway: config.probeUrl, domain: config.site.domain, intervalMs: certificateMs };
    manager.addLeaderTask('gateway certificate', createCertificateTask({ ...seen, log, registry }));
  }
  await manager.run();
}
