// Reads ranges of addresses such as `10.0.0.0/8`, and lists those that untrusted code must never reach. Tools, the chart's
// NetworkPolicies and the operator's share that one list.
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import { list } from './config.ts';
import special from './special-addresses.json' with { type: 'json' };

/** A setting: addresses with a prefix length, separated by commas. */
export const subnets = list.pipe(
  z.array(z.string().refine(isSubnet, 'must be addresses with a prefix length, like 10.0.0.0/8')),
);

/** A set of addresses from `address/length` entries. @throws Error for an entry that is not a subnet */
export function createBlockList(entries: readonly string[]): BlockList {
  const set = new BlockList();
  for (const subnet of entries) {
    const [address, length] = subnet.split('/');
    if (address === undefined || !isSubnet(subnet)) throw new Error(`not a subnet: ${subnet}`);
    set.addSubnet(address, Number(length), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  return set;
}

/**
 * Returns a function that reports whether an address lies in a subnet of the same family. A BlockList alone also matches
 * an IPv4 address against an IPv6 subnet that contains ::ffff:0:0/96.
 * @throws Error for an entry that is not a subnet
 */
export function createSubnetMatcher(entries: readonly string[]): (address: string) => boolean {
  const [four, six] = [4, 6].map((family) => createBlockList(entries.filter((cidr) => readFamily(cidr) === family)));
  return (address) => (isIP(address) === 6 ? six?.check(address, 'ipv6') : four?.check(address, 'ipv4')) === true;
}

function isSubnet(text: string): boolean {
  const [address = '', length = '', ...rest] = text.split('/');
  const maximum = { 4: 32, 6: 128 }[isIP(address)];
  return rest.length === 0 && maximum !== undefined && /^\d{1,3}$/.test(length) && Number(length) <= maximum;
}

/** 4, 6, or 0 for a text that is neither. */
function readFamily(cidr: string): number {
  return isIP(cidr.split('/')[0] ?? '');
}

const registries = z.object({
  note: z.string(),
  sources: z.array(
    z.object({
      title: z.string(),
      url: z.string(),
      /** When the source was last changed; for the clouds, when they were looked up. */
      updated: z.iso.date(),
      blocks: z.array(z.object({ cidr: z.string(), name: z.string(), reachable: z.boolean() })).min(1),
    }),
  ),
});

/**
 * The prefix through which networks without IPv4 reach public servers that have only IPv4. It stays open, except for the
 * translations of the closed IPv4 blocks.
 */
export const nat64 = '64:ff9b::/96';
/** IPv4 addresses as programs write them, never on the wire. Kubernetes rejects a policy that names them. */
const mapped = '::ffff:0:0/96';

/**
 * Blocks that are never hosts of the public internet, IPv4 first, without those that lie within others. Those that are
 * reachable from everywhere are closed too: they are relays, translators and sinks, and lead elsewhere.
 */
export const closedCidrs: readonly string[] = addTranslations(
  keepOutermost(
    registries
      .parse(special)
      .sources.flatMap((source) => source.blocks)
      .map(({ cidr }) => cidr)
      .filter((cidr) => cidr !== nat64 && cidr !== mapped),
  ),
);

/** The blocks that are always closed, and these. */
export function closeAlso(cidrs: readonly string[]): readonly string[] {
  return [...new Set([...closedCidrs, ...cidrs])];
}

function keepOutermost(cidrs: readonly string[]): string[] {
  const unique = [...new Set(cidrs)];
  return unique
    .filter((cidr) => !unique.some((other) => other !== cidr && isSupernet(other, cidr)))
    .sort((one, other) => readFamily(one) - readFamily(other));
}

function isSupernet(outer: string, inner: string): boolean {
  const [, length] = outer.split('/');
  const [address = '', innerLength] = inner.split('/');
  return (
    readFamily(outer) === readFamily(inner) &&
    Number(length) < Number(innerLength) &&
    createSubnetMatcher([outer])(address)
  );
}

/** Adds each IPv4 block as a translator writes it, so that NAT64 is no way around the list. */
function addTranslations(cidrs: readonly string[]): string[] {
  return [...cidrs, ...cidrs.filter((cidr) => readFamily(cidr) === 4).map(translate)];
}

function translate(cidr: string): string {
  const [address = '', length = ''] = cidr.split('/');
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  const [high, low] = [a * 256 + b, c * 256 + d];
  const end = high === 0 && low === 0 ? '' : `${high.toString(16)}:${low.toString(16)}`;
  return `64:ff9b::${end}/${96 + Number(length)}`;
}
