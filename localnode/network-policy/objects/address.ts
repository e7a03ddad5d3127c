// IPv4 addresses and CIDR blocks as numbers and back, in the one spelling that rules and sets use.
import { isIPv4, isIPv6 } from 'node:net';

/** The address as an unsigned 32-bit number. The argument must be a valid IPv4 address. */
export function addressNumber(address: string): number {
  return address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
}

/** The inverse of `addressNumber`. */
export function addressText(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join('.');
}

/** A block of IPv4 addresses: network address and prefix length. */
export interface Block {
  readonly network: number;
  readonly prefix: number;
}

/** What a CIDR's text is: a block of IPv4, a block of IPv6 (of no use here), or nothing that can be read. */
export type CidrReading = { family: 4; block: Block } | { family: 6 } | undefined;

/** Reads `a.b.c.d/n` or an IPv6 CIDR. Host bits are cut off, as the API server allows them. */
export function readCidr(text: string): CidrReading {
  const match = /^([^/]+)\/(\d{1,3})$/.exec(text);
  const address = match?.[1] ?? '';
  const prefix = Number(match?.[2]);
  if (isIPv6(address)) return prefix <= 128 ? { family: 6 } : undefined;
  if (!isIPv4(address) || prefix > 32) return undefined;
  const size = 2 ** (32 - prefix);
  return { family: 4, block: { network: Math.floor(addressNumber(address) / size) * size, prefix } };
}

/** `a.b.c.d/n`. */
export function blockText(block: Block): string {
  return `${addressText(block.network)}/${block.prefix}`;
}

/** True when the address lies in the block. */
export function inBlock(block: Block, address: string): boolean {
  const offset = addressNumber(address) - block.network;
  return offset >= 0 && offset < 2 ** (32 - block.prefix);
}
