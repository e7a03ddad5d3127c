// Renders the two nftables tables: the policy table in the inet family, and the guard in the bridge family. The guard
// limits each port to its own address and ensures that no bridged packet bypasses the policies.
import { formatBlock } from '../objects/model.ts';
import type { Allowance, Direction, DirectionRules, PeerMatch, PortMatch, RuleSet } from '../compile.ts';
import {
  SEEN,
  SOURCE_PROVED,
  type Scope,
  createPlainSet,
  type NftChain,
  type NftSet,
  type NftTable,
} from './script.ts';
import type { Attachment } from '../objects/endpoints.ts';

/**
 * Renders the table that enforces policies. Its filter hooks run after destination NAT (priority -100) and before
 * source NAT (100), so that flows to Services and host ports are evaluated for the pods that they really connect.
 *
 * `guarded`: the bridge's table must have verified that a packet comes from its port's own address.
 */
export function renderPolicy(rules: RuleSet, scope: Scope, guarded: boolean): NftTable {
  const chains = new Map<string, NftChain>([
    ...groupChains('egress', rules.egress),
    ...groupChains('ingress', rules.ingress),
    ['egress', { rules: ['ip saddr vmap @egress-of', 'counter drop comment "egress of an unknown pod"'] }],
    ['ingress', { rules: ['ip daddr vmap @ingress-of', 'counter drop comment "ingress of an unknown pod"'] }],
    ['prerouting', buildPreroutingChain(scope, guarded)],
    ['input', buildInputChain(scope)],
    ['forward', forward(scope)],
  ]);
  return { family: 'inet', name: scope.table, sets: buildPolicySets(rules), chains };
}

function buildPolicySets(rules: RuleSet): Map<string, NftSet> {
  const sets = new Map<string, NftSet>();
  for (const [name, addresses] of rules.addressSets) sets.set(name, createPlainSet('ipv4_addr', addresses));
  for (const [name, ports] of rules.portSets) {
    const elements = ports.map(({ address, protocol, port }) => `${address} . ${protocol.toLowerCase()} . ${port}`);
    sets.set(name, createPlainSet('ipv4_addr . inet_proto . inet_service', elements));
  }
  sets.set(
    'itself',
    createPlainSet(
      'ipv4_addr . ipv4_addr',
      Array.from(rules.egress.members.keys(), (address) => `${address} . ${address}`),
    ),
  );
  sets.set('egress-of', buildVerdictMap(rules.egress));
  sets.set('ingress-of', buildVerdictMap(rules.ingress));
  return sets;
}

function buildVerdictMap({ members }: DirectionRules): NftSet {
  const elements = Array.from(members, ([address, group]): [string, string] => [
    address,
    group === undefined ? 'return' : `goto ${group}`,
  ]);
  return { type: 'ipv4_addr : verdict', elements: new Map(elements) };
}

function buildPreroutingChain({ bridge }: Scope, guarded: boolean): NftChain {
  return {
    hook: 'type filter hook prerouting priority -300; policy accept;',
    rules: [
      `iifname != "${bridge}" accept`,
      'meta nfproto ipv6 counter drop',
      // Port mapping on loopback sets route_localnet, which would expose the node's loopback services to pods.
      'ip daddr 127.0.0.0/8 counter drop comment "loopback of the node"',
      ...(guarded ? [`meta mark and ${SOURCE_PROVED} == 0 counter drop comment "source address not its own"`] : []),
    ],
  };
}

function buildInputChain({ bridge }: Scope): NftChain {
  return {
    hook: 'type filter hook input priority 0; policy accept;',
    rules: [`iifname != "${bridge}" accept`, 'ct state established,related accept', 'jump egress'],
  };
}

function forward({ bridge, podCidr }: Scope): NftChain {
  return {
    hook: 'type filter hook forward priority 0; policy accept;',
    rules: [
      `iifname != "${bridge}" oifname != "${bridge}" accept`,
      'meta nfproto ipv6 counter drop',
      `meta mark set meta mark or ${SEEN}`,
      'ct state established,related accept',
      `iifname != "${bridge}" ip saddr ${podCidr} counter drop comment "pod address from outside"`,
      'ip saddr . ip daddr @itself accept',
      `iifname "${bridge}" jump egress`,
      // Broadcast and multicast addresses belong to no pod, so this drops them too.
      `oifname "${bridge}" jump ingress`,
    ],
  };
}

