// The addresses that nothing of a stranger may reach: one list for the tools, the chart's NetworkPolicies and the
// operator's. Made of the registries in special-addresses.json.
import { isIP } from 'node:net';
import { z } from 'zod';
import { memberOf } from './subnets.ts';
import special from './special-addresses.json' with { type: 'json' };

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
 * By which networks without IPv4 reach public servers that have nothing else. Open as far as the IPv4 address within is.
 */
export const nat64 = '64:ff9b::/96';
/** IPv4 addresses as programs write them, never on the wire: no policy can speak of them, and Kubernetes refuses it. */
const mapped = '::ffff:0:0/96';

/**
 * Blocks that are never hosts of the public internet. Those that are reachable from everywhere are closed too: they are
 * relays, translators and sinks, and lead on.
 */
const blocks = registries
  .parse(special)
  .sources.flatMap((source) => source.blocks)
  .map(({ cidr }) => cidr)
  .filter((cidr) => cidr !== nat64 && cidr !== mapped);

/** Without those that lie within others, IPv4 first. */
export const closedCidrs: readonly string[] = withTranslations(outermost(blocks));

/** These subnets, and those that are always closed. */
export function closedWith(more: readonly string[]): readonly string[] {
  return [...new Set([...closedCidrs, ...more])];
}

function outermost(all: readonly string[]): string[] {
  const unique = [...new Set(all)];
  return unique
    .filter((cidr) => !unique.some((other) => other !== cidr && contains(other, cidr)))
    .sort((one, other) => familyOf(one) - familyOf(other));
}

/** Each IPv4 block also as a translator writes it, so that the way around by NAT64 is closed. */
function withTranslations(all: readonly string[]): string[] {
  return [...all, ...all.filter((cidr) => familyOf(cidr) === 4).map(translated)];
}

function translated(cidr: string): string {
  const [address = '', length = ''] = cidr.split('/');
  const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
  const [high, low] = [a * 256 + b, c * 256 + d];
  const end = high === 0 && low === 0 ? '' : `${high.toString(16)}:${low.toString(16)}`;
  return `64:ff9b::${end}/${96 + Number(length)}`;
}

function contains(outer: string, inner: string): boolean {
  const [, length] = outer.split('/');
  const [address = '', innerLength] = inner.split('/');
  return familyOf(outer) === familyOf(inner) && Number(length) < Number(innerLength) && memberOf([outer])(address);
}

function familyOf(cidr: string): number {
  return isIP(cidr.split('/')[0] ?? '');
}
