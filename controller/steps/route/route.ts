// Step Route: routes the host names of an app to its Service or the activator, and waits until the Gateway accepts them.
import { isProtected } from '../../../crds/access.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import {
  activator,
  annotations,
  formatAppHost,
  formatSubdomainLabel,
  labels,
  probeHeader,
} from '../../../crds/names.ts';
import { listFormerSlugs, readSlug } from '../../../crds/slugs.ts';
import {
  assignServicePorts,
  formatPortName,
  isRouted,
  listRoutePaths,
  parsePodComponents,
  type PodComponent,
  type RoutedComponent,
} from '../../../crds/routes.ts';
import { isApplied, type Manifest } from '../../../lib/kubernetes/index.ts';
import { findCondition, routes, type HttpRoute, type RouteCondition } from '../../objects/kinds.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import {
  createDoneOutcome,
  createFailedOutcome,
  createWaitingOutcome,
  type Action,
  type Outcome,
  type Progress,
  type StepResult,
} from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { applySettings } from '../build/records.ts';
import { chooseMainPort, limitToRelease, toPodComponents } from '../deploy/components.ts';
import { buildChild } from '../deploy/objects.ts';
import { isReady, readTemplateHash } from '../deploy/pods.ts';

export function runRouteStep(snapshot: Snapshot, { fields }: Progress): StepResult {
  const { app, config, route, componentRoutes = [] } = snapshot;
  const isActivated = shouldActivate(app, fields);
  const components = chooseComponents(snapshot);
  const subdomains = listSubdomains(components);
  const wanted = [
    ...subdomains.map((subdomain) => buildComponentRoute(app, config, { components, subdomain, isActivated })),
    ...buildFormerRoutes(snapshot, { components, subdomains, isActivated }),
  ].map((manifest) => {
    const { name } = manifest.metadata;
    const own = componentRoutes.find(({ metadata }) => metadata.name === name);
    return bindRoute(app, manifest, own ?? snapshot.findRoute?.(name));
  });
  const all = [bindRoute(app, buildRoute(app, config, isActivated, components), route), ...wanted];
  const outcomes = all.map((each) => judgeRoutePair(app, each, config));
  const retired = componentRoutes.filter(
    ({ metadata }) =>
      metadata.deletionTimestamp === undefined &&
      !wanted.some(({ manifest }) => manifest.metadata.name === metadata.name),
  );
  return {
    outcomes: { Routed: outcomes.find(({ kind }) => kind !== 'done') ?? reportRouted(outcomes) },
    actions: [
      ...all.filter((pair) => findOtherHolder(app, pair) === undefined).map(toWrite),
      ...retired.map((object): Action => ({ kind: 'delete', resource: routes, object })),
    ],
  };
}

/** Only the activator knows who may visit a protected app, or a preview. If there is none, nobody reaches them. */
function shouldActivate({ spec }: HostedApp, { idle, activated }: Progress['fields']): boolean {
  return idle !== undefined || activated === true || isProtected(spec) || spec.previewOf !== undefined;
}

/**
 * The components that requests go to: those of the newest release with a ready pod. Until it has one, the release before
 * serves, whose components may have other paths. Empty: the app is one process.
 */
function chooseComponents({ deployment, pods, app }: Snapshot): readonly RoutedComponent[] {
  const template = deployment?.spec?.template.metadata?.annotations;
  const newest = template?.[annotations.template];
  const ready = pods.filter(isReady);
  const serving = ready.find((pod) => readTemplateHash(pod) === newest) ?? ready[0];
  const noted = serving?.metadata.annotations ?? template;
  const listed = noted === undefined ? listBuiltComponents(app) : parsePodComponents(noted[annotations.components]);
  return (listed ?? []).filter(isRouted);
}

/** Before there is a Deployment. */
function listBuiltComponents(app: HostedApp): readonly PodComponent[] | undefined {
  const { built } = app.status ?? {};
  if (built === undefined) return undefined;
  const view = limitToRelease(applySettings(app, built.settings), built);
  return toPodComponents(view, { ...built, port: chooseMainPort(view, built) });
}

function listSubdomains(components: readonly RoutedComponent[]): string[] {
  return [...new Set(components.flatMap(({ route }) => route.subdomain ?? []))].sort();
}

/** An app that may rest is always reached through the activator, which sees when it is used; and so is a protected one. */
export function buildRoute(
  app: HostedApp,
  config: InstallationConfig,
  isActivated: boolean,
  components: readonly RoutedComponent[] = [],
): Manifest {
  const manifest = buildChild(app, 'gateway.networking.k8s.io/v1', 'HTTPRoute', readSlug(app));
  return completeRoute(manifest, app, config, { components, subdomain: undefined, isActivated });
}

