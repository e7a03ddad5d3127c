// What the activator keeps of a HostedApp and of a pod: enough to know whether the app sleeps, and where it listens.
import { parseDuration } from '../../lib/values.ts';
import { findPins, readSettings, resolveSpec } from '../../crds/effective-settings.ts';
import { hostedApp, type HostedApp, type StoredHostedApp } from '../../crds/hosted-app.ts';
import type { IdleState } from '../../crds/status.ts';
import { annotations, group, kind, labels, plural, version } from '../../crds/names.ts';
import { defineResource, type KubeObject, type ObjectMeta } from '../../lib/kubernetes/index.ts';

/** Why an app does not come up, in words for people. */
export interface WakeFailure {
  readonly message: string;
  readonly fix: string;
}

/** An app, as the activator sees it. */
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
  };
}

/** A pod of an app. */
export interface PodView extends KubeObject {
  readonly view: {
    readonly app: string;
    /** Undefined: it has no address yet, or none that is of use any more. */
    readonly address: string | undefined;
    readonly port: number;
    readonly isReady: boolean;
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

function slim({ name, namespace = '', uid, resourceVersion, creationTimestamp }: ObjectMeta): ObjectMeta {
  return { name, namespace, uid, resourceVersion, creationTimestamp };
}

/** Keeps of a HostedApp what is of use here. One that cannot be read is not put to rest, and taken as it comes. */
export function appView(object: KubeObject): AppView {
  const { apiVersion, metadata } = object;
  const { data } = hostedApp.safeParse(object);
  const view =
    data === undefined
      ? { ...unread, title: metadata.name }
      : readView({ ...data, pinned: findPins((object as unknown as StoredHostedApp).spec) });
  return { apiVersion, kind: object.kind, metadata: slim(metadata), view };
}

const unread = {
  isStopped: false,
  idle: undefined,
  restNumber: 0,
  healthPath: undefined,
  startupMs: 120_000,
  failure: undefined,
};

function readView(app: HostedApp): AppView['view'] {
  const { metadata, spec, status = {} } = app;
  const { run, listing } = resolveSpec(app, readSettings(status.built?.settings));
  const { idle } = status;
  return {
    title: listing.title ?? metadata.name,
    isStopped: spec.suspend || run.replicas === 0,
    idle: idle === undefined ? undefined : { state: idle.state, number: idle.number, wakeMs: idle.wakes?.p95Ms },
    restNumber: idle?.number ?? 0,
    healthPath: run.healthPath,
    startupMs: parseDuration(run.startupTime),
    failure: findFailure(status),
  };
}

/** What the operator says of an app that does not run as it should. */
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

/** Keeps of a pod what is of use here. */
export function podView(object: KubeObject): PodView {
  const { apiVersion, metadata, status = {} } = object as PodObject;
  const isOver = metadata.deletionTimestamp !== undefined || status.phase === 'Failed' || status.phase === 'Succeeded';
  return {
    apiVersion,
    kind: object.kind,
    metadata: slim(metadata),
    view: {
      app: metadata.labels?.[labels.app] ?? '',
      address: isOver ? undefined : status.podIP,
      port: Number(metadata.annotations?.[annotations.port] ?? 0),
      isReady: (status.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True'),
    },
  };
}
