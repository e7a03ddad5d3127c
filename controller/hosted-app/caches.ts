// The caches of the operator: which objects are mirrored, and what of each is worth its memory.
import { labels } from '../../lib/names.ts';
import { byLabel, type KubeObject, type Manager, type Reflector, type Resource } from '../runtime/index.ts';
import { claims, deployments, hostedApps, jobs, pods, policies, routes, services, type Job, type Pod } from './kinds.ts';
import { byApp, type Caches } from './observe.ts';
import { childSelector } from './run/objects.ts';
import type { Settings } from './settings.ts';

const indexers = { [byApp]: byLabel(labels.app) };

/** Starts mirroring all that the reconciler reads. */
export function mirror(manager: Manager, settings: Settings): Caches {
  const { appsNamespace, buildsNamespace } = settings;
  const children = <T extends KubeObject>(resource: Resource<T>): Reflector<T> =>
    manager.reflect(resource, { namespace: appsNamespace, labelSelector: childSelector, indexers });
  return {
    apps: manager.reflect(hostedApps, { namespace: appsNamespace }).store,
    jobs: manager.reflect(jobs, { namespace: buildsNamespace, labelSelector: labels.app, indexers, transform: slimJob }).store,
    pipelinePods: manager.reflect(pods, { namespace: buildsNamespace, labelSelector: labels.app, indexers, transform: slimPod }).store,
    deployments: children(deployments).store,
    services: children(services).store,
    policies: children(policies).store,
    claims: children(claims).store,
    pods: manager.reflect(pods, { namespace: appsNamespace, labelSelector: childSelector, indexers, transform: slimPod }).store,
    routes: children(routes).store,
  };
}

/** Of a Job's spec only `suspend` is read; the template is by far its biggest part. */
function slimJob(job: Job): Job {
  delete job.metadata.managedFields;
  if (job.spec !== undefined) job.spec = { suspend: job.spec.suspend ?? false };
  return job;
}

/** Of a pod only metadata and status are read. */
function slimPod(pod: Pod & { spec?: unknown }): Pod {
  delete pod.metadata.managedFields;
  delete pod.spec;
  return pod;
}
