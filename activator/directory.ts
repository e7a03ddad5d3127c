// Finds the app of a host name, and the addresses at which its pods take requests.
import { z } from 'zod';
import { locked, readAccessPolicy, type AccessPolicy } from '../crds/access.ts';
import { findPins, readSettings, resolveSpec } from '../crds/effective-settings.ts';
import { hostedApp, type HostedApp, type StoredHostedApp } from '../crds/hosted-app.ts';
import { chooseDomainOwner, type DomainStatus, domainStatuses, listServedDomains } from '../crds/domains.ts';
import { computePodStartMs, listComponents, listRunningComponents } from '../crds/components.ts';
import { addSubdomain, annotations, group, kind, labels, parseHostLabel, plural, version } from '../crds/names.ts';
import { listFormerSlugs, type NamedApp, readSlug, slugFields } from '../crds/slugs.ts';
import { previewOf } from '../crds/previews.ts';
import { parsePodComponents, type PodComponent } from '../crds/routes.ts';
import type { IdleState } from '../crds/status.ts';
import { defineResource, type KubeObject, type ObjectMeta, type Store } from '../lib/kubernetes/index.ts';

/** Where a pod of an app listens. */
export interface Backend {
  readonly pod: string;
  readonly address: string;
  readonly port: number;
  readonly isReady: boolean;
  /** Its components, with the ports and routes of those that listen; undefined if the app is one process. */
  readonly components: readonly PodComponent[] | undefined;
}

/** What a host name stands for. */
export interface Site {
  readonly app: AppView;
  /** That of a component with a host name that only it has. */
  readonly subdomain: string | undefined;
  /** Origin of the same part of the app at its current name, if the host is that of a former one. */
  readonly movedTo?: string | undefined;
}

export interface Directory {
  /** @param host as in the header Host, with or without a port */
  find(host: string | undefined): Site | undefined;
  get(name: string): AppView | undefined;
  /** The ready pods, or if none is ready, those that are starting. */
  listBackends(app: string): readonly Backend[];
  /** Calls `changed` with the name of each app that has changed. */
  subscribe(changed: (app: string) => void): void;
}

export interface DirectoryOptions {
  /** With {@link appIndexers}. */
  readonly apps: Store<AppView>;
  /** With the index {@link byApp}. */
  readonly pods: Store<PodView>;
  readonly namespace: string;
  readonly domain: string;
}

/** Longer than a pod takes to end. */
const retiredMs = 45_000;

/** Indexes of apps: by own domain, and previews by the app that they belong to. A preview has no own domains. */
const byDomain = 'domain';
const byPreviewed = 'previewed';
/** Index of renamed apps: by the slugs that are not their names. A preview has none. */
const bySlug = 'slug';
export const appIndexers = {
  [bySlug]: ({ view: { names, previewOf: shown } }: AppView): readonly string[] =>
    shown === undefined && names !== undefined ? [names.slug, ...names.former.map(({ name }) => name)] : [],
  [byDomain]: ({ view }: AppView): readonly string[] => (view.previewOf === undefined ? listServedDomains(view) : []),
  [byPreviewed]: ({ view }: AppView): readonly string[] => [view.previewOf ?? []].flat(),
};

/** Index of pods. */
export const byApp = 'app';
export const podIndexers = { [byApp]: ({ view }: PodView): readonly string[] => [view.app] };

