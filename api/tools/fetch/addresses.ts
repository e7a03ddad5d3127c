// Which addresses are public: only these are reached for a stranger.
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';
import { closeAlso, nat64, createSubnetMatcher } from '../../../lib/subnets.ts';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Says whether an address, as text, may be reached. */
export type AddressCheck = (address: string) => boolean;

/**
 * Takes public addresses, but none of `closed` (like 10.0.0.0/8) and none of this machine's own. @throws Error for an
 * entry that is no subnet
 */
export function publicOnly(closed: readonly string[]): AddressCheck {
  const never = createSubnetMatcher(closeAlso(closed));
  return (text) => {
    if (!ipaddr.isValid(text)) return false;
    const own = ownAddresses();
    return readings(ipaddr.parse(text)).every((address) => {
      const normal = address.toNormalizedString();
      return !own.has(normal) && !never(normal);
    });
  };
}

/** All that an address can lead to: itself, and the IPv4 address that a translator would take from it. */
function readings(address: Address): Address[] {
  if (!(address instanceof ipaddr.IPv6)) return [address];
  if (address.isIPv4MappedAddress()) return [address.toIPv4Address()];
  const embedded = new ipaddr.IPv4(address.toByteArray().slice(12));
  return isNat64(address) || isIsatap(address) ? [address, embedded] : [address];
}

function isNat64(address: ipaddr.IPv6): boolean {
  return address.match(ipaddr.IPv6.parseCIDR(nat64));
}

function isIsatap({ parts }: ipaddr.IPv6): boolean {
  return ((parts[4] ?? 0) & 0xfdff) === 0 && parts[5] === 0x5efe;
}

function ownAddresses(): ReadonlySet<string> {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return new Set(all.map(({ address }) => ipaddr.parse(address).toNormalizedString().replace(/%.*/, '')));
}
