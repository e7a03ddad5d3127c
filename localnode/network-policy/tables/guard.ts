// Writes the bridge's own table: each port speaks and hears for its one address only, and nothing is bridged unjudged.
import type { Attachment } from '../objects/endpoints.ts';
import { SEEN, SOURCE_PROVED, type Scope } from './scope.ts';
import { plainSet, type NftChain, type NftTable } from './tables.ts';

/**
 * Renders the guard. This kernel family has neither connection tracking nor the bridge's name, so it judges no policy:
 * it only proves sources (a pod with NET_ADMIN in its user namespace can give itself any address), keeps out what the
 * policy table would not see (IPv6, VLAN tags), and drops what reached a pod without having passed that table.
 */
export function renderGuard(attachments: readonly Attachment[], scope: Scope): NftTable {
  const sets = new Map([
    [
      'ports',
      plainSet(
        'ifname',
        attachments.map(({ port }) => `"${port}"`),
      ),
    ],
    [
      'bound',
      plainSet(
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
    // Both come after br_netfilter, which shows bridged packets to the policy table.
    [
      'forward',
      { hook: 'type filter hook forward priority 300; policy accept;', rules: [unseen('iifname'), unseen('oifname')] },
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

function unseen(end: 'iifname' | 'oifname'): string {
  return `${end} @ports ether type != arp meta mark and ${SEEN} == 0 counter drop comment "went around the policy table"`;
}