function groupChains(direction: Direction, { groups }: DirectionRules): [string, NftChain][] {
  // `return` from a chain reached by `goto` goes back to the base chain, which then checks the other direction.
  return Array.from(groups, ([name, allowances]) => [
    name,
    { rules: [...new Set(allowances.map((allowance) => formatAllowance(direction, allowance))), 'counter drop'] },
  ]);
}

function formatAllowance(direction: Direction, { peer, ports }: Allowance): string {
  const field = direction === 'ingress' ? 'ip saddr' : 'ip daddr';
  return [
    ...(peer === undefined ? [] : formatPeer(field, peer)),
    ...(ports === undefined ? [] : [formatPorts(ports)]),
    'return',
  ].join(' ');
}

function formatPeer(field: string, peer: PeerMatch): string[] {
  if ('set' in peer) return [`${field} @${peer.set}`];
  const except = new Set(peer.except.map(formatBlock));
  return [
    `${field} ${formatBlock(peer.block)}`,
    ...(except.size > 0 ? [`${field} != { ${[...except].join(', ')} }`] : []),
  ];
}

function formatPorts(ports: PortMatch): string {
  if ('set' in ports) return `ip daddr . meta l4proto . th dport @${ports.set}`;
  const ranges = ports.ranges.map(
    ({ protocol, first, last }) => `${protocol.toLowerCase()} . ${first === last ? first : `${first}-${last}`}`,
  );
  return `meta l4proto . th dport { ${ranges.join(', ')} }`;
}

/**
 * Renders the guard. The bridge family has neither connection tracking nor the bridge's name, so it evaluates no
 * policies. It only verifies sources (a pod with NET_ADMIN in its user namespace can give itself any address), drops
 * what the policy table would not see (IPv6, VLAN tags), and drops packets that reached a pod without passing through
 * that table.
 */
export function renderGuard(attachments: readonly Attachment[], scope: Scope): NftTable {
  const sets = new Map([
    [
      'ports',
      createPlainSet(
        'ifname',
        attachments.map(({ port }) => `"${port}"`),
      ),
    ],
    [
      'bound',
      createPlainSet(
        'ifname . ether_addr . ipv4_addr',
        attachments.map(({ port, mac, address }) => `"${port}" . ${mac} . ${address}`),
      ),
    ],
  ]);
  const chains = new Map<string, NftChain>([
    [
      'source',
      {
        rules: [
          'ether type != { ip, arp } counter drop comment "neither IPv4 nor ARP"',
          `ether type ip iifname . ether saddr . ip saddr @bound meta mark set meta mark or ${SOURCE_PROVED} return`,
          'ether type arp iifname . ether saddr . arp saddr ip @bound iifname . arp saddr ether . arp saddr ip @bound return',
          'counter drop comment "source address not its own"',
        ],
      },
    ],
    [
      'prerouting',
      { hook: 'type filter hook prerouting priority -250; policy accept;', rules: ['iifname @ports jump source'] },
    ],
    // Both run after br_netfilter, which passes bridged packets to the policy table.
    [
      'forward',
      {
        hook: 'type filter hook forward priority 300; policy accept;',
        rules: [formatUnseenMatch('iifname'), formatUnseenMatch('oifname')],
      },
    ],
    [
      'postrouting',
      {
        hook: 'type filter hook postrouting priority 300; policy accept;',
        rules: [
          'oifname @ports ether type ip oifname . ether daddr . ip daddr != @bound counter drop comment "not the address of this port"',
        ],
      },
    ],
  ]);
  return { family: 'bridge', name: scope.table, sets, chains };
}

function formatUnseenMatch(end: 'iifname' | 'oifname'): string {
  return `${end} @ports ether type != arp meta mark and ${SEEN} == 0 counter drop comment "went around the policy table"`;
}
