// Finds each pod's address and bridge port in the records of the CNI plugins, which exist before any container of the
// pod runs, or else in its status.
import { isIPv4 } from 'node:net';
import { readFile, readdir, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import type { Protocol, Labels } from './model.ts';

/** A port of a pod that has a name. */
export interface NamedPort {
  name: string;
  protocol: Protocol;
  port: number;
}

/** A pod with its own address. */
export interface Endpoint {
  namespace: string;
  name: string;
  uid: string;
  labels: Labels;
  address: string;
  ports: readonly NamedPort[];
}

/** A pod's attachment by the CNI plugin: the host end of its veth pair and the address behind it. */
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

/** The fields of a Pod that are read. */
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

/** A parsed pod. */
export type Pod = z.output<typeof podSchema>;

/**
 * Endpoints, and the addresses that two pods claim. Contested addresses are omitted, so that neither pod gets traffic.
 */
export interface Endpoints {
  endpoints: readonly Endpoint[];
  contested: readonly string[];
}

/**
 * Assigns each pod its address: the one that the CNI plugin recorded before any container ran and that no pod can write,
 * or, for pods without a record, the one in their status.
 */
export function findEndpoints(pods: readonly Pod[], attachments: readonly Attachment[]): Endpoints {
  const attached = new Map(attachments.map((attachment) => [formatOwnerKey(attachment), attachment.address]));
  const byAddress = new Map<string, { recorded: boolean; endpoint: Endpoint }[]>();
  for (const pod of pods) {
    const recorded = resolveAddress(pod, attached);
    const address = recorded ?? getReportedAddress(pod);
    if (address === undefined || pod.spec.hostNetwork === true) continue;
    const claims = byAddress.get(address) ?? [];
    byAddress.set(address, [...claims, { recorded: recorded !== undefined, endpoint: toEndpoint(pod, address) }]);
  }
  return splitContested(byAddress);
}

function splitContested(byAddress: ReadonlyMap<string, { recorded: boolean; endpoint: Endpoint }[]>): Endpoints {
  const endpoints: Endpoint[] = [];
  const contested: string[] = [];
  for (const [address, claims] of byAddress) {
    const recorded = claims.filter((claim) => claim.recorded);
    const [winner, ...rivals] = recorded.length > 0 ? recorded : claims;
    if (winner !== undefined && rivals.length === 0) endpoints.push(winner.endpoint);
    else contested.push(address);
  }
  return { endpoints, contested };
}

function formatOwnerKey(owner: { namespace: string; name: string; uid: string }): string {
  return `${owner.namespace}/${owner.name}/${owner.uid}`;
}

function resolveAddress({ metadata }: Pod, attached: ReadonlyMap<string, string>): string | undefined {
  const { namespace, name, uid, annotations } = metadata;
  // The kubelet runs a static pod under the hash of its file; its mirror pod on the API server has a different UID.
  const mirrored = annotations['kubernetes.io/config.mirror'];
  return (
    attached.get(formatOwnerKey({ namespace, name, uid })) ??
    (mirrored === undefined ? undefined : attached.get(formatOwnerKey({ namespace, name, uid: mirrored })))
  );
}

function getReportedAddress({ status }: Pod): string | undefined {
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

const recordSchema = z.object({
  cniArgs: z.array(z.tuple([z.string(), z.string()])).nullish(),
  result: z.object({
    interfaces: z
      .array(z.object({ name: z.string(), mac: z.string().optional(), sandbox: z.string().optional() }))
      .default([]),
    ips: z.array(z.object({ address: z.string(), interface: z.number().int().optional() })).default([]),
  }),
});

/** Returns the bridge that a network interface belongs to. */
export type BridgeReader = (port: string) => Promise<string | undefined>;

/** Reads the bridge from the kernel. */
export const readBridge: BridgeReader = async (port) => {
  try {
    return basename(await readlink(`/sys/class/net/${port}/master`));
  } catch {
    return undefined;
  }
};

/** The attachments, and records that could not be parsed: partially written, or with an unexpected shape. */
export interface AttachmentReading {
  attachments: readonly Attachment[];
  unreadable: readonly string[];
}

/**
 * Reads the records in the CNI library's cache directory. Omits those of other networks, and of pods whose veth pair no
 * longer exists. Returns `undefined` if there is no such directory.
 */
export async function readAttachments(
  directory: string,
  bridge: string,
  master: BridgeReader = readBridge,
): Promise<AttachmentReading | undefined> {
  const names = await readdir(directory).catch(() => undefined);
  if (names === undefined) return undefined;
  const attachments: Attachment[] = [];
  const unreadable: string[] = [];
  for (const name of names.sort()) {
    const record = await readRecord(join(directory, name));
    if (record === 'unreadable') unreadable.push(name);
    else if (record !== 'gone')
      attachments.push(...(await filterAttached(toAttachments(record, bridge), bridge, master)));
  }
  return { attachments, unreadable };
}

type CniRecord = z.output<typeof recordSchema>;

async function readRecord(path: string): Promise<CniRecord | 'unreadable' | 'gone'> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  if (text === undefined) return 'gone';
  try {
    return recordSchema.parse(JSON.parse(text));
  } catch {
    return 'unreadable';
  }
}

async function filterAttached(
  candidates: readonly Attachment[],
  bridge: string,
  master: BridgeReader,
): Promise<Attachment[]> {
  const attached: Attachment[] = [];
  for (const candidate of candidates) if ((await master(candidate.port)) === bridge) attached.push(candidate);
  return attached;
}

function toAttachments({ cniArgs, result }: CniRecord, bridge: string): Attachment[] {
  const args = new Map(cniArgs ?? []);
  const owner = {
    namespace: args.get('K8S_POD_NAMESPACE'),
    name: args.get('K8S_POD_NAME'),
    uid: args.get('K8S_POD_UID'),
  };
  const onHost = result.interfaces.filter((each) => !each.sandbox);
  const port = onHost.find((each) => each.name !== bridge)?.name;
  if (port === undefined || !onHost.some((each) => each.name === bridge)) return [];
  return result.ips.flatMap(({ address, interface: index }) => {
    const mac = result.interfaces[index ?? -1]?.mac;
    const ip = address.split('/')[0];
    if (!isComplete(owner) || mac === undefined || ip === undefined || ip.includes(':')) return [];
    return [{ ...owner, port, mac: mac.toLowerCase(), address: ip }];
  });
}

function isComplete(
  owner: Record<'namespace' | 'name' | 'uid', string | undefined>,
): owner is Record<'namespace' | 'name' | 'uid', string> {
  return owner.namespace !== undefined && owner.name !== undefined && owner.uid !== undefined;
}
