// NetworkPolicy objects, read strictly into the form that the compiler takes; what cannot be read becomes a denial.
import { z } from 'zod';
import { readCidr, type Block } from './address.ts';
import { selectorSchema, type Selector } from './selector.ts';

/** A transport that has ports. */
export type Protocol = 'TCP' | 'UDP' | 'SCTP';

/**
 * Ports that a rule opens: a range of numbers (ends included), or a name that each destination pod resolves for itself.
 */
export type PolicyPort = { protocol: Protocol; first: number; last: number } | { protocol: Protocol; name: string };

/** Who is at the other end. `namespaces` absent: the policy's own namespace. */
export type Peer =
  | { kind: 'pods'; namespaces?: Selector | undefined; pods: Selector }
  | { kind: 'block'; block: Block; except: readonly Block[] };

/** One rule: any of the peers on any of the ports. Absent means all; an empty list of peers means none. */
export interface Rule {
  peers?: readonly Peer[] | undefined;
  ports?: readonly PolicyPort[] | undefined;
}

/** A policy. A direction that is absent is not isolated by it; an empty list of rules denies. */
export interface Policy {
  namespace: string;
  name: string;
  pods: Selector;
  ingress?: readonly Rule[] | undefined;
  egress?: readonly Rule[] | undefined;
}

/** A policy, with the fields in it that could not be read: such a policy denies the pods that it selects. */
export interface PolicyReading {
  policy: Policy;
  problems: readonly string[];
}

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
 * Reads a NetworkPolicy's spec. Never throws: what is not understood is named in `problems` and the policy then only
 * denies.
 */
export function readPolicy(name: { namespace: string; name: string }, spec: unknown): PolicyReading {
  const parsed = specSchema.safeParse(spec);
  if (parsed.success) return { policy: { ...name, ...toPolicy(parsed.data) }, problems: [] };
  const problems = parsed.error.issues.map((issue) => `${['spec', ...issue.path].join('.')}: ${issue.message}`);
  return { policy: { ...name, ...denial(spec) }, problems };
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
  // A block of IPv6 is well understood: in a cluster of IPv4 nobody is in it.
  return cidr?.family === 4
    ? [{ kind: 'block', block: cidr.block, except: (peer.ipBlock.except ?? []).flatMap(ipv4Block) }]
    : [];
}

function ipv4Block(text: string): Block[] {
  const cidr = readCidr(text);
  return cidr?.family === 4 ? [cidr.block] : [];
}

function toPort({ protocol, port, endPort }: z.output<typeof portSchema>): PolicyPort {
  if (port == null) return { protocol, first: 0, last: 65535 };
  return typeof port === 'string' ? { protocol, name: port } : { protocol, first: port, last: endPort ?? port };
}

const selectorOnly = z.object({ podSelector: selectorSchema });
const typesOnly = z.object({ policyTypes: typesSchema });

function denial(spec: unknown): Omit<Policy, 'namespace' | 'name'> {
  const types = typesOnly.safeParse(spec).data?.policyTypes ?? [];
  const denies = (direction: 'Ingress' | 'Egress'): [] | undefined =>
    types.length === 0 || types.includes(direction) ? [] : undefined;
  return {
    pods: selectorOnly.safeParse(spec).data?.podSelector ?? {},
    ingress: denies('Ingress'),
    egress: denies('Egress'),
  };
}
