// Decides which own domains an app has: claims a domain that DNS proves, routes it, requests a certificate, and gives it up when
// the proof is gone. Every decision follows from DNS and the objects in the cluster.
import { type DomainStatus, formatDomainGatewayName, isServedState, type OwnDomain } from '../../../crds/domains.ts';
import { annotations, labels } from '../../../crds/names.ts';
import { readDomainName } from '../../../lib/domain-names.ts';
import type { Manifest } from '../../../lib/kubernetes/index.ts';
import { omitUndefined } from '../../../lib/values.ts';
import {
  formatTimestamp,
  gateways,
  isConditionTrue,
  routes,
  secrets,
  type Gateway,
  type HttpRoute,
} from '../../objects/kinds.ts';
import type { DomainsConfig } from '../../reconcile/installation-config.ts';
import type { Action, StatusFields } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { buildLabels } from '../deploy/objects.ts';
import { buildDomainRoute, readVerdicts } from '../route/route.ts';
import { type DomainAnswers, findDomainProof } from './proof.ts';

/** What a snapshot has about own domains. */
export interface DomainView {
  /** Undefined: no lookup has ended since the last reconcile. */
  readonly answers: DomainAnswers | undefined;
  /** Routes of domains that this app, or an earlier one of its name, has. */
  readonly routes: readonly HttpRoute[];
  readonly gateways: readonly Gateway[];
  /** The route of a domain, of any app. */
  readonly findRoute: (domain: string) => HttpRoute | undefined;
}

