// Who calls: a keyed hash that cannot be turned back into an address or a key.
import { createHmac } from 'node:crypto';
import { isIP, isIPv4, type BlockList } from 'node:net';

/** A caller, known only by a hash that is fit for a label value. */
export interface Caller {
  readonly kind: 'address' | 'key';
  readonly hash: string;
  /** Hash of the wider network that the caller calls from, with a key too. */
  readonly network: string;
  /** Of an IPv6 address without a key: hash of its /64, which is the smallest network that somebody has to themselves. */
  readonly subnet?: string | undefined;
}

/** What a request says about its caller. */
export interface CallerClues {
  /** Address of the connection's other end. */
  readonly peer: string | undefined;
  /** Header X-Forwarded-For. */
  readonly forwardedFor: string | undefined;
  /** Header Authorization. */
  readonly authorization: string | undefined;
}

/** How callers are distinguished. */
export interface CallerRules {
  readonly salt: string;
  /** Proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: BlockList;
  /**
   * Whether a bearer key is a real one. Without this check every key is ignored, since a caller who invents
   * a new key for each request would be a new caller each time.
   */
  readonly isGenuineKey?: (key: string) => boolean;
}

/** Identifies the caller: by the bearer key when it is genuine, else by the prefix of the client's address. */
export function identifyCaller(clues: CallerClues, rules: CallerRules): Caller {
  const address = clientAddress(clues.peer, clues.forwardedFor, rules.trustedProxies);
  const network = addressHash('network', networkPrefix(address), rules.salt);
  const key = /^Bearer ([^\s]+)$/i.exec(clues.authorization ?? '')?.[1];
  if (key !== undefined && rules.isGenuineKey?.(key) === true)
    return { kind: 'key', hash: keyedHash(`key:${key}`, rules.salt), network };
  const subnet = isIP(address) === 6 ? addressHash('subnet', subnetPrefix(address), rules.salt) : undefined;
  return { kind: 'address', hash: anonymousHash(address, rules.salt), network, subnet };
}

/** The hash of a caller without a key, by his address. */
export function anonymousHash(address: string, salt: string): string {
  return addressHash('address', addressPrefix(address), salt);
}

/** The client's address: the last hop that no trusted proxy vouches for as one of its own. */
export function clientAddress(peer: string | undefined, forwardedFor: string | undefined, trusted: BlockList): string {
  let client = plainAddress(peer ?? '');
  const hops = (forwardedFor ?? '')
    .split(',')
    .map((hop) => plainAddress(hop.trim()))
    .reverse();
  for (const hop of hops) {
    if (!isTrusted(client, trusted) || isIP(hop) === 0) break;
    client = hop;
  }
  return client;
}

/** The network that an address belongs to: /24 of IPv4, /56 of IPv6, so that one home or host is one caller. */
export function addressPrefix(address: string): string {
  if (isIPv4(address)) return `${address.split('.').slice(0, 3).join('.')}.0/24`;
  if (isIP(address) === 0) return 'unknown';
  const [a = 0, b = 0, c = 0, d = 0] = groups(address);
  return `${[a, b, c, d & 0xff00].map((group) => group.toString(16)).join(':')}::/56`;
}

/** The network that somebody may have to himself: /24 of IPv4, /48 of IPv6. */
export function networkPrefix(address: string): string {
  if (isIP(address) !== 6) return addressPrefix(address);
  const [a = 0, b = 0, c = 0] = groups(address);
  return `${[a, b, c].map((group) => group.toString(16)).join(':')}::/48`;
}

/** The /64 of an IPv6 address. */
function subnetPrefix(address: string): string {
  return `${groups(address)
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** Hashes of addresses that called recently: the same ones call again and again. */
const recent = new Map<string, string>();
const maxRecent = 4_096;

function addressHash(kind: 'address' | 'network' | 'subnet', prefix: string, salt: string): string {
  const named = `${salt} ${kind} ${prefix}`;
  const known = recent.get(named);
  if (known !== undefined) return known;
  const hash = keyedHash(`${kind}:${prefix}`, salt);
  if (recent.size >= maxRecent) recent.clear();
  recent.set(named, hash);
  return hash;
}

/** A hash that only who has the salt can make. */
export function keyedHash(text: string, salt: string): string {
  return createHmac('sha256', salt).update(text).digest('hex').slice(0, 32);
}

function isTrusted(address: string, trusted: BlockList): boolean {
  const version = isIP(address);
  return version !== 0 && trusted.check(address, version === 6 ? 'ipv6' : 'ipv4');
}

/** Removes a port, brackets, a zone, and the IPv6 prefix of a mapped IPv4 address. */
function plainAddress(text: string): string {
  const bare = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  const zoneless = bare.replace(/%.*$/, '');
  if (isIP(zoneless) !== 6) return zoneless;
  const parts = groups(zoneless);
  const mapped = parts.slice(0, 5).every((group) => group === 0) && parts[5] === 0xffff;
  return mapped
    ? parts
        .slice(6)
        .flatMap((group) => [group >> 8, group & 255])
        .join('.')
    : zoneless;
}

/** The eight 16-bit groups of a valid IPv6 address. */
function groups(address: string): number[] {
  const [head = '', tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::');
  const read = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const [first, last] = [read(head), read(tail ?? '')];
  return [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last];
}
