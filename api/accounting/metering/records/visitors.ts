// Visitors of apps: a salted hash of the network address, with a salt that lasts for a day, so that nobody is followed over days.
import { BlockList, isIP } from 'node:net';
import { addressPrefix, anonymousHash, clientAddress, keyedHash, networkPrefix } from '../../../http/index.ts';

export interface VisitorRules {
  readonly salt: string;
  /** Proxies in front of the gateway whose word on the client is believed. */
  readonly trustedProxies: BlockList;
}

export interface Visitor {
  readonly hash: string;
  /** Of the /24 or /48 that the visitor is in, which somebody may have to himself. */
  readonly network: string;
  /** The hash that apps which the visitor submits without a key are marked with. It is compared, and never stored with a visit. */
  readonly submitter: string;
  /** Whether the address is one of this cluster or machine. */
  readonly isInside: boolean;
}

const maxKnown = 16_384;

/** Names visitors. `day` is the UTC day of the request, as YYYY-MM-DD. */
export function visitorNames({ salt, trustedProxies }: VisitorRules): (client: string, day: string) => Visitor {
  const known = new Map<string, Visitor>();
  const salts = new Map<string, string>();
  const saltOf = (day: string): string => {
    const today = salts.get(day) ?? keyedHash(`visitors:${day}`, salt);
    if (salts.size > 64) salts.clear();
    salts.set(day, today);
    return today;
  };
  return (client, day) => {
    const named = `${day} ${client}`;
    const before = known.get(named);
    if (before !== undefined) return before;
    const hops = client.split(',');
    const address = clientAddress(hops.at(-1)?.trim(), hops.slice(0, -1).join(','), trustedProxies);
    const visitor = {
      hash: keyedHash(`address:${addressPrefix(address)}`, saltOf(day)),
      network: keyedHash(`network:${networkPrefix(address)}`, saltOf(day)),
      submitter: anonymousHash(address, salt),
      isInside: isInside(address),
    };
    if (known.size >= maxKnown) known.clear();
    known.set(named, visitor);
    return visitor;
  };
}

/** Addresses that nobody has on the public internet. */
const inside = new BlockList();
for (const [address, bits] of [
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['127.0.0.0', 8],
  ['100.64.0.0', 10],
] as const)
  inside.addSubnet(address, bits, 'ipv4');
inside.addSubnet('fc00::', 7, 'ipv6');
inside.addAddress('::1', 'ipv6');

function isInside(address: string): boolean {
  const version = isIP(address);
  return version !== 0 && inside.check(address, version === 6 ? 'ipv6' : 'ipv4');
}
