// Keeps the backing services of an app: what is to be made for them, how they stand, and what the app waits for.
import type { BackingService } from '../../../../crds/backing-services.ts';
import type { ServiceStatus } from '../../../../crds/status.ts';
import type { HostedApp } from '../../../../crds/hosted-app.ts';
import { annotations } from '../../../../crds/names.ts';
import { isApplied, type KubeObject, type Resource } from '../../../../lib/kubernetes/index.ts';
import {
  claims as claimResource,
  deployments,
  policies,
  secrets,
  services as serviceResource,
} from '../../../objects/kinds.ts';
import { least } from '../../../objects/quantity.ts';
import { stalled, waiting, type Action, type Outcome } from '../../../reconcile/outcome.ts';
import type { Snapshot } from '../../../reconcile/snapshot.ts';
import { imageOf } from './images.ts';
import { serviceKinds } from './kinds.ts';
import { backingName } from './names.ts';
import { backingAddress, backingClaim, backingDeployment, backingPolicy, backingSecret } from './objects.ts';
import { stateOf, type ServiceState } from './state.ts';
import { addressesOf } from './variables.ts';

/** What the services of an app come to. */
export interface ServicesOutcome {
  readonly actions: readonly Action[];
  readonly status: readonly ServiceStatus[];
  /** What the app waits for; undefined when all of its services take connections. */
  readonly obstacle: Outcome | undefined;
}

/** `replicas` is 0 while the app itself is stopped. */
export function keepServices(snapshot: Snapshot, replicas: 0 | 1): ServicesOutcome {
  const { app, config } = snapshot;
  const { services } = app.spec;
  const refused = refusal(services, config.run.services);
  if (refused !== undefined) return { actions: [], status: [], obstacle: refused };
  const each = services.map((service) => keep(snapshot, service, replicas));
  return {
    actions: each.flatMap(({ actions }) => actions),
    status: each.map(({ status }) => status),
    obstacle: replicas === 0 ? undefined : obstacleOf(each),
  };
}

/** What this installation does not offer. */
function refusal(
  services: readonly BackingService[],
  offered: Snapshot['config']['run']['services'],
): Outcome | undefined {
  if (services.length > offered.count)
    return stalled('ServiceUnavailable', {
      rule: 'services/too-many',
      message: `The app asks for ${services.length} services; this installation runs at most ${offered.count} for an app.`,
      fix: 'Remove services that the app can do without.',
    });
  const missing = services.find((service) => imageOf(service, offered) === undefined);
  return missing === undefined ? undefined : stalled('ServiceUnavailable', unavailable(missing, offered.images));
}

function unavailable(
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

function keep(snapshot: Snapshot, service: BackingService, replicas: 0 | 1): ServiceOutcome {
  const { app, config, serviceObjects, claims } = snapshot;
  const { image = '', note } = imageOf(service, config.run.services) ?? {};
  const name = backingName(app, service);
  const cached = <T extends KubeObject>(objects: readonly T[]): T | undefined =>
    objects.find((object) => object.metadata.name === name);
  const deployment = backingDeployment(app, service, config, { image, replicas });
  const current = cached(serviceObjects.deployments);
  const isMade = current !== undefined && isApplied(current, deployment);
  const hasAddress = addressesOf(serviceObjects.services).has(service.name);
  const pods = serviceObjects.pods.filter((pod) => pod.metadata.annotations?.[annotations.service] === service.name);
  const memory = least(service.memory ?? serviceKinds[service.type].memory, config.run.services.maximum.memory);
  const state = stateOf(service, isMade && hasAddress ? current : undefined, pods, memory);
  const message = [state.why, note].filter((text) => text !== undefined).join('; ');
  return {
    service,
    state,
    actions: [
      { kind: 'apply', resource: claimResource, manifest: backingClaim(app, service, config), cached: cached(claims) },
      // Until it is ready: what a service of an earlier version had may be collected after this one was made.
      ...(isMade && state.isReady
        ? []
        : [{ kind: 'create', resource: secrets, manifest: backingSecret(app, service, config) } as const]),
      {
        kind: 'apply',
        resource: policies,
        manifest: backingPolicy(app, service),
        cached: cached(serviceObjects.policies),
      },
      {
        kind: 'apply',
        resource: serviceResource,
        manifest: backingAddress(app, service),
        cached: cached(serviceObjects.services),
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

function obstacleOf(each: readonly ServiceOutcome[]): Outcome | undefined {
  const broken = each.find(({ state }) => state.rejection !== undefined)?.state.rejection;
  if (broken !== undefined) return stalled('ServiceFailed', broken);
  const slow = each.filter(({ state }) => !state.isReady);
  if (slow.length === 0) return undefined;
  const said = slow.map(({ service, state }) => `${service.name} (${service.type}): ${state.why ?? 'not ready'}`);
  return waiting('ServicesStarting', `The app starts when its services are ready. ${said.join('; ')}.`);
}

/** Ends what ran services that the app no longer asks for. Their volumes stay as long as the app's data does. */
export function endServices({ serviceObjects }: Snapshot, app: HostedApp): Action[] {
  const kept = new Set(app.spec.services.map((service) => backingName(app, service)));
  const ended = (objects: readonly KubeObject[], resource: Resource): Action[] =>
    objects
      .filter(({ metadata }) => !kept.has(metadata.name) && metadata.deletionTimestamp === undefined)
      .map((object) => ({ kind: 'delete', resource, object }));
  return [
    ...ended(serviceObjects.deployments, deployments),
    ...ended(serviceObjects.services, serviceResource),
    ...ended(serviceObjects.policies, policies),
  ];
}
