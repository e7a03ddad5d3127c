// Which addresses are public: only these are reached for a stranger.
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Says whether an address, as text, may be reached. */
export type AddressCheck = (address: string) => boolean;

/**
 * Takes public addresses, but none of `closed` (like 10.0.0.0/8) and none of this machine's own. @throws Error for an
 * entry that is no subnet
 */
export function publicOnly(closed: readonly string[]): AddressCheck {
  const subnets = closed.map((subnet) => ipaddr.parseCIDR(subnet));
  return (text) => {
    if (!ipaddr.isValid(text)) return false;
    const own = ownAddresses();
    return readings(ipaddr.parse(text)).every(
      (address) =>
        isPublic(address) &&
        !own.has(address.toNormalizedString()) &&
        !subnets.some((subnet) => within(address, subnet)),
    );
  };
}

/** All that an address can lead to: itself, and the IPv4 address that a translator would take from it. */
function readings(address: Address): Address[] {
  if (!(address instanceof ipaddr.IPv6)) return [address];
  if (address.isIPv4MappedAddress()) return [address.toIPv4Address()];
  const embedded = new ipaddr.IPv4(address.toByteArray().slice(12));
  return isNat64(address) || isIsatap(address) ? [address, embedded] : [address];
}

function isPublic(address: Address): boolean {
  if (!(address instanceof ipaddr.IPv6)) return address.range() === 'unicast';
  if (isNat64(address)) return true;
  // Nothing but 2000::/3 has been handed out to anyone; ranges within it that are no one's are known to the library.
  return ((address.parts[0] ?? 0) & 0xe000) === 0x2000 && address.range() === 'unicast';
}

/** 64:ff9b::/96, by which networks without IPv4 reach public servers that have nothing else. */
function isNat64(address: ipaddr.IPv6): boolean {
  return address.match(ipaddr.IPv6.parse('64:ff9b::'), 96);
}

function isIsatap({ parts }: ipaddr.IPv6): boolean {
  return ((parts[4] ?? 0) & 0xfdff) === 0 && parts[5] === 0x5efe;
}

function within(address: Address, subnet: [Address, number]): boolean {
  return address.kind() === subnet[0].kind() && address.match(subnet);
}

function ownAddresses(): ReadonlySet<string> {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return new Set(all.map(({ address }) => ipaddr.parse(address).toNormalizedString().replace(/%.*/, '')));
}
