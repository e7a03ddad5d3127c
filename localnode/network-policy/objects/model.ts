// Parses NetworkPolicy objects strictly into the compiler's input: rules, selectors, ports and IPv4 blocks. A policy
// that cannot be parsed becomes a denial.
import { isIPv4, isIPv6 } from 'node:net';
import { z } from 'zod';

/** A transport that has ports. */
export type Protocol = 'TCP' | 'UDP' | 'SCTP';

/** Ports that a rule opens: a range of numbers (inclusive), or a name that each destination pod resolves. */
export type PolicyPort = { protocol: Protocol; first: number; last: number } | { protocol: Protocol; name: string };

/** The other end of a flow. If `namespaces` is absent, it is in the policy's own namespace. */
export type Peer =
  | { kind: 'pods'; namespaces?: Selector | undefined; pods: Selector }
  | { kind: 'block'; block: Block; except: readonly Block[] };

/** One rule: any of the peers on any of the ports. Absent means all; an empty list of peers means none. */
export interface Rule {
  peers?: readonly Peer[] | undefined;
  ports?: readonly PolicyPort[] | undefined;
}

/** A policy. It does not isolate a direction that is absent; an empty list of rules denies all. */
export interface Policy {
  namespace: string;
  name: string;
  pods: Selector;
  ingress?: readonly Rule[] | undefined;
  egress?: readonly Rule[] | undefined;
}

/**
 * A policy, with the fields that could not be parsed. A policy with such fields denies all traffic of the pods that it
 * selects.
 */
export interface PolicyReading {
  policy: Policy;
  problems: readonly string[];
}

const requirement = z.strictObject({
  key: z.string(),
  operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
  values: z.array(z.string()).nullish(),
});

/** A `LabelSelector` as the API serves it. Rejects unknown fields: ignoring one could widen the selection. */
export const selectorSchema = z.strictObject({
  matchLabels: z.record(z.string(), z.string()).nullish(),
  matchExpressions: z.array(requirement).nullish(),
});

const portNumber = z.number().int().min(1).max(65535);
const portSchema = z
  .strictObject({
    protocol: z.enum(['TCP', 'UDP', 'SCTP']).default('TCP'),
    port: z.union([portNumber, z.string().min(1)]).nullish(),
    endPort: portNumber.nullish(),
  })
  .refine(({ port, endPort }) => endPort == null || (typeof port === 'number' && endPort >= port), {
    path: ['endPort'],
    message: 'needs a numeric `port` that is not above it',
  });

const cidrSchema = z
  .string()
  .refine((text) => readCidr(text) !== undefined, { message: 'is not a CIDR such as 10.0.0.0/8' });
const peerSchema = z
  .strictObject({
    podSelector: selectorSchema.nullish(),
    namespaceSelector: selectorSchema.nullish(),
    ipBlock: z.strictObject({ cidr: cidrSchema, except: z.array(cidrSchema).nullish() }).nullish(),
  })
  .refine((peer) => (peer.ipBlock == null) !== (peer.podSelector == null && peer.namespaceSelector == null), {
    message: 'needs either `ipBlock` or selectors',
  });

const ports = z.array(portSchema).nullish();
const peers = z.array(peerSchema).nullish();
const typesSchema = z.array(z.enum(['Ingress', 'Egress'])).nullish();
const specSchema = z.strictObject({
  podSelector: selectorSchema.nullish(),
  policyTypes: typesSchema,
  ingress: z.array(z.strictObject({ from: peers, ports })).nullish(),
  egress: z.array(z.strictObject({ to: peers, ports })).nullish(),
});

type Spec = z.output<typeof specSchema>;

/**
 * Parses a NetworkPolicy's spec. Never throws: unknown fields are listed in `problems`, and the policy then only
 * denies.
 */
export function readPolicy(name: { namespace: string; name: string }, spec: unknown): PolicyReading {
  const parsed = specSchema.safeParse(spec);
  if (parsed.success) return { policy: { ...name, ...toPolicy(parsed.data) }, problems: [] };
  const problems = parsed.error.issues.map((issue) => `${['spec', ...issue.path].join('.')}: ${issue.message}`);
  return { policy: { ...name, ...createDenial(spec) }, problems };
}

function toPolicy(spec: Spec): Omit<Policy, 'namespace' | 'name'> {
  const types = spec.policyTypes?.length
    ? spec.policyTypes
    : (['Ingress', ...(spec.egress?.length ? ['Egress'] : [])] as const);
  return {
    pods: spec.podSelector ?? {},
    ingress: types.includes('Ingress') ? (spec.ingress ?? []).map((rule) => toRule(rule.from, rule.ports)) : undefined,
    egress: types.includes('Egress') ? (spec.egress ?? []).map((rule) => toRule(rule.to, rule.ports)) : undefined,
  };
}

function toRule(from: z.output<typeof peers>, open: z.output<typeof ports>): Rule {
  return { peers: from?.length ? from.flatMap(toPeer) : undefined, ports: open?.length ? open.map(toPort) : undefined };
}