/** What is behind a host name. */
interface RoutedHost {
  /** All that get requests, at this host or another. */
  readonly components: readonly RoutedComponent[];
  readonly subdomain: string | undefined;
  readonly isActivated: boolean;
}

/** The route of a host name that only some components have. No app can be called like it. */
function buildComponentRoute(app: HostedApp, config: InstallationConfig, host: RoutedHost): Manifest {
  return buildNamedRoute(app, config, host, readSlug(app));
}

function buildNamedRoute(app: HostedApp, config: InstallationConfig, host: RoutedHost, slug: string): Manifest {
  const name = host.subdomain === undefined ? slug : formatSubdomainLabel(slug, host.subdomain);
  return completeRoute(buildChild(app, 'gateway.networking.k8s.io/v1', 'HTTPRoute', name), app, config, host);
}

/**
 * The routes of the host names that an app had before it was renamed. They lead to the activator, which redirects once the new
 * address is reached, and serves the app until then. A Gateway redirects with 301 or 302 alone, after which clients may repeat a
 * POST as a GET. Without an activator, the app continues to answer at these names.
 */
function buildFormerRoutes(
  { app, config, now }: Snapshot,
  { subdomains, ...host }: Omit<RoutedHost, 'subdomain'> & { readonly subdomains: readonly string[] },
): Manifest[] {
  const isActivated = host.isActivated || config.idle !== undefined;
  return listFormerSlugs(app, now).flatMap((slug) =>
    [undefined, ...subdomains].map((subdomain) =>
      buildNamedRoute(app, config, { ...host, subdomain, isActivated }, slug),
    ),
  );
}

function completeRoute(manifest: Manifest, app: HostedApp, config: InstallationConfig, host: RoutedHost): Manifest {
  const { name, namespace } = config.gateway;
  return {
    ...manifest,
    spec: {
      parentRefs: [{ ...gatewayRef, name, namespace, sectionName: 'https' }],
      hostnames: [formatAppHost(manifest.metadata.name, config.site)],
      rules: buildRules(app, config, host),
    },
  };
}

/** How often a route that another app has is looked at again. */
const takenMs = 60_000;

const gatewayRef = { group: 'gateway.networking.k8s.io', kind: 'Gateway' };

/**
 * The route of an own domain, which leads where the host name of the app does. It is called like the domain, so that one app
 * at most has it. Without Strict-Transport-Security: browsers would remember it when the domain has left the platform.
 */
export function buildDomainRoute(
  snapshot: Snapshot,
  fields: Progress['fields'],
  { domain, gateway }: { readonly domain: string; readonly gateway: { name: string; namespace: string } },
): Manifest {
  const { app, config } = snapshot;
  const manifest = buildChild(app, 'gateway.networking.k8s.io/v1', 'HTTPRoute', domain);
  const plain = { ...config, gateway: { ...config.gateway, hstsSeconds: 0 } };
  const host = {
    components: chooseComponents(snapshot),
    subdomain: undefined,
    isActivated: shouldActivate(app, fields),
  };
  return {
    ...manifest,
    metadata: { ...manifest.metadata, labels: { ...manifest.metadata.labels, [labels.domain]: 'true' } },
    spec: {
      parentRefs: [{ ...gatewayRef, ...gateway, sectionName: 'https' }],
      hostnames: [domain],
      rules: buildRules(app, plain, host),
    },
  };
}

/** The activator chooses the component itself, so it gets all requests. */
function buildRules(
  app: HostedApp,
  config: InstallationConfig,
  { components, subdomain, isActivated }: RoutedHost,
): object[] {
  const toService = { group: '', kind: 'Service', weight: 1 };
  if (isActivated) {
    const service = { ...toService, name: activator.name, namespace: config.systemNamespace, port: 80 };
    return [buildRule(['/'], service, buildFilters(app, config, isActivated))];
  }
  const ports = assignServicePorts(components);
  const here = components.filter(({ route }) => route.subdomain === subdomain);
  const backend = { ...toService, name: app.metadata.name };
  if (here.length === 0) return [buildRule(['/'], { ...backend, port: 80 }, buildFilters(app, config, isActivated))];
  return here
    .flatMap((component) => {
      const port = ports.get(formatPortName(component)) ?? 80;
      return groupPaths(component).map((group) => ({ ...group, backend: { ...backend, port } }));
    })
    .toSorted((one, other) => (other.paths[0]?.length ?? 0) - (one.paths[0]?.length ?? 0))
    .map(({ paths, isRemoved, ...rule }) =>
      buildRule(paths, rule.backend, [...buildFilters(app, config, isActivated), ...(isRemoved ? [stripFilter] : [])]),
    );
}

