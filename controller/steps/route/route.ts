// Step Route: the app's host name leads to its Service, and the Gateway has said so.
import { conditionOf, routes, type HttpRoute, type RouteCondition } from '../../objects/kinds.ts';
import { isApplied } from '../../../lib/kubernetes/index.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { done, failed, waiting, type Draft, type Outcome, type StepResult } from '../../reconcile/outcome.ts';
import { routeOf } from '../deploy/objects.ts';
import { appHost } from '../../../crds/names.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';

export function routeStep(snapshot: Snapshot, draft: Draft): StepResult {
  if (draft.built === undefined) return { outcomes: {} };
  const { app, config, route } = snapshot;
  const manifest = routeOf(app, config, draft.idle !== undefined || draft.activated === true);
  const host = appHost(app.metadata.name, config.site);
  const outcome =
    route === undefined || !isApplied(route, manifest)
      ? waiting('RoutePending', `The route for ${host} is being created.`)
      : judgeRoute(route, config, host);
  return { outcomes: { Routed: outcome }, actions: [{ kind: 'apply', resource: routes, manifest, cached: route }] };
}

function verdictsOf(route: HttpRoute, { gateway }: InstallationConfig): RouteCondition[] {
  const isOurs = ({ name, namespace = gateway.namespace }: { name: string; namespace?: string }): boolean =>
    name === gateway.name && namespace === gateway.namespace;
  return route.status?.parents?.find(({ parentRef }) => isOurs(parentRef))?.conditions ?? [];
}

/** A verdict counts only if it is about this generation of the route: an older one may be about another host. */
function judgeRoute(route: HttpRoute, config: InstallationConfig, host: string): Outcome {
  const { name } = config.gateway;
  const conditions = verdictsOf(route, config);
  const accepted = conditionOf(conditions, 'Accepted');
  const refused = conditions.find(
    ({ type, status }) => status === 'False' && (type === 'Accepted' || type === 'ResolvedRefs'),
  );
  if (accepted === undefined || (accepted.observedGeneration ?? 0) < (route.metadata.generation ?? 0))
    return waiting('RoutePending', `Waiting for the gateway ${name} to accept the route for ${host}.`);
  if (refused !== undefined)
    return failed(
      'RouteRefused',
      `The gateway ${name} rejected the route for ${host}: ${refused.message === '' ? refused.reason : refused.message}`,
    );
  if (accepted.status !== 'True')
    return waiting('RoutePending', `The gateway ${name} has not accepted the route for ${host} yet.`);
  return done('Routed', `${host} is routed to the app.`);
}
