// Identifies callers by keyed hashes, which cannot be turned back into an address or a key.
import { createHmac } from 'node:crypto';
import { isIP, isIPv4, type BlockList } from 'node:net';

/** A caller, known only by hashes. They are valid label values. */
export interface Caller {
  readonly kind: 'address' | 'key';
  readonly hash: string;
  /** Hash of the wider network that the caller is in, also for callers with a key. */
  readonly network: string;
  /** For an IPv6 address without a key: hash of its /64, the smallest network that one customer gets. */
  readonly subnet?: string | undefined;
}

/** The parts of a request that identify its caller. */
export interface CallerAttributes {
  /** Remote address of the connection. */
  readonly peer: string | undefined;
  /** Header X-Forwarded-For. */
  readonly forwardedFor: string | undefined;
  /** Header Authorization. */
  readonly authorization: string | undefined;
}

/** How to distinguish callers. */
export interface CallerRules {
  readonly salt: string;
  /** Proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: BlockList;
  /**
   * Whether a bearer key is real. Without this check every key is ignored: callers could invent a new key for each
   * request and be a new caller each time.
   */
  readonly isGenuineKey?: (key: string) => boolean;
}

/** Identifies the caller by a genuine bearer key, else by the prefix of the client's address. */
export function identifyCaller(request: CallerAttributes, rules: CallerRules): Caller {
  const address = resolveClientAddress(request.peer, request.forwardedFor, rules.trustedProxies);
  const network = hashPrefix('network', toNetworkPrefix(address), rules.salt);
  const key = /^Bearer ([^\s]+)$/i.exec(request.authorization ?? '')?.[1];
  if (key !== undefined && rules.isGenuineKey?.(key) === true)
    return { kind: 'key', hash: computeKeyedHash(`key:${key}`, rules.salt), network };
  const subnet = isIP(address) === 6 ? hashPrefix('subnet', toSubnetPrefix(address), rules.salt) : undefined;
  return { kind: 'address', hash: hashAnonymousCaller(address, rules.salt), network, subnet };
}

/** Hashes the address of a caller without a key. */
export function hashAnonymousCaller(address: string, salt: string): string {
  return hashPrefix('address', toAddressPrefix(address), salt);
}

/** Resolves the client's address: the last hop that is not itself a trusted proxy. */
export function resolveClientAddress(
  peer: string | undefined,
  forwardedFor: string | undefined,
  trusted: BlockList,
): string {
  let client = normalizeAddress(peer ?? '');
  const hops = (forwardedFor ?? '')
    .split(',')
    .map((hop) => normalizeAddress(hop.trim()))
    .reverse();
  for (const hop of hops) {
    if (!isTrusted(client, trusted) || isIP(hop) === 0) break;
    client = hop;
  }
  return client;
}

/** Returns the network that counts as one caller, about one home or host: /24 of IPv4, /56 of IPv6. */
export function toAddressPrefix(address: string): string {
  if (isIPv4(address)) return `${address.split('.').slice(0, 3).join('.')}.0/24`;
  if (isIP(address) === 0) return 'unknown';
  const [a = 0, b = 0, c = 0, d = 0] = parseIpv6Groups(address);
  return `${[a, b, c, d & 0xff00].map((group) => group.toString(16)).join(':')}::/56`;
}

/** Returns the largest network that one customer may have: /24 of IPv4, /48 of IPv6. */
export function toNetworkPrefix(address: string): string {
  if (isIP(address) !== 6) return toAddressPrefix(address);
  const [a = 0, b = 0, c = 0] = parseIpv6Groups(address);
  return `${[a, b, c].map((group) => group.toString(16)).join(':')}::/48`;
}

function toSubnetPrefix(address: string): string {
  return `${parseIpv6Groups(address)
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** Hashes of recent addresses, because the same ones call again and again. */
const recent = new Map<string, string>();
const maxRecent = 4_096;

function hashPrefix(kind: 'address' | 'network' | 'subnet', prefix: string, salt: string): string {
  const cacheKey = `${salt} ${kind} ${prefix}`;
  const known = recent.get(cacheKey);
  if (known !== undefined) return known;
  const hash = computeKeyedHash(`${kind}:${prefix}`, salt);
  if (recent.size >= maxRecent) recent.clear();
  recent.set(cacheKey, hash);
  return hash;
}

/** Computes an HMAC, which takes the salt to compute. */
export function computeKeyedHash(text: string, salt: string): string {
  return createHmac('sha256', salt).update(text).digest('hex').slice(0, 32);
}

function isTrusted(address: string, trusted: BlockList): boolean {
  const version = isIP(address);
  return version !== 0 && trusted.check(address, version === 6 ? 'ipv6' : 'ipv4');
}

/** Removes a port, brackets, a zone, and the IPv6 prefix of a mapped IPv4 address. */
function normalizeAddress(text: string): string {
  const bare = /^\[(.*)\](?::\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
  const zoneless = bare.replace(/%.*$/, '');
  if (isIP(zoneless) !== 6) return zoneless;
  const parts = parseIpv6Groups(zoneless);
  const mapped = parts.slice(0, 5).every((group) => group === 0) && parts[5] === 0xffff;
  return mapped
    ? parts
        .slice(6)
        .flatMap((group) => [group >> 8, group & 255])
        .join('.')
    : zoneless;
}

/** The eight 16-bit groups of a valid IPv6 address. */
function parseIpv6Groups(address: string): number[] {
  const [head = '', tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::');
  const read = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const [first, last] = [read(head), read(tail ?? '')];
  return [...first, ...new Array<number>(8 - first.length - last.length).fill(0), ...last];
}
