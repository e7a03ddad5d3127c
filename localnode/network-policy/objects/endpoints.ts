// Pods as the network knows them: which address and bridge port each one has, and the names of its ports.
import { isIPv4 } from 'node:net';
import { z } from 'zod';
import type { Protocol } from './model.ts';
import type { Labels } from './selector.ts';

/** A port of a pod that has a name. */
export interface NamedPort {
  name: string;
  protocol: Protocol;
  port: number;
}

/** A pod with an address of its own. */
export interface Endpoint {
  namespace: string;
  name: string;
  uid: string;
  labels: Labels;
  address: string;
  ports: readonly NamedPort[];
}

/** What the CNI plugin set up for one pod: the host's end of its cable and the addresses behind it. */
export interface Attachment {
  namespace: string;
  name: string;
  uid: string;
  /** Name of the bridge port on the host. */
  port: string;
  mac: string;
  address: string;
}

const container = z.object({
  restartPolicy: z.string().optional(),
  ports: z
    .array(
      z.object({
        name: z.string().optional(),
        containerPort: z.number().int(),
        protocol: z.enum(['TCP', 'UDP', 'SCTP']).default('TCP'),
      }),
    )
    .optional(),
});

/** The part of a Pod that is read. */
export const podSchema = z.object({
  metadata: z.object({
    namespace: z.string(),
    name: z.string(),
    uid: z.string(),
    labels: z.record(z.string(), z.string()).default({}),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
  spec: z.object({
    nodeName: z.string().optional(),
    hostNetwork: z.boolean().optional(),
    containers: z.array(container).default([]),
    initContainers: z.array(container).default([]),
  }),
  status: z.object({ phase: z.string().optional(), podIP: z.string().optional() }).default({}),
});

/** A pod, as read. */
export type Pod = z.output<typeof podSchema>;

/** Endpoints, and the addresses that two pods claim: those are left out, so that nothing flows for either. */
export interface Endpoints {
  endpoints: readonly Endpoint[];
  contested: readonly string[];
}

/**
 * Gives each pod its address: what the CNI plugin recorded, which is there before any container runs and which no pod
 * can write; else, for pods without a record, the address in their status.
 */
export function findEndpoints(pods: readonly Pod[], attachments: readonly Attachment[]): Endpoints {
  const attached = new Map(attachments.map((attachment) => [ownerKey(attachment), attachment.address]));
  const byAddress = new Map<string, { recorded: boolean; endpoint: Endpoint }[]>();
  for (const pod of pods) {
    const recorded = addressOf(pod, attached);
    const address = recorded ?? reportedAddress(pod);
    if (address === undefined || pod.spec.hostNetwork === true) continue;
    const claims = byAddress.get(address) ?? [];
    byAddress.set(address, [...claims, { recorded: recorded !== undefined, endpoint: toEndpoint(pod, address) }]);
  }
  return withoutContested(byAddress);
}

function withoutContested(byAddress: ReadonlyMap<string, { recorded: boolean; endpoint: Endpoint }[]>): Endpoints {
  const endpoints: Endpoint[] = [];
  const contested: string[] = [];
  for (const [address, claims] of byAddress) {
    const recorded = claims.filter((claim) => claim.recorded);
    const [winner, ...others] = recorded.length > 0 ? recorded : claims;
    if (winner !== undefined && others.length === 0) endpoints.push(winner.endpoint);
    else contested.push(address);
  }
  return { endpoints, contested };
}

function ownerKey(owner: { namespace: string; name: string; uid: string }): string {
  return `${owner.namespace}/${owner.name}/${owner.uid}`;
}

function addressOf({ metadata }: Pod, attached: ReadonlyMap<string, string>): string | undefined {
  const { namespace, name, uid, annotations } = metadata;
  // The kubelet runs a static pod under the hash of its file; the API server's mirror of it has a UID of its own.
  const mirrored = annotations['kubernetes.io/config.mirror'];
  return (
    attached.get(ownerKey({ namespace, name, uid })) ??
    (mirrored === undefined ? undefined : attached.get(ownerKey({ namespace, name, uid: mirrored })))
  );
}

function reportedAddress({ status }: Pod): string | undefined {
  const { phase, podIP } = status;
  const over = phase === 'Succeeded' || phase === 'Failed';
  return !over && podIP !== undefined && isIPv4(podIP) ? podIP : undefined;
}

function toEndpoint({ metadata, spec }: Pod, address: string): Endpoint {
  const { namespace, name, uid, labels } = metadata;
  const running = [...spec.containers, ...spec.initContainers.filter((init) => init.restartPolicy === 'Always')];
  const ports = running.flatMap((each) =>
    (each.ports ?? []).flatMap((port) =>
      port.name === undefined ? [] : [{ name: port.name, protocol: port.protocol, port: port.containerPort }],
    ),
  );
  return { namespace, name, uid, labels, address, ports };
}
