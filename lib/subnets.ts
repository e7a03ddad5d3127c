// Ranges of addresses, as configuration writes them: `10.0.0.0/8, fd00::/8`.
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import { list } from './config.ts';

/** Addresses with a prefix length, separated by commas. */
export const subnets = list.pipe(
  z.array(z.string().refine(isSubnet, 'must be addresses with a prefix length, like 10.0.0.0/8')),
);

/** A set of addresses from `address/length` entries. @throws Error for an entry that is none. */
export function blockList(subnets: readonly string[]): BlockList {
  const set = new BlockList();
  for (const subnet of subnets) {
    const [address, length] = subnet.split('/');
    if (address === undefined || !isSubnet(subnet)) throw new Error(`not a subnet: ${subnet}`);
    set.addSubnet(address, Number(length), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  return set;
}

/**
 * Says whether an address lies in one of these subnets, of its own family: to a BlockList, an IPv4 address also lies in
 * an IPv6 subnet that contains ::ffff:0:0/96. @throws Error for an entry that is no subnet
 */
export function memberOf(subnets: readonly string[]): (address: string) => boolean {
  const ofFamily = (family: number): BlockList =>
    blockList(subnets.filter((subnet) => isIP(subnet.split('/')[0] ?? '') === family));
  const [four, six] = [ofFamily(4), ofFamily(6)];
  return (address) => (isIP(address) === 6 ? six.check(address, 'ipv6') : four.check(address, 'ipv4'));
}

function isSubnet(text: string): boolean {
  const [address = '', length = '', ...rest] = text.split('/');
  const maximum = { 4: 32, 6: 128 }[isIP(address)];
  return rest.length === 0 && maximum !== undefined && /^\d{1,3}$/.test(length) && Number(length) <= maximum;
}