function toPeer(peer: z.output<typeof peerSchema>): Peer[] {
  if (peer.ipBlock == null)
    return [{ kind: 'pods', namespaces: peer.namespaceSelector ?? undefined, pods: peer.podSelector ?? {} }];
  const cidr = readCidr(peer.ipBlock.cidr);
  // A valid IPv6 block matches nothing in an IPv4 cluster.
  return cidr?.family === 4
    ? [{ kind: 'block', block: cidr.block, except: (peer.ipBlock.except ?? []).flatMap(parseIpv4Block) }]
    : [];
}

function parseIpv4Block(text: string): Block[] {
  const cidr = readCidr(text);
  return cidr?.family === 4 ? [cidr.block] : [];
}

function toPort({ protocol, port, endPort }: z.output<typeof portSchema>): PolicyPort {
  if (port == null) return { protocol, first: 0, last: 65535 };
  return typeof port === 'string' ? { protocol, name: port } : { protocol, first: port, last: endPort ?? port };
}

const selectorOnly = z.object({ podSelector: selectorSchema });
const typesOnly = z.object({ policyTypes: typesSchema });

function createDenial(spec: unknown): Omit<Policy, 'namespace' | 'name'> {
  const types = typesOnly.safeParse(spec).data?.policyTypes ?? [];
  const findDenial = (direction: 'Ingress' | 'Egress'): [] | undefined =>
    types.length === 0 || types.includes(direction) ? [] : undefined;
  return {
    pods: selectorOnly.safeParse(spec).data?.podSelector ?? {},
    ingress: findDenial('Ingress'),
    egress: findDenial('Egress'),
  };
}

/** A label selector; empty matches everything. */
export type Selector = z.output<typeof selectorSchema>;

/** Labels of an object. */
export type Labels = Readonly<Record<string, string>>;

type Requirement = z.output<typeof requirement>;

const meets: Record<Requirement['operator'], (value: string | undefined, values: readonly string[]) => boolean> = {
  In: (value, values) => value !== undefined && values.includes(value),
  NotIn: (value, values) => value === undefined || !values.includes(value),
  Exists: (value) => value !== undefined,
  DoesNotExist: (value) => value === undefined,
};

/** Returns true if every part of the selector matches the labels. */
export function isSelected(selector: Selector, labels: Labels): boolean {
  const getLabel = (key: string): string | undefined => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  return (
    Object.entries(selector.matchLabels ?? {}).every(([key, value]) => getLabel(key) === value) &&
    (selector.matchExpressions ?? []).every(({ key, operator, values }) => meets[operator](getLabel(key), values ?? []))
  );
}

/** Ports of one protocol, both ends included. */
export interface PortRange {
  readonly protocol: Protocol;
  readonly first: number;
  readonly last: number;
}

/**
 * Merges ranges that overlap or touch, and sorts them by protocol and number: the kernel rejects a set with overlapping
 * intervals.
 */
export function mergeRanges(ranges: readonly PortRange[]): PortRange[] {
  const ordered = ranges.toSorted((a, b) =>
    a.protocol === b.protocol ? a.first - b.first : a.protocol < b.protocol ? -1 : 1,
  );
  const merged: PortRange[] = [];
  for (const range of ordered) {
    const previous = merged.at(-1);
    if (previous?.protocol === range.protocol && range.first <= previous.last + 1) {
      merged[merged.length - 1] = { ...previous, last: Math.max(previous.last, range.last) };
    } else merged.push(range);
  }
  return merged;
}

/** Converts an address to an unsigned 32-bit number. The argument must be a valid IPv4 address. */
export function parseAddress(address: string): number {
  return address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
}

/** Inverse of `parseAddress`. */
export function formatAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}

/** A block of IPv4 addresses: network address and prefix length. */
export interface Block {
  readonly network: number;
  readonly prefix: number;
}

/** A parsed CIDR: an IPv4 block, an IPv6 block (not used here), or undefined if it is invalid. */
export type CidrReading = { family: 4; block: Block } | { family: 6 } | undefined;

/** Parses `a.b.c.d/n` or an IPv6 CIDR. Clears host bits, which the API server allows. */
export function readCidr(text: string): CidrReading {
  const match = /^([^/]+)\/(\d{1,3})$/.exec(text);
  const address = match?.[1] ?? '';
  const prefix = Number(match?.[2]);
  if (isIPv6(address)) return prefix <= 128 ? { family: 6 } : undefined;
  if (!isIPv4(address) || prefix > 32) return undefined;
  const size = 2 ** (32 - prefix);
  return { family: 4, block: { network: Math.floor(parseAddress(address) / size) * size, prefix } };
}

/** Formats a block as `a.b.c.d/n`. */
export function formatBlock(block: Block): string {
  return `${formatAddress(block.network)}/${block.prefix}`;
}

/** Returns true if the address is in the block. */
export function isInBlock(block: Block, address: string): boolean {
  const offset = parseAddress(address) - block.network;
  return offset >= 0 && offset < 2 ** (32 - block.prefix);
}
