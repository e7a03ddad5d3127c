// Gathers from the caches all that a reconcile looks at.
import { hostedApp, type HostedApp } from '../../crds/hosted-app.ts';
import { inOrder, isQueued } from '../build-queue/order.ts';
import { StallingError } from '../../lib/kubernetes/index.ts';
import { byApp, type Caches } from './cache/caches.ts';
import type { Errands } from './errands.ts';
import type { HostedAppObject } from '../objects/kinds.ts';
import type { Observed, ProbeAnswer } from './snapshot.ts';
import { hostOf, type Settings } from './settings.ts';
import { sourceIdentity } from '../steps/source/source.ts';
import type { SourceAnswer, SourceQuestion } from '../steps/source/ls-remote.ts';

interface Answers {
  readonly polls: Errands<SourceQuestion, SourceAnswer>;
  readonly probes: Errands<string, ProbeAnswer>;
}

/** Makes the observer. */
export function createObserver(
  caches: Caches,
  settings: Settings,
): (app: HostedAppObject, now: Date, answers: Answers) => Observed {
  return (object, now, { polls, probes }) => {
    const app = parse(object);
    const { name, namespace } = app.metadata;
    const key = `${namespace}/${name}`;
    const jobs = caches.jobs.byIndex(byApp, name);
    return {
      app,
      now,
      settings,
      poll: polls.take(key, sourceIdentity(app)),
      probe: probes.take(key, hostOf(settings, name)),
      jobs,
      pipelinePods: caches.pipelinePods.byIndex(byApp, name),
      // Sorting all that wait is worth it only for those who do.
      queue: jobs.some(isQueued) ? inOrder(caches.jobs.list()).map((job) => job.metadata.name) : [],
      deployment: caches.deployments.get(key),
      service: caches.services.get(key),
      policy: caches.policies.get(key),
      claims: caches.claims.byIndex(byApp, name),
      pods: caches.pods.byIndex(byApp, name),
      route: caches.routes.get(key),
    };
  };
}

/** A status that cannot be read was written by an older version or another hand, and is made anew. */
function parse(object: HostedAppObject): HostedApp {
  const result = hostedApp.safeParse(object);
  const whole = result.success ? result : hostedApp.safeParse({ ...object, status: undefined });
  if (!whole.success)
    throw new StallingError(
      'SpecUnreadable',
      `The API server let through a spec that cannot be read: ${whole.error.message.slice(0, 500)}`,
    );
  return whole.data;
}
