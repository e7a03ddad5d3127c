// Evaluates NetworkPolicy objects as the API's documentation words them, and compiled rules as the kernel would. For
// tests.
import { BlockList } from 'node:net';
import { isInBlock, type Protocol } from '../../../localnode/network-policy/objects/model.ts';
import type { Allowance, Direction, RuleSet } from '../../../localnode/network-policy/compile.ts';

/** A flow after destination NAT. */
export interface Flow {
  source: string;
  destination: string;
  protocol: Protocol;
  port: number;
}

export type WireLabels = Record<string, string>;
export interface WireSelector {
  matchLabels?: WireLabels;
  matchExpressions?: { key: string; operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'; values?: string[] }[];
}
export interface WirePeer {
  podSelector?: WireSelector;
  namespaceSelector?: WireSelector;
  ipBlock?: { cidr: string; except?: string[] };
}
export interface WirePort {
  protocol?: Protocol;
  port?: number | string;
  endPort?: number;
}
export interface WirePolicy {
  namespace: string;
  name: string;
  spec: {
    podSelector: WireSelector;
    policyTypes?: ('Ingress' | 'Egress')[];
    ingress?: { from?: WirePeer[]; ports?: WirePort[] }[];
    egress?: { to?: WirePeer[]; ports?: WirePort[] }[];
  };
}
export interface WirePod {
  namespace: string;
  name: string;
  labels: WireLabels;
  address: string;
  ports: { name: string; protocol: Protocol; port: number }[];
}
export interface World {
  namespaces: Record<string, WireLabels>;
  pods: WirePod[];
  policies: WirePolicy[];
}

/** What the API's words say about a flow: both ends must allow it; a pod always reaches itself. */
export function isAllowedByOracle(world: World, flow: Flow): boolean {
  const from = world.pods.find((pod) => pod.address === flow.source);
  const to = world.pods.find((pod) => pod.address === flow.destination);
  if (from !== undefined && from === to) return true;
  const leaves = from === undefined || directionAllows(world, 'Egress', from, flow.destination, to, flow);
  return leaves && (to === undefined || directionAllows(world, 'Ingress', to, flow.source, from, flow));
}

function directionAllows(
  world: World,
  type: 'Ingress' | 'Egress',
  pod: WirePod,
  other: string,
  otherPod: WirePod | undefined,
  flow: Flow,
): boolean {
  const selecting = world.policies.filter(
    (policy) =>
      policy.namespace === pod.namespace &&
      listTypes(policy).includes(type) &&
      selects(policy.spec.podSelector, pod.labels),
  );
  if (selecting.length === 0) return true;
  const target = type === 'Ingress' ? pod : otherPod;
  return selecting.some((policy) =>
    listRules(policy, type).some(
      (rule) =>
        (rule.peers.length === 0 ||
          rule.peers.some((peer) => peerIs(world, policy.namespace, peer, other, otherPod))) &&
        (rule.ports.length === 0 || rule.ports.some((port) => portIs(port, target, flow))),
    ),
  );
}

function listTypes({ spec }: WirePolicy): readonly ('Ingress' | 'Egress')[] {
  if (spec.policyTypes !== undefined && spec.policyTypes.length > 0) return spec.policyTypes;
  return spec.egress !== undefined && spec.egress.length > 0 ? ['Ingress', 'Egress'] : ['Ingress'];
}

function listRules({ spec }: WirePolicy, type: 'Ingress' | 'Egress'): { peers: WirePeer[]; ports: WirePort[] }[] {
  if (type === 'Ingress')
    return (spec.ingress ?? []).map(({ from, ports }) => ({ peers: from ?? [], ports: ports ?? [] }));
  return (spec.egress ?? []).map(({ to, ports }) => ({ peers: to ?? [], ports: ports ?? [] }));
}

function selects(selector: WireSelector, labels: WireLabels): boolean {
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (labels[key] !== value) return false;
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const has = key in labels;
    const listed = has && values.includes(labels[key] ?? '');
    if (!{ In: listed, NotIn: !listed, Exists: has, DoesNotExist: !has }[operator]) return false;
  }
  return true;
}

function peerIs(world: World, home: string, peer: WirePeer, address: string, pod: WirePod | undefined): boolean {
  if (peer.ipBlock !== undefined)
    return blockHas(peer.ipBlock.cidr, address) && !(peer.ipBlock.except ?? []).some((cidr) => blockHas(cidr, address));
  if (pod === undefined) return false;
  const there =
    peer.namespaceSelector === undefined
      ? pod.namespace === home
      : selects(peer.namespaceSelector, world.namespaces[pod.namespace] ?? {});
  return there && selects(peer.podSelector ?? {}, pod.labels);
}

function blockHas(cidr: string, address: string): boolean {
  const [network = '', prefix = ''] = cidr.split('/');
  if (network.includes(':')) return false;
  const list = new BlockList();
  list.addSubnet(network, Number(prefix), 'ipv4');
  return list.check(address, 'ipv4');
}

function portIs(port: WirePort, target: WirePod | undefined, flow: Flow): boolean {
  const protocol = port.protocol ?? 'TCP';
  if (protocol !== flow.protocol) return false;
  if (port.port === undefined) return true;
  if (typeof port.port === 'number') return flow.port >= port.port && flow.port <= (port.endPort ?? port.port);
  return (
    target?.ports.some(
      ({ name, protocol: spoken, port: number }) => name === port.port && spoken === protocol && number === flow.port,
    ) ?? false
  );
}

/**
 * What compiled rules say, read as the kernel reads the chains made of them: unknown addresses in the pods' range get
 * nothing.
 */
export function isAllowedByRules(rules: RuleSet, flow: Flow, podRange: (address: string) => boolean): boolean {
  if (flow.source === flow.destination && rules.egress.members.has(flow.source)) return true;
  const passes = (direction: Direction, address: string): boolean => {
    const { members, groups } = rules[direction];
    if (!members.has(address)) return !podRange(address);
    const group = members.get(address);
    return (
      group === undefined || (groups.get(group) ?? []).some((allowance) => holds(rules, allowance, direction, flow))
    );
  };
  return passes('egress', flow.source) && passes('ingress', flow.destination);
}

function holds(rules: RuleSet, { peer, ports }: Allowance, direction: Direction, flow: Flow): boolean {
  const other = direction === 'ingress' ? flow.source : flow.destination;
  if (peer !== undefined) {
    const there =
      'set' in peer
        ? rules.addressSets.get(peer.set)?.includes(other) === true
        : isInBlock(peer.block, other) && !peer.except.some((block) => isInBlock(block, other));
    if (!there) return false;
  }
  if (ports === undefined) return true;
  if ('set' in ports) {
    const open = rules.portSets.get(ports.set) ?? [];
    return open.some(
      ({ address, protocol, port }) => address === flow.destination && protocol === flow.protocol && port === flow.port,
    );
  }
  return ports.ranges.some(
    ({ protocol, first, last }) => protocol === flow.protocol && flow.port >= first && flow.port <= last,
  );
}
