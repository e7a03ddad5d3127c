// The mirrors of the API server's objects that the enforcer needs, read into its own terms.
import type { V1NetworkPolicy, V1Namespace, V1Pod } from '@kubernetes/client-node';
import {
  createReflector,
  defineResource,
  type Client,
  type KubeType,
  type Logger,
  type Reflector,
} from '../../../lib/kubernetes/index.ts';
import { podSchema, type Pod } from './endpoints.ts';
import type { Snapshot } from '../state.ts';

/** A NetworkPolicy as the API serves it. */
export type PolicyObject = KubeType<V1NetworkPolicy>;

const PODS = defineResource<KubeType<V1Pod>>({
  group: '',
  version: 'v1',
  kind: 'Pod',
  plural: 'pods',
  namespaced: true,
});
const NAMESPACES = defineResource<KubeType<V1Namespace>>({
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
});
const POLICIES = defineResource<PolicyObject>({
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
});

/** The mirrors. */
export interface Sources {
  pods: Reflector<KubeType<V1Pod>>;
  namespaces: Reflector<KubeType<V1Namespace>>;
  policies: Reflector<PolicyObject>;
}

/** Makes the mirrors; they request nothing from the server until they run. */
export function createSources(client: Client, log: Logger): Sources {
  return {
    pods: createReflector({ client, log, resource: PODS }),
    namespaces: createReflector({ client, log, resource: NAMESPACES }),
    policies: createReflector({ client, log, resource: POLICIES }),
  };
}

/**
 * What the mirrors show now. A pod of an unexpected shape is left out and so gets no network; its name is passed to
 * `onBadPod`.
 */
export function takeSnapshot(
  { pods, namespaces, policies }: Sources,
  onBadPod: (name: string, problem: string) => void,
): Omit<Snapshot, 'attachments'> {
  return {
    pods: pods.store.list().flatMap((object): Pod[] => {
      const parsed = podSchema.safeParse(object);
      if (parsed.success) return [parsed.data];
      onBadPod(`${object.metadata.namespace ?? ''}/${object.metadata.name}`, parsed.error.message);
      return [];
    }),
    namespaces: new Map(namespaces.store.list().map(({ metadata }) => [metadata.name, metadata.labels ?? {}])),
    policies: policies.store
      .list()
      .map(({ metadata, spec }) => ({ namespace: metadata.namespace ?? '', name: metadata.name, spec })),
  };
}