export interface DomainsDecision {
  /** Undefined: the app has no domains. */
  readonly statuses: DomainStatus[] | undefined;
  readonly actions: readonly Action[];
  /** When to look again. */
  readonly afterMs: number | undefined;
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
/** DNS did not answer. */
const failedMs = 5 * minute;
/** The proof of a domain that the app has is gone. */
const lostMs = 10 * minute;
/** A proof is there, and the route is not: it is being made, or was just taken over. */
const claimMs = 10 * second;
/** A proof that is not published is looked for more and more rarely, and then only if the author requests it. */
const [firstPendingMs, pendingEndMs] = [30 * second, 14 * 24 * hour];

export function decideDomains(snapshot: Snapshot, fields: StatusFields): DomainsDecision {
  const { app, config, domains: view } = snapshot;
  const none: DomainsDecision = { statuses: undefined, actions: [], afterMs: undefined };
  if (view === undefined) return none;
  if (config.domains === undefined) return { ...none, actions: removeUnkept(view, new Set(), undefined) };
  const step: Step = { snapshot, fields, view, settings: config.domains };
  const judged = (app.spec.control?.domains ?? []).map((wanted) => judgeDomain(step, wanted));
  const kept = new Set(judged.filter(({ isKept }) => isKept).map(({ status }) => status.name));
  const due = judged.filter(({ checkMs }) => checkMs !== undefined && checkMs <= 0).map(({ status }) => status.name);
  const times = judged.flatMap(({ checkMs }) => (checkMs === undefined ? [] : [Math.max(second, checkMs)]));
  return {
    statuses: judged.length === 0 ? undefined : judged.map(({ status }) => status),
    actions: [
      ...removeUnkept(view, kept, config.domains.namespace, app.metadata.uid),
      ...judged.flatMap(({ actions }) => actions),
      ...(due.length === 0 ? [] : [{ kind: 'prove', domains: due } as const]),
    ],
    afterMs: times.length === 0 ? undefined : Math.min(...times),
  };
}

interface Step {
  readonly snapshot: Snapshot;
  readonly fields: StatusFields;
  readonly view: DomainView;
  readonly settings: DomainsConfig;
}

interface JudgedDomain {
  readonly status: DomainStatus;
  /** Whether the route and the Gateway of the domain stay. */
  readonly isKept: boolean;
  readonly actions: readonly Action[];
  /** Milliseconds until the next lookup; undefined: none. */
  readonly checkMs: number | undefined;
}

function judgeDomain(step: Step, wanted: OwnDomain): JudgedDomain {
  const { app, now } = step.snapshot;
  const { name } = wanted;
  const refusal = readDomainName(name, step.settings.platform);
  if (typeof refusal !== 'string') {
    const message = `${name} ${refusal.message}. ${refusal.fix}`;
    return { status: { name, state: 'Refused', message }, isKept: false, actions: [], checkMs: undefined };
  }
  const holder = step.view.findRoute(name);
  const isHeld = isOwn(holder, app.metadata.uid);
  const { isFresh, ...proof } = updateProof(step, name, isHeld);
  const { state, message, actions = [] } = judgeClaim(step, { ...proof, isFresh }, holder);
  const status = omitUndefined({ ...proof, state, message: message.slice(0, 500) });
  const checkMs = computeCheckTime(status, wanted, { ...step.settings, isHeld, now });
  return { status, isKept: isServedState(state), actions, checkMs };
}

type Proof = Omit<DomainStatus, 'state' | 'message'> & {
  /** The last lookup is of this reconcile, and found the proof. */
  readonly isFresh: boolean;
};

/** What is known of the proof after the last lookup. */
function updateProof({ snapshot, view }: Step, name: string, isHeld: boolean): Proof {
  const before = findStatus(snapshot, name);
  const { state, message: _, ...known } = before ?? { name, state: 'Pending', message: '' };
  const answer = view.answers?.byName[name];
  if (view.answers === undefined || answer === undefined) return { ...known, isFresh: false };
  const found = findDomainProof(answer, snapshot.app.metadata, name, snapshot.config.site);
  const at = view.answers.startedAt.toISOString();
  if (found !== undefined) return { name, provenBy: found, provenAt: at, checkedAt: at, isFresh: true };
  const hadIt = isHeld || known.lostAt !== undefined || isServedState(state);
  return { ...recordAbsence({ ...known, checkedAt: at }, answer.error, hadIt), isFresh: false };
}

/** Only a whole answer without the proof counts as its loss. A proof that never led to the domain is forgotten. */
function recordAbsence(
  before: Omit<Proof, 'isFresh'>,
  error: string | undefined,
  hadIt: boolean,
): Omit<Proof, 'isFresh'> {
  const { lookupError: _, provenBy, provenAt, ...known } = before;
  if (error !== undefined) return { ...known, ...omitUndefined({ provenBy, provenAt }), lookupError: error };
  if (!hadIt) return known;
  return { ...known, ...omitUndefined({ provenBy, provenAt }), lostAt: known.lostAt ?? known.checkedAt };
}

function findStatus({ app }: Snapshot, name: string): DomainStatus | undefined {
  return app.status?.domains?.find((each) => each.name === name);
}

interface Verdict {
  readonly state: DomainStatus['state'];
  readonly message: string;
  readonly actions?: readonly Action[];
}

function judgeClaim(step: Step, proof: Proof, holder: HttpRoute | undefined): Verdict {
  const { app } = step.snapshot;
  const { name, lostAt, provenAt } = proof;
  if (isOwn(holder, app.metadata.uid)) return judgeHeld(step, proof, holder);
  if (proof.isFresh) return claim(step, name, holder);
  if (lostAt !== undefined) return createRemovedVerdict(name);
  const before = findStatus(step.snapshot, name);
  if (before?.state === 'Taken' && provenAt !== undefined) return before;
  // The cache does not have the new route yet, or another app has just taken the domain over: the next lookup says.
  if (isServedState(before?.state ?? '')) return createClaimedVerdict(name);
  return {
    state: 'Pending',
    message: `Publish one of the two records of ${name}, and point the domain at this platform.`,
  };
}

/** The app has the domain, and keeps it for a while if its proof is gone. */
function judgeHeld(step: Step, { name, lostAt, checkedAt = '', lookupError }: Proof, route: HttpRoute): Verdict {
  const verdict = serve(step, name, route);
  if (lostAt === undefined) return verdict;
  const end = Date.parse(lostAt) + step.settings.graceMs;
  // The proof may be back since the last lookup.
  if (Date.parse(checkedAt) >= end && lookupError === undefined) return createRemovedVerdict(name);
  const message = `No record of ${name} proves any more that it belongs to this app. Publish one again before ${formatTimestamp(new Date(end))}, when the app loses the domain.`;
  return { ...verdict, state: 'ProofLost', message };
}

function createClaimedVerdict(name: string): Verdict {
  return { state: 'Issuing', message: `The proof of ${name} was found. The domain is being set up.` };
}

function createRemovedVerdict(name: string): Verdict {
  return {
    state: 'Removed',
    message: `The proof of ${name} was gone for too long, or another app proved it in the meantime. Publish the record again to get it back.`,
  };
}

/**
 * Claims a domain that this reconcile has seen the proof of. The name of a route is unique, so of several apps with a proof the
 * first one gets it. An app whose proof is not among the same records has lost the domain, and gives way immediately: the
 * owner of the domain has chosen another app.
 */
function claim(step: Step, name: string, holder: HttpRoute | undefined): Verdict {
  const { snapshot, view } = step;
  const create: Action = { kind: 'create', resource: routes, manifest: buildRouteManifest(step, name) };
  const claimed: Verdict = { ...createClaimedVerdict(name), actions: [create] };
  if (holder === undefined) return claimed;
  const answer = view.answers?.byName[name];
  const other = readHolder(holder);
  const isLost =
    answer?.error === undefined &&
    answer !== undefined &&
    other !== undefined &&
    findDomainProof(answer, other, name, snapshot.config.site) === undefined;
  if (isLost)
    return { ...claimed, actions: [{ kind: 'delete', resource: routes, object: holder, isStranger: true }, create] };
  return {
    state: 'Taken',
    message: `Another app has ${name}, and the record that proves it is still published. Remove that record first.`,
  };
}

function isOwn(route: HttpRoute | undefined, uid: string): route is HttpRoute {
  return route !== undefined && readHolder(route)?.uid === uid;
}

function readHolder({ metadata }: HttpRoute): { readonly name: string; readonly uid: string } | undefined {
  if (metadata.labels?.[labels.domain] === undefined) return undefined;
  return metadata.ownerReferences?.find(({ kind }) => kind === 'HostedApp');
}

/** Keeps route and Gateway of a domain that the app has, and says how far they are. */
function serve(step: Step, name: string, route: HttpRoute): Verdict {
  const { snapshot, view } = step;
  const wanted = buildRouteManifest(step, name);
  // With the UID, a write fails if another app has the domain by now.
  const metadata = { ...wanted.metadata, uid: route.metadata.uid };
  const gateway = buildGateway(step, name);
  const cached = view.gateways.find((each) => each.metadata.name === gateway.metadata.name);
  const actions: Action[] = [
    { kind: 'apply', resource: routes, manifest: { ...wanted, metadata }, cached: route },
    { kind: 'apply', resource: gateways, manifest: gateway, cached },
  ];
  const { namespace } = step.settings;
  const conditions = cached?.status?.listeners?.[0]?.conditions;
  const hasCertificate = isConditionTrue(conditions, 'ResolvedRefs') && isConditionTrue(conditions, 'Programmed');
  const verdicts = readVerdicts(route, { name: gateway.metadata.name, namespace });
  if (hasCertificate && isConditionTrue(verdicts, 'Accepted')) {
    const url = new URL(`https://${name}:${snapshot.config.site.port}`).href;
    return { state: 'Active', message: `The app answers at ${url}`, actions };
  }
  const message = `The proof of ${name} was found. Its certificate is being issued, for which the domain must point at this platform.`;
  return { state: 'Issuing', message, actions };
}

function buildRouteManifest({ snapshot, fields, settings }: Step, domain: string): Manifest {
  const gateway = { name: formatDomainGatewayName(snapshot.app.metadata, domain), namespace: settings.namespace };
  return buildDomainRoute(snapshot, fields, { domain, gateway });
}

/** A Gateway of its own, so that the operator needs no right to change the one of the platform. */
function buildGateway({ snapshot, settings }: Step, domain: string): Manifest {
  const { app, config } = snapshot;
  const name = formatDomainGatewayName(app.metadata, domain);
  const { issuer, gatewayClass, httpsPort, namespace } = settings;
  const issuerKey = issuer.kind === 'Issuer' ? 'cert-manager.io/issuer' : 'cert-manager.io/cluster-issuer';
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'Gateway',
    metadata: {
      name,
      namespace,
      labels: { ...buildLabels(app.metadata.name), [labels.domain]: 'true' },
      annotations: { [issuerKey]: issuer.name, [annotations.appUid]: app.metadata.uid },
    },
    spec: {
      gatewayClassName: gatewayClass,
      listeners: [
        {
          name: 'https',
          protocol: 'HTTPS',
          port: httpsPort,
          hostname: domain,
          tls: { mode: 'Terminate', certificateRefs: [{ group: '', kind: 'Secret', name }] },
          allowedRoutes: {
            namespaces: {
              from: 'Selector',
              selector: { matchLabels: { 'kubernetes.io/metadata.name': config.appsNamespace } },
            },
          },
        },
      ],
    },
  };
}

