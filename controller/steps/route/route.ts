// Step Route: routes the app's host name to its Service or the activator, and waits until the Gateway accepts it.
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { activator, formatAppHost, probeHeader } from '../../../crds/names.ts';
import { isApplied, type Manifest } from '../../../lib/kubernetes/index.ts';
import { findCondition, routes, type HttpRoute, type RouteCondition } from '../../objects/kinds.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import {
  createDoneOutcome,
  createFailedOutcome,
  createWaitingOutcome,
  type Outcome,
  type Progress,
  type StepResult,
} from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { buildChild } from '../deploy/objects.ts';

export function runRouteStep(snapshot: Snapshot, { fields }: Progress): StepResult {
  const { app, config, route } = snapshot;
  const manifest = buildRoute(app, config, fields.idle !== undefined || fields.activated === true);
  const host = formatAppHost(app.metadata.name, config.site);
  const outcome =
    route === undefined || !isApplied(route, manifest)
      ? createWaitingOutcome('RoutePending', `The route for ${host} is being created.`)
      : judgeRoute(route, config, host);
  return { outcomes: { Routed: outcome }, actions: [{ kind: 'apply', resource: routes, manifest, cached: route }] };
}

/** An app that may rest is always reached through the activator, which sees when it is used. */
export function buildRoute(app: HostedApp, config: InstallationConfig, isActivated: boolean): Manifest {
  const { name, namespace } = config.gateway;
  return {
    ...buildChild(app, 'gateway.networking.k8s.io/v1', 'HTTPRoute', app.metadata.name),
    spec: {
      parentRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name, namespace, sectionName: 'https' }],
      hostnames: [formatAppHost(app.metadata.name, config.site)],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' } }],
          ...buildFilters(config, isActivated),
          backendRefs: [
            isActivated
              ? {
                  group: '',
                  kind: 'Service',
                  name: activator.name,
                  namespace: config.systemNamespace,
                  port: 80,
                  weight: 1,
                }
              : { group: '', kind: 'Service', name: app.metadata.name, port: 80, weight: 1 },
          ],
        },
      ],
    },
  };
}

function buildFilters({ gateway: { hstsSeconds } }: InstallationConfig, isActivated: boolean): { filters?: object[] } {
  const https = { name: 'Strict-Transport-Security', value: `max-age=${hstsSeconds}` };
  const filters = [
    // The activator reads and removes it; an app must never get it from anybody.
    ...(isActivated ? [] : [{ type: 'RequestHeaderModifier', requestHeaderModifier: { remove: [probeHeader] } }]),
    ...(hstsSeconds === 0 ? [] : [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { set: [https] } }]),
  ];
  return filters.length === 0 ? {} : { filters };
}

/** A verdict counts only for this generation of the route: an older one may be about another host. */
function judgeRoute(route: HttpRoute, config: InstallationConfig, host: string): Outcome {
  const { name } = config.gateway;
  const conditions = readVerdicts(route, config);
  const accepted = findCondition(conditions, 'Accepted');
  const refused = conditions.find(
    ({ type, status }) => status === 'False' && (type === 'Accepted' || type === 'ResolvedRefs'),
  );
  if (accepted === undefined || (accepted.observedGeneration ?? 0) < (route.metadata.generation ?? 0))
    return createWaitingOutcome('RoutePending', `Waiting for the gateway ${name} to accept the route for ${host}.`);
  if (refused !== undefined)
    return createFailedOutcome(
      'RouteRefused',
      `The gateway ${name} rejected the route for ${host}: ${refused.message === '' ? refused.reason : refused.message}`,
    );
  if (accepted.status !== 'True')
    return createWaitingOutcome('RoutePending', `The gateway ${name} has not accepted the route for ${host} yet.`);
  return createDoneOutcome('Routed', `${host} is routed to the app.`);
}

function readVerdicts(route: HttpRoute, { gateway }: InstallationConfig): RouteCondition[] {
  const isOurs = ({ name, namespace = gateway.namespace }: { name: string; namespace?: string }): boolean =>
    name === gateway.name && namespace === gateway.namespace;
  return route.status?.parents?.find(({ parentRef }) => isOurs(parentRef))?.conditions ?? [];
}
