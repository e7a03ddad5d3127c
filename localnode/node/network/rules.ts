// Renders a node's own nftables table: what pods can reach on it, and what can reach pods from outside.

const table = 'moorage-node';

export interface NodeNetwork {
  /** The bridge whose ports belong to the pods. */
  bridge: string;
  podCidr: string;
  serviceCidr: string;
}

/**
 * Renders the node's own rules; the NetworkPolicy enforcer handles policies between pods. `open` lists additional rules
 * of the input chain, each for one service of the node that pods may reach.
 */
export function renderNodeRules({ bridge, podCidr, serviceCidr }: NodeNetwork, open: readonly string[]): string {
  return `table inet ${table}
delete table inet ${table}
table inet ${table} {
  chain input {
    type filter hook input priority filter - 10; policy accept;
    iifname "lo" accept
    iifname != "${bridge}" ip daddr ${podCidr} ct state new drop comment "pods and node are not for the machine's neighbours"
    iifname != "${bridge}" accept
    ct state established,related accept
    ${open.join('\n    ')}
    icmp type echo-request accept
    counter drop comment "pods reach nothing else of the node"
  }
  chain forward {
    type filter hook forward priority filter - 10; policy accept;
    iifname != "${bridge}" oifname "${bridge}" ct state new ct status & dnat == 0 drop comment "only published ports come in"
    ip daddr ${serviceCidr} counter reject with icmp type port-unreachable comment "a service without endpoints"
  }
  chain output {
    type filter hook output priority filter - 10; policy accept;
    ip daddr ${serviceCidr} counter reject with icmp type port-unreachable
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${podCidr} ip daddr != ${podCidr} oifname != "${bridge}" masquerade
  }
}
`;
}