export function createDirectory({ apps, pods, namespace, domain }: DirectoryOptions): Directory {
  /**
   * UIDs of pods that ran when their app was put to sleep, and until when that counts: they are terminating, even if the
   * cache does not show it yet.
   */
  const retired = new Map<string, number>();
  const get = (name: string): AppView | undefined => {
    const app = apps.get(`${namespace}/${name}`);
    if (app?.view.previewOf === undefined) return app;
    // A preview admits the visitors of its app. Without its app, it admits nobody.
    const shown = apps.get(`${namespace}/${app.view.previewOf}`);
    return { ...app, view: { ...app.view, access: shown === undefined ? locked : shown.view.access } };
  };

  /** An app by its name or one of its slugs. */
  const findNamed = (label: string): AppView | undefined => {
    const now = new Date();
    const isLed = (app: AppView): boolean =>
      readSlug(toNamed(app)) === label || listFormerSlugs(toNamed(app), now).includes(label);
    return get(label) ?? apps.listByIndex(bySlug, label).filter(isLed).toSorted(compareAge)[0];
  };
  /** Says where a renamed app is, once that is known to work: the operator has published it there. */
  const toSite = (app: AppView, label: string, subdomain: string | undefined): Site => {
    const { names } = app.view;
    if (names === undefined || names.slug === label) return { app, subdomain };
    const isPublished = names.url?.hostname === `${names.slug}.${domain}`;
    return { app, subdomain, ...(isPublished ? { movedTo: addSubdomain(names.url.origin, subdomain) } : {}) };
  };

  apps.subscribe((change) => {
    if (change.type !== 'updated' || change.object.view.idle?.state !== 'Asleep') return;
    if (change.old.view.idle?.state === 'Asleep') return;
    const until = performance.now() + retiredMs;
    for (const { metadata } of pods.listByIndex(byApp, change.object.metadata.name)) retired.set(metadata.uid, until);
  });
  pods.subscribe((change) => {
    if (change.type === 'deleted') retired.delete(change.object.metadata.uid);
  });

  return {
    get,
    find(host = '') {
      const name = host.replace(/:\d{1,5}$/, '').toLowerCase();
      if (!name.endsWith(`.${domain}`)) {
        const owners = apps.listByIndex(byDomain, name).map((app) => ({ app, status: app.view }));
        const owner = chooseDomainOwner(owners, name)?.app;
        return owner === undefined ? undefined : { app: owner, subdomain: undefined };
      }
      const label = name.slice(0, -domain.length - 1);
      const app = findNamed(label);
      if (app !== undefined) return toSite(app, label, undefined);
      const parsed = parseHostLabel(label);
      const owner = parsed.subdomain === undefined ? undefined : findNamed(parsed.app);
      return owner === undefined ? undefined : toSite(owner, parsed.app, parsed.subdomain);
    },
    listBackends(app) {
      const backends = pods.listByIndex(byApp, app).flatMap(({ metadata, view }): Backend[] => {
        const { address, port, isReady, components } = view;
        const isRetired = performance.now() < (retired.get(metadata.uid) ?? 0);
        if (address === undefined || port === 0 || isRetired) return [];
        return [{ pod: metadata.name, address, port, isReady, components }];
      });
      const ready = backends.filter(({ isReady }) => isReady);
      return ready.length > 0 ? ready : backends;
    },
    subscribe(changed) {
      apps.subscribe(({ object: { metadata } }) => {
        changed(metadata.name);
        for (const preview of apps.listByIndex(byPreviewed, metadata.name)) changed(preview.metadata.name);
      });
      pods.subscribe(({ object }) => {
        changed(object.view.app);
      });
    },
  };
}

// The cached views of a HostedApp and a pod: just enough to know whether the app sleeps, and where it listens.

/** Why an app does not come up, in words for people. */
export interface WakeFailure {
  readonly message: string;
  readonly fix: string;
}

/** The cached view of an app. */
export interface AppView extends KubeObject {
  readonly view: {
    readonly title: string;
    readonly isStopped: boolean;
    /** Undefined: it never rests. */
    readonly idle:
      { readonly state: IdleState; readonly number: number; readonly wakeMs: number | undefined } | undefined;
    /** How often it was put to rest. */
    readonly restNumber: number;
    /** Path that says whether it is ready; undefined: it is once it accepts connections. */
    readonly healthPath: string | undefined;
    readonly startupMs: number;
    readonly failure: WakeFailure | undefined;
    /** Who may visit it; undefined: anyone. Of a preview, the directory answers with that of its app. */
    readonly access: AccessPolicy | undefined;
    /** Own domains. */
    readonly domains: readonly DomainStatus[] | undefined;
    /** The app that it is a preview of; empty if that cannot be read. */
    readonly previewOf: string | undefined;
    /** Set if its author has renamed it. */
    readonly names: AppNames | undefined;
  };
}

interface AppNames {
  readonly slug: string;
  readonly former: readonly { readonly name: string; readonly until: string }[];
  /** Where the operator has published the app last. */
  readonly url: URL | undefined;
}

/** A pod of an app. */
export interface PodView extends KubeObject {
  readonly view: {
    readonly app: string;
    /** Undefined: it has no address yet, or has ended. */
    readonly address: string | undefined;
    readonly port: number;
    readonly isReady: boolean;
    readonly components: readonly PodComponent[] | undefined;
  };
}

export const apps = defineResource<AppView>({ group, version, kind, plural, namespaced: true });
export const pods = defineResource<PodView>({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  namespaced: true,
});

