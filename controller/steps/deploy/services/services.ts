// Keeps the backing services of an app: plans their objects, judges their state, and reports what the app waits for.
import type { BackingService } from '../../../../crds/backing-services.ts';
import type { HostedApp } from '../../../../crds/hosted-app.ts';
import { annotations } from '../../../../crds/names.ts';
import type { NeededImage, ServiceStatus } from '../../../../crds/status.ts';
import { isApplied, type KubeObject, type Resource } from '../../../../lib/kubernetes/index.ts';
import {
  chooseSmaller,
  claims as claimResource,
  deployments,
  explainUnscheduled,
  explainWaiting,
  policies,
  secrets,
  services as serviceResource,
  type ContainerStatus,
  type Deployment,
  type Pod,
  type Termination,
} from '../../../objects/kinds.ts';
import { clean } from '../../../pipeline/text.ts';
import type { InstallationConfig } from '../../../reconcile/installation-config.ts';
import {
  createStalledOutcome,
  createWaitingOutcome,
  type Action,
  type Outcome,
  type Rejection,
} from '../../../reconcile/outcome.ts';
import type { Snapshot } from '../../../reconcile/snapshot.ts';
import { findPreparedDigest, judgePreparation } from '../../prepared-images.ts';
import { formatRestarts } from '../pods.ts';
import { formatServiceName, readServiceAddresses } from './connections.ts';
import { serviceKinds } from './kinds.ts';
import {
  buildServiceAddress,
  buildServiceClaim,
  buildServiceDeployment,
  buildServicePolicy,
  buildServiceSecret,
} from './objects.ts';

/** The services of an app: actions, status, and what the app waits for. */
export interface ServicesOutcome {
  readonly actions: readonly Action[];
  readonly status: readonly ServiceStatus[];
  /** Why the app waits; undefined when all of its services take connections. */
  readonly obstacle: Outcome | undefined;
  /** Images of services that the installation makes on first use, while they are not ready. */
  readonly neededImages?: readonly NeededImage[];
}

/** `replicas` is 0 while the app itself is stopped. */
export function keepServices(snapshot: Snapshot, replicas: 0 | 1): ServicesOutcome {
  const { app, config } = snapshot;
  const { services } = app.spec;
  const refusal = findRefusal(services, config.run.services);
  if (refusal !== undefined) return { actions: [], status: [], obstacle: refusal };
  const images = services.map((service) => resolveImage(snapshot, service));
  const neededImages = images.flatMap(({ needed }) => needed ?? []);
  if (neededImages.length > 0) return waitForImages(app, neededImages);
  const each = services.map((service, index) =>
    keepService(snapshot, service, images[index] ?? { image: '' }, replicas),
  );
  return {
    actions: each.flatMap(({ actions }) => actions),
    status: each.map(({ status }) => status),
    obstacle: replicas === 0 ? undefined : findObstacle(each),
  };
}

/**
 * The image of a service by digest. An image of the settings without a digest may be one that is made on first use: its
 * digest is known once it is ready.
 */
function resolveImage(snapshot: Snapshot, service: BackingService): ResolvedImage {
  const { app, config } = snapshot;
  const chosen = chooseImage(service, config.run.services) ?? { image: '' };
  if (config.registry.imagesOnDemand?.includes(chosen.image) !== true) return chosen;
  const running = findRunningImage(snapshot, formatServiceName(app, service));
  if (running?.startsWith(`${chosen.image}@`) === true) return { ...chosen, image: running };
  const needed = { image: chosen.image, since: app.metadata.creationTimestamp };
  const digest = findPreparedDigest(app, needed);
  return digest === undefined ? { ...chosen, needed } : { ...chosen, image: `${chosen.image}@${digest}` };
}

function findRunningImage({ serviceObjects }: Snapshot, name: string): string | undefined {
  const deployment = serviceObjects.deployments.find(({ metadata }) => metadata.name === name);
  return deployment?.spec?.template.spec?.containers[0]?.image;
}

interface ResolvedImage extends ChosenImage {
  readonly needed?: NeededImage;
}

function waitForImages(app: HostedApp, neededImages: readonly NeededImage[]): ServicesOutcome {
  const preparation = judgePreparation(app, neededImages);
  const obstacle =
    preparation.kind === 'failed'
      ? createStalledOutcome('ServiceUnavailable', preparation.rejection)
      : createWaitingOutcome(
          'PreparingImage',
          preparation.kind === 'waiting' ? preparation.message : 'Its image is ready.',
        );
  return { actions: [], status: [], obstacle, neededImages };
}

