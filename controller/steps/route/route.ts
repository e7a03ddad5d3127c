// Step Route: the app's host name leads to its Service, and the Gateway has said so.
import { conditionOf, routes, type HttpRoute, type RouteCondition } from '../../objects/kinds.ts';
import { isApplied } from '../deploy/deploy.ts';
import type { Observed } from '../../reconcile/snapshot.ts';
import { done, failed, waiting, type Draft, type Outcome, type StepResult } from '../../reconcile/outcome.ts';
import { routeOf } from '../deploy/objects.ts';
import { hostOf, type Settings } from '../../reconcile/settings.ts';

export function routeStep(observed: Observed, draft: Draft): StepResult {
  if (draft.built === undefined) return { outcomes: {} };
  const { app, settings, route } = observed;
  const manifest = routeOf(app, settings);
  const host = hostOf(settings, app.metadata.name);
  const outcome =
    route === undefined || !isApplied(route, manifest)
      ? waiting('RoutePending', `The route of ${host} is being made.`)
      : judgeRoute(route, settings, host);
  return { outcomes: { Routed: outcome }, actions: [{ kind: 'apply', resource: routes, manifest, cached: route }] };
}

function verdictsOf(route: HttpRoute, { gateway }: Settings): RouteCondition[] {
  const isOurs = ({ name, namespace = gateway.namespace }: { name: string; namespace?: string }): boolean =>
    name === gateway.name && namespace === gateway.namespace;
  return route.status?.parents?.find(({ parentRef }) => isOurs(parentRef))?.conditions ?? [];
}

/** A verdict counts only if it is about this generation of the route: an older one may be about another host. */
function judgeRoute(route: HttpRoute, settings: Settings, host: string): Outcome {
  const { name } = settings.gateway;
  const conditions = verdictsOf(route, settings);
  const accepted = conditionOf(conditions, 'Accepted');
  const refused = conditions.find(
    ({ type, status }) => status === 'False' && (type === 'Accepted' || type === 'ResolvedRefs'),
  );
  if (accepted === undefined || (accepted.observedGeneration ?? 0) < (route.metadata.generation ?? 0))
    return waiting('RoutePending', `The gateway ${name} has not answered yet for ${host}.`);
  if (refused !== undefined)
    return failed(
      'RouteRefused',
      `The gateway ${name} refuses the route of ${host}: ${refused.message === '' ? refused.reason : refused.message}`,
    );
  if (accepted.status !== 'True')
    return waiting('RoutePending', `The gateway ${name} has not accepted the route of ${host} yet.`);
  return done('Routed', `${host} leads to the app.`);
}