/** Pods of apps, without those of their backing services. */
export const podSelector = `${labels.app},${labels.component}=app`;

function pickObjectMeta({ name, namespace = '', uid, resourceVersion, creationTimestamp }: ObjectMeta): ObjectMeta {
  return { name, namespace, uid, resourceVersion, creationTimestamp };
}

/** A HostedApp that cannot be parsed is never put to rest, and gets default values. It stays protected. */
export function toAppView(object: KubeObject): AppView {
  const { apiVersion, metadata } = object;
  const { data } = hostedApp.safeParse(object);
  const { spec, status } = object as KubeObject & {
    readonly spec?: { readonly control?: unknown; readonly previewOf?: unknown };
    readonly status?: { readonly domains?: unknown; readonly url?: unknown };
  };
  const own = {
    access: readAccessPolicy(spec?.control),
    domains: domainStatuses.safeParse(status?.domains).data,
    names: readNames(metadata.name, spec?.control, status?.url),
    previewOf: spec?.previewOf === undefined ? undefined : (previewOf.safeParse(spec.previewOf).data?.app ?? ''),
  };
  const view =
    data === undefined
      ? { ...unread, title: metadata.name, ...own }
      : { ...readView({ ...data, pinned: findPins((object as unknown as StoredHostedApp).spec) }), ...own };
  return { apiVersion, kind: object.kind, metadata: pickObjectMeta(metadata), view };
}

const renaming = z.looseObject(slugFields);

/** Undefined if the app was never renamed. */
function readNames(name: string, control: unknown, url: unknown): AppNames | undefined {
  const { slug = name, formerSlugs: former = [] } = renaming.safeParse(control).data ?? {};
  if (slug === name && former.length === 0) return undefined;
  return { slug, former, url: typeof url === 'string' ? (URL.parse(url) ?? undefined) : undefined };
}

function toNamed({ metadata, view: { names } }: AppView): NamedApp {
  return { metadata, spec: { control: { slug: names?.slug, formerSlugs: names?.former } } };
}

function compareAge({ metadata: one }: AppView, { metadata: other }: AppView): number {
  return one.creationTimestamp < other.creationTimestamp ? -1 : 1;
}

const unread = {
  isStopped: false,
  idle: undefined,
  restNumber: 0,
  healthPath: undefined,
  startupMs: 120_000,
  failure: undefined,
};

function readView(app: HostedApp): Omit<AppView['view'], 'access' | 'domains' | 'previewOf' | 'names'> {
  const { metadata, status = {} } = app;
  const resolved = resolveSpec(app, readSettings(status.built?.settings));
  const { run, listing } = resolved;
  const { idle } = status;
  return {
    title: listing.title ?? metadata.name,
    isStopped: resolved.suspend || run.replicas === 0,
    idle: idle === undefined ? undefined : { state: idle.state, number: idle.number, wakeMs: idle.wakes?.p95Ms },
    restNumber: idle?.number ?? 0,
    healthPath: run.healthPath,
    startupMs: computePodStartMs(listRunningComponents(listComponents(resolved))),
    failure: findFailure(status),
  };
}

/** The operator's report on an app that does not run as it should. */
function findFailure({ conditions, rejection }: NonNullable<HostedApp['status']>): WakeFailure | undefined {
  const deployed = conditions?.find(({ type }) => type === 'Deployed');
  // Another release takes its place in a moment.
  if (deployed?.status !== 'False' || deployed.reason === 'RolloutTakenBack') return undefined;
  const { message, fix } = rejection ?? { message: deployed.message, fix: 'It is tried again by itself.' };
  return { message, fix };
}

interface PodObject extends KubeObject {
  status?: {
    phase?: string;
    podIP?: string;
    conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

export function toPodView(object: KubeObject): PodView {
  const { apiVersion, metadata, status = {} } = object as PodObject;
  const isOver = metadata.deletionTimestamp !== undefined || status.phase === 'Failed' || status.phase === 'Succeeded';
  return {
    apiVersion,
    kind: object.kind,
    metadata: pickObjectMeta(metadata),
    view: {
      app: metadata.labels?.[labels.app] ?? '',
      address: isOver ? undefined : status.podIP,
      port: Number(metadata.annotations?.[annotations.port] ?? 0),
      components: parsePodComponents(metadata.annotations?.[annotations.components]),
      isReady: (status.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True'),
    },
  };
}