/** Rejects services that this installation does not offer. */
function findRefusal(
  services: readonly BackingService[],
  offered: Snapshot['config']['run']['services'],
): Outcome | undefined {
  if (services.length > offered.count)
    return createStalledOutcome('ServiceUnavailable', {
      rule: 'services/too-many',
      message: `The app asks for ${services.length} services; this installation runs at most ${offered.count} for an app.`,
      fix: 'Remove services that the app can do without.',
    });
  const missing = services.find((service) => chooseImage(service, offered) === undefined);
  return missing === undefined
    ? undefined
    : createStalledOutcome('ServiceUnavailable', explainUnavailable(missing, offered.images));
}

function explainUnavailable(
  { name, type }: BackingService,
  images: Readonly<Record<string, string>>,
): { rule: string; message: string; fix: string } {
  const types = [...new Set(Object.keys(images).map((key) => key.split('-')[0]))].sort();
  return {
    rule: 'services/unavailable',
    message: `The service ${name} is of type ${type}, for which this installation has no image.`,
    fix: `Use one of ${types.length === 0 ? 'none' : types.join(', ')}, or ask the operator of this installation to set services.images.${type}.`,
  };
}

interface ServiceOutcome {
  readonly service: BackingService;
  readonly state: ServiceState;
  readonly actions: readonly Action[];
  readonly status: ServiceStatus;
}

function keepService(
  snapshot: Snapshot,
  service: BackingService,
  { image, note }: ChosenImage,
  replicas: 0 | 1,
): ServiceOutcome {
  const { app, config, serviceObjects, claims } = snapshot;
  const name = formatServiceName(app, service);
  const findCached = <T extends KubeObject>(objects: readonly T[]): T | undefined =>
    objects.find((object) => object.metadata.name === name);
  const deployment = buildServiceDeployment(app, service, config, { image, replicas });
  const current = findCached(serviceObjects.deployments);
  const isMade = current !== undefined && isApplied(current, deployment);
  const hasAddress = readServiceAddresses(serviceObjects.services).has(service.name);
  const pods = serviceObjects.pods.filter((pod) => pod.metadata.annotations?.[annotations.service] === service.name);
  const memory = chooseSmaller(service.memory ?? serviceKinds[service.type].memory, config.run.services.maximum.memory);
  const state = judgeService(service, isMade && hasAddress ? current : undefined, pods, memory);
  const message = [state.why, note].filter((text) => text !== undefined).join('; ');
  return {
    service,
    state,
    actions: [
      {
        kind: 'apply',
        resource: claimResource,
        manifest: buildServiceClaim(app, service, config),
        cached: findCached(claims),
      },
      // Create it until the service is ready: the Secret of an earlier version may be collected after this one is created.
      ...(isMade && state.isReady
        ? []
        : [{ kind: 'create', resource: secrets, manifest: buildServiceSecret(app, service, config) } as const]),
      {
        kind: 'apply',
        resource: policies,
        manifest: buildServicePolicy(app, service),
        cached: findCached(serviceObjects.policies),
      },
      {
        kind: 'apply',
        resource: serviceResource,
        manifest: buildServiceAddress(app, service),
        cached: findCached(serviceObjects.services),
      },
      { kind: 'apply', resource: deployments, manifest: deployment, cached: current },
    ],
    status: {
      name: service.name,
      type: service.type,
      ready: state.isReady,
      ...(message === '' ? {} : { message: message.slice(0, 500) }),
    },
  };
}

function findObstacle(each: readonly ServiceOutcome[]): Outcome | undefined {
  const broken = each.find(({ state }) => state.rejection !== undefined)?.state.rejection;
  if (broken !== undefined) return createStalledOutcome('ServiceFailed', broken);
  const slow = each.filter(({ state }) => !state.isReady);
  if (slow.length === 0) return undefined;
  const states = slow.map(({ service, state }) => `${service.name} (${service.type}): ${state.why ?? 'not ready'}`);
  return createWaitingOutcome('ServicesStarting', `The app starts when its services are ready. ${states.join('; ')}.`);
}

/** Removes services that the app no longer has. Their volumes stay as long as the app's data does. */
export function endServices({ serviceObjects }: Snapshot, app: HostedApp): Action[] {
  const keptNames = new Set(app.spec.services.map((service) => formatServiceName(app, service)));
  const listDeletions = (objects: readonly KubeObject[], resource: Resource): Action[] =>
    objects
      .filter(({ metadata }) => !keptNames.has(metadata.name) && metadata.deletionTimestamp === undefined)
      .map((object) => ({ kind: 'delete', resource, object }));
  return [
    ...listDeletions(serviceObjects.deployments, deployments),
    ...listDeletions(serviceObjects.services, serviceResource),
    ...listDeletions(serviceObjects.policies, policies),
  ];
}

// Judging a backing service by its Deployment and pods: does it take connections, and if not, why?

/** The state of a service. A rejection stays until a person changes something. */
export interface ServiceState {
  readonly isReady: boolean;
  /** Why not, as a sentence without a period. */
  readonly why?: string;
  readonly rejection?: Rejection;
}