/** Deletes what belongs to domains that the app does not have any more. @param namespace of the Gateways, if there are any */
function removeUnkept(
  { routes: own, gateways: cached }: DomainView,
  kept: ReadonlySet<string>,
  namespace: string | undefined,
  uid = '',
): Action[] {
  const names = new Set([...kept].map((name) => formatDomainGatewayName({ uid }, name)));
  const isLeft = ({ metadata }: HttpRoute | Gateway, wanted: ReadonlySet<string>): boolean =>
    metadata.deletionTimestamp === undefined && !wanted.has(metadata.name);
  return [
    ...own
      .filter((route) => isLeft(route, kept))
      .map((object): Action => ({ kind: 'delete', resource: routes, object, isStranger: true })),
    ...cached
      .filter((gateway) => isLeft(gateway, names))
      .flatMap((object): Action[] => [
        { kind: 'delete', resource: gateways, object, isStranger: true },
        { kind: 'deleteNamed', resource: secrets, ref: { namespace: namespace ?? '', name: object.metadata.name } },
      ]),
  ];
}

/** Milliseconds until the records of a domain are looked up again; undefined: only if its author requests it. */
function computeCheckTime(
  status: DomainStatus,
  { addedAt, checkAfter = addedAt }: OwnDomain,
  { now, ...options }: DomainsConfig & { readonly isHeld: boolean; readonly now: Date },
): number | undefined {
  const { state, checkedAt, lookupError, lostAt } = status;
  if (checkedAt === undefined) return 0;
  const since = Date.parse(checkedAt) - now.getTime();
  // The clock of the API may be ahead of this one.
  if (Date.parse(checkAfter) > Date.parse(checkedAt)) return since + second;
  if (state === 'ProofLost' && lookupError === undefined) {
    const endMs = Date.parse(lostAt ?? checkedAt) + options.graceMs - now.getTime();
    return Math.min(since + Math.min(lostMs, options.intervalMs), endMs);
  }
  const pauseMs = choosePause(status, Date.parse(checkedAt) - Date.parse(lostAt ?? checkAfter), options.isHeld);
  return pauseMs === undefined ? undefined : since + Math.min(pauseMs, options.intervalMs);
}

/** Longest time between two lookups. @param ageMs of the claim, or of the loss of its proof, at the last one */
function choosePause(
  { state, lookupError, lostAt, provenAt }: DomainStatus,
  ageMs: number,
  isHeld: boolean,
): number | undefined {
  if (lookupError !== undefined) return failedMs;
  if (isHeld || state === 'Taken') return Number.POSITIVE_INFINITY;
  if (provenAt !== undefined && lostAt === undefined) return claimMs;
  return ageMs > pendingEndMs ? undefined : Math.min(Math.max(firstPendingMs, ageMs / 4), hour);
}
