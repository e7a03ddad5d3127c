// Compiles pods, namespaces and policies into address sets and lists of allowed flows. Pure: no nftables syntax, no I/O.
import { createHash } from 'node:crypto';
import {
  type Block,
  type Peer,
  type Policy,
  type PolicyPort,
  type Protocol,
  type Rule,
  mergeRanges,
  type PortRange,
  isSelected,
  type Labels,
  type Selector,
} from './objects/model.ts';
import type { Endpoint } from './objects/endpoints.ts';

/** Input of the compiler. */
export interface Cluster {
  endpoints: readonly Endpoint[];
  /** Labels by namespace name. */
  namespaces: ReadonlyMap<string, Labels>;
  policies: readonly Policy[];
}

/** The other end of a flow: in a set of addresses, or in a block but in none of its exceptions. */
export type PeerMatch = { set: string } | { block: Block; except: readonly Block[] };

/** Destination ports: ranges, or a set of (address, protocol, port). */
export type PortMatch = { ranges: readonly PortRange[] } | { set: string };

/** Allows a flow if all of its parts match; an absent part always matches. */
export interface Allowance {
  peer?: PeerMatch | undefined;
  ports?: PortMatch | undefined;
}

/** A port of an address. */
export interface AddressPort {
  address: string;
  protocol: Protocol;
  port: number;
}

/**
 * One direction: for each pod address, the group whose allowances apply to it, or `undefined` if nothing isolates it.
 */
export interface DirectionRules {
  members: ReadonlyMap<string, string | undefined>;
  /** Pods that the same policies select share a group. */
  groups: ReadonlyMap<string, readonly Allowance[]>;
}

/** Everything to enforce. Addresses that are not members are unknown and get no traffic. */
export interface RuleSet {
  addressSets: ReadonlyMap<string, readonly string[]>;
  portSets: ReadonlyMap<string, readonly AddressPort[]>;
  ingress: DirectionRules;
  egress: DirectionRules;
}

/** Direction of traffic, seen from the pod. */
export type Direction = 'ingress' | 'egress';

/** Compiles a cluster. The output does not depend on the order of the input's parts. */
export function compile(cluster: Cluster): RuleSet {
  const sets = {
    addressSets: new Map<string, readonly string[]>(),
    portSets: new Map<string, readonly AddressPort[]>(),
  };
  const context: Context = { cluster, ...sets };
  return { ...sets, ingress: compileDirection(context, 'ingress'), egress: compileDirection(context, 'egress') };
}

interface Context {
  cluster: Cluster;
  addressSets: Map<string, readonly string[]>;
  portSets: Map<string, readonly AddressPort[]>;
}

function compileDirection(context: Context, direction: Direction): DirectionRules {
  const members = new Map<string, string | undefined>();
  const groups = new Map<string, readonly Allowance[]>();
  for (const endpoint of context.cluster.endpoints) {
    const policies = context.cluster.policies
      .filter((policy) => isIsolating(policy, direction, endpoint))
      .sort(compareByName);
    if (policies.length === 0) {
      members.set(endpoint.address, undefined);
      continue;
    }
    const group = `${direction}-${computeDigest(policies.map((policy) => [policy.namespace, policy.name]))}`;
    members.set(endpoint.address, group);
    if (!groups.has(group))
      groups.set(
        group,
        policies.flatMap((policy) => (policy[direction] ?? []).flatMap((rule) => compileRule(context, policy, rule))),
      );
  }
  return { members, groups };
}

function isIsolating(policy: Policy, direction: Direction, endpoint: Endpoint): boolean {
  return (
    policy[direction] !== undefined &&
    policy.namespace === endpoint.namespace &&
    isSelected(policy.pods, endpoint.labels)
  );
}

function compareByName(a: Policy, b: Policy): number {
  const [left, right] = [`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`];
  return left < right ? -1 : Number(left > right);
}

function compileRule(context: Context, policy: Policy, rule: Rule): Allowance[] {
  const peers = rule.peers === undefined ? [undefined] : rule.peers.map((peer) => toPeerMatch(context, policy, peer));
  const ports = rule.ports === undefined ? [undefined] : toPortMatches(context, rule.ports);
  return peers.flatMap((peer) => ports.map((port) => ({ peer, ports: port })));
}

function toPeerMatch(context: Context, policy: Policy, peer: Peer): PeerMatch {
  if (peer.kind === 'block') return { block: peer.block, except: peer.except };
  const scope = peer.namespaces ?? policy.namespace;
  const set = `pods-${computeDigest([scope, peer.pods])}`;
  if (!context.addressSets.has(set)) {
    const endpoints = context.cluster.endpoints.filter(
      (endpoint) => isInScope(context.cluster, scope, endpoint.namespace) && isSelected(peer.pods, endpoint.labels),
    );
    context.addressSets.set(set, endpoints.map((endpoint) => endpoint.address).sort());
  }
  return { set };
}

function isInScope(cluster: Cluster, scope: Selector | string, namespace: string): boolean {
  if (typeof scope === 'string') return scope === namespace;
  const labels = cluster.namespaces.get(namespace);
  // A namespace that is not in the cache yet matches no peer: `NotIn` and `DoesNotExist` must not match for lack of labels.
  return labels !== undefined && isSelected(scope, labels);
}

function toPortMatches(context: Context, ports: readonly PolicyPort[]): PortMatch[] {
  const ranges = mergeRanges(ports.filter((port) => 'first' in port));
  const names = ports.filter((port) => 'name' in port);
  return [
    ...(ranges.length > 0 ? [{ ranges }] : []),
    ...names.map(({ protocol, name }) => resolveNamedPort(context, protocol, name)),
  ];
}

/**
 * The destination is the selected pod for ingress and the peer for egress. One set of all pods with the named port
 * serves both.
 */
function resolveNamedPort(context: Context, protocol: Protocol, name: string): PortMatch {
  const set = `port-${computeDigest([protocol, name])}`;
  if (!context.portSets.has(set)) {
    const found = context.cluster.endpoints.flatMap(({ address, ports }) =>
      ports
        .filter((port) => port.name === name && port.protocol === protocol)
        .map(({ port }) => ({ address, protocol, port })),
    );
    context.portSets.set(set, found);
  }
  return { set };
}

function computeDigest(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value, sortKeys)).digest('hex').slice(0, 24);
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