/** The paths of a component by the rule that they need: a route has at most 16 rules, and each rule has many paths. */
function groupPaths({ route }: RoutedComponent): { readonly paths: readonly string[]; readonly isRemoved: boolean }[] {
  const [path = '/', ...morePaths] = listRoutePaths(route);
  if (!route.stripPath) return [{ paths: [path, ...morePaths], isRemoved: false }];
  return [
    { paths: [path], isRemoved: true },
    ...(morePaths.length === 0 ? [] : [{ paths: morePaths, isRemoved: false }]),
  ];
}

const stripFilter = {
  type: 'URLRewrite',
  urlRewrite: { path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/' } },
};

function buildRule(paths: readonly string[], backend: object, filters: object[]): object {
  return {
    matches: paths.map((value) => ({ path: { type: 'PathPrefix', value } })),
    ...(filters.length === 0 ? {} : { filters }),
    backendRefs: [backend],
  };
}

function buildFilters({ spec }: HostedApp, { gateway }: InstallationConfig, isActivated: boolean): object[] {
  const { hstsSeconds } = gateway;
  const set = [
    ...(hstsSeconds === 0 ? [] : [{ name: 'Strict-Transport-Security', value: `max-age=${hstsSeconds}` }]),
    // Keeps previews out of search engines, whatever the app itself answers.
    ...(spec.previewOf === undefined ? [] : [{ name: 'X-Robots-Tag', value: 'noindex' }]),
  ];
  return [
    // The activator reads and removes it; an app must never get it from anybody.
    ...(isActivated ? [] : [{ type: 'RequestHeaderModifier', requestHeaderModifier: { remove: [probeHeader] } }]),
    ...(set.length === 0 ? [] : [{ type: 'ResponseHeaderModifier', responseHeaderModifier: { set } }]),
  ];
}

/** A wanted route and what there is of it. */
interface RoutePair {
  readonly manifest: Manifest;
  readonly cached: HttpRoute | undefined;
  /** Whether another app could have its name: only the names that begin with the app's ID are its own. */
  readonly isContested: boolean;
}

/** With the UID of the route, a write fails if another app has it by now. */
function bindRoute(app: HostedApp, manifest: Manifest, cached: HttpRoute | undefined): RoutePair {
  const { name: id } = app.metadata;
  const { name } = manifest.metadata;
  const isContested = name !== id && !name.startsWith(formatSubdomainLabel(id, ''));
  if (!isContested || cached === undefined) return { manifest, cached, isContested };
  const metadata = { ...manifest.metadata, uid: cached.metadata.uid };
  return { manifest: { ...manifest, metadata }, cached, isContested };
}

/** A route that is not cached may be another app's: it is created, and never taken over. */
function toWrite({ manifest, cached, isContested }: RoutePair): Action {
  return cached === undefined && isContested
    ? { kind: 'create', resource: routes, manifest }
    : { kind: 'apply', resource: routes, manifest, cached };
}

/** The ID of another app that has the route. */
function findOtherHolder({ metadata }: HostedApp, { cached }: RoutePair): string | undefined {
  const holder = cached?.metadata.ownerReferences?.find(({ kind }) => kind === 'HostedApp')?.name;
  return holder === metadata.name ? undefined : holder;
}

function judgeRoutePair(app: HostedApp, pair: RoutePair, config: InstallationConfig): Outcome {
  const { manifest, cached } = pair;
  const host = formatAppHost(manifest.metadata.name, config.site);
  const holder = findOtherHolder(app, pair);
  if (holder !== undefined)
    return createFailedOutcome('RouteRefused', `${host} is the address of another app, ${holder}.`, takenMs);
  return cached === undefined || !isApplied(cached, manifest)
    ? createWaitingOutcome('RoutePending', `The route for ${host} is being created.`)
    : judgeRoute(cached, config, host);
}

function reportRouted(outcomes: readonly Outcome[]): Outcome {
  const [only] = outcomes;
  return only !== undefined && outcomes.length === 1
    ? only
    : createDoneOutcome('Routed', outcomes.map(({ message }) => message).join(' '));
}

/** A verdict counts only for this generation of the route: an older one may be about another host. */
function judgeRoute(route: HttpRoute, config: InstallationConfig, host: string): Outcome {
  const { name } = config.gateway;
  const conditions = readVerdicts(route, config.gateway);
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

/** What a Gateway says of a route. */
export function readVerdicts(
  route: HttpRoute,
  gateway: { readonly name: string; readonly namespace: string },
): RouteCondition[] {
  const isOurs = ({ name, namespace = gateway.namespace }: { name: string; namespace?: string }): boolean =>
    name === gateway.name && namespace === gateway.namespace;
  return route.status?.parents?.find(({ parentRef }) => isOurs(parentRef))?.conditions ?? [];
}