/** `deployment` has the wanted spec; undefined while it is being created. */
export function judgeService(
  service: BackingService,
  deployment: Deployment | undefined,
  pods: readonly Pod[],
  memory: string,
): ServiceState {
  if (deployment === undefined) return { isReady: false, why: 'it is being created' };
  if (isAvailable(deployment)) return { isReady: true };
  const failure = pods
    .filter((pod) => pod.metadata.deletionTimestamp === undefined && pod.status?.phase !== 'Failed')
    .map((pod) => judgePod(service, pod, memory))
    .find((each) => each !== undefined);
  return { isReady: false, ...(failure ?? { why: 'it is starting' }) };
}

/** Whether the Deployment's current generation, not an earlier one, has an available pod. */
function isAvailable({ metadata, status = {} }: Deployment): boolean {
  const { observedGeneration = 0, availableReplicas = 0, updatedReplicas = 0 } = status;
  return observedGeneration >= (metadata.generation ?? 0) && availableReplicas > 0 && updatedReplicas > 0;
}

function judgePod(service: BackingService, pod: Pod, memory: string): Omit<ServiceState, 'isReady'> | undefined {
  const status = findContainer(pod);
  if (status === undefined) return toHeldState(explainUnscheduled(pod));
  if (status.ready) return undefined;
  const termination = readTermination(status);
  return termination === undefined
    ? toHeldState(explainWaiting(status.state?.waiting))
    : explainCrash(service, termination, status.restartCount, memory);
}

function findContainer(pod: Pod): ContainerStatus | undefined {
  return pod.status?.containerStatuses?.find(({ name }) => name === 'service');
}

function toHeldState(reason: string | undefined): { why: string } | undefined {
  return reason === undefined ? undefined : { why: truncate(reason) };
}

function readTermination({ state, lastState }: ContainerStatus): Termination | undefined {
  return state?.terminated ?? lastState?.terminated;
}

/** From this many restarts on, a crash is not expected to pass by itself. */
const enoughRestarts = 3;

function explainCrash(
  { name, type }: BackingService,
  { reason: cause, exitCode, message = '' }: Termination,
  restarts: number,
  memory: string,
): Omit<ServiceState, 'isReady'> {
  const isOutOfMemory = cause === 'OOMKilled';
  const reason = isOutOfMemory ? `it exceeded its ${memory} of memory` : `it ended with exit code ${exitCode}`;
  if (restarts < enoughRestarts) return { why: reason };
  const log = clean(message).trim();
  return {
    why: reason,
    rejection: {
      rule: isOutOfMemory ? 'services/out-of-memory' : 'services/crashed',
      message: `The service ${name} (${type}) does not start: ${reason} (${formatRestarts(restarts)}).`,
      fix: isOutOfMemory
        ? `Increase memory of the service ${name} in moorage.yaml (services).`
        : `Look at its last lines. What its volume holds may be of another version, or a setting in env of the service ${name} is wrong.`,
      ...(log === '' ? {} : { log: log.slice(-8_000) }),
    },
  };
}

function truncate(text: string): string {
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

// Choosing the image of a backing service: the requested version, if the installation has it.

export interface ChosenImage {
  readonly image: string;
  /** How it differs from the requested version. */
  readonly note?: string;
}

/** Returns undefined if the installation has no image of that type. */
export function chooseImage(
  { type, version }: BackingService,
  { images }: InstallationConfig['run']['services'],
): ChosenImage | undefined {
  const exact =
    version === undefined
      ? undefined
      : listVersions(version)
          .map((each) => images[`${type}-${each}`])
          .find(Boolean);
  const image = exact ?? images[type];
  if (image === undefined) return undefined;
  return version === undefined || exact !== undefined || hasVersion(image, version)
    ? { image }
    : { image, note: `version ${version} was asked for; this installation runs ${stripDigest(image)}` };
}

/** 16.2-alpine: 16.2-alpine, 16.2, 16. */
function listVersions(version: string): string[] {
  const number = /^[0-9]{1,6}(?:\.[0-9]{1,6}){0,3}/.exec(version)?.[0] ?? version;
  return [...new Set([version, number, number.split('.')[0] ?? number])];
}

/** Whether the tag of the image has that version's first number. */
function hasVersion(image: string, version: string): boolean {
  const first = /^v?([0-9]{1,6})/.exec(version)?.[1];
  const tag = /:(?:[a-z]{0,10})([0-9]{1,6})[^/:]{0,100}$/.exec(stripDigest(image))?.[1];
  return first === undefined || first === tag;
}

/** postgres:17-trixie@sha256:…: postgres:17-trixie. */
function stripDigest(image: string): string {
  return image.replace(/@.*$/, '');
}
