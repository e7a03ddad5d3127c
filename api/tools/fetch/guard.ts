// Decides which URLs may be reached on behalf of a caller: by scheme, port and name in advance, and by every resolved
// address at the moment of connecting.
import { isIP, type LookupFunction, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { Resolver } from 'node:dns/promises';
import type { LookupAddress } from 'node:dns';
import ipaddr from 'ipaddr.js';
import { z } from 'zod';
import { closeAlso, createSubnetMatcher, nat64, subnets } from '../../../lib/subnets.ts';
import { list, readConfig } from '../../../lib/config.ts';

export interface GuardOptions {
  /** Ports that may be reached; default 80, 443, 8080, 8443. */
  readonly ports?: readonly number[];
  /** Further closed subnets, such as those of the cluster. Those that are never public are always closed. */
  readonly closed?: readonly string[];
  /** Further closed host names, including their subdomains. */
  readonly closedNames?: readonly string[];
  /** For trials and tests: `host:port` pairs that are allowed without a check. */
  readonly allow?: readonly string[];
  /** For tests: replaces DNS. */
  readonly resolve?: Resolve;
}

export interface Target {
  readonly url: URL;
  /** Name or address, without brackets and trailing dots. */
  readonly host: string;
  readonly port: number;
}

/** Thrown for a target that must not be reached on behalf of a caller. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}

/** Maximum addresses of one name to try. */
const maxTried = 4;

/**
 * Domains that are private or do not exist: RFC 6761, RFC 6762, RFC 8375, ICANN's .internal, and common names of private
 * networks.
 */
const privateNames = [
  'localhost',
  'localdomain',
  'local',
  'internal',
  'svc',
  'intranet',
  'lan',
  'home',
  'corp',
  'private',
  'home.arpa',
  'test',
  'invalid',
  'onion',
];
const defaultPorts = [80, 443, 8080, 8443];
const publicName = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;

export class Guard {
  readonly #ports: ReadonlySet<number>;
  readonly #names: readonly string[];
  readonly #allow: ReadonlySet<string>;
  readonly #resolve: Resolve;
  readonly #isPublic: AddressCheck;

  constructor(options: GuardOptions = {}) {
    this.#ports = new Set(options.ports ?? defaultPorts);
    this.#names = [...privateNames, ...(options.closedNames ?? [])];
    this.#allow = new Set(options.allow);
    this.#resolve = options.resolve ?? createDnsResolver();
    this.#isPublic = createAddressCheck(options.closed ?? []);
  }

  /** Parses a URL and checks everything that does not need DNS. @throws Refusal */
  parseTarget(address: string, httpsOnly = false): Target {
    const url = parseUrl(address);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new Refusal('is not http or https');
    if (url.username !== '' || url.password !== '') throw new Refusal('contains a user name or password');
    const target = { url, host: normalizeHost(url.hostname), port: readPort(url) };
    if (this.#isAllowed(target)) return target;
    if (httpsOnly && url.protocol !== 'https:') throw new Refusal('is not https');
    if (!this.#ports.has(target.port))
      throw new Refusal(`uses port ${target.port}; allowed ports are ${[...this.#ports].join(', ')}`);
    this.#checkHost(target.host);
    return target;
  }

  /**
   * Creates the `lookup` option of `net.connect`. It returns only addresses that it has checked, so that a connection never
   * goes to an unchecked one.
   */
  createLookup(target: Target): LookupFunction {
    return (hostname, options, callback) => {
      this.resolveAddresses({ ...target, host: normalizeHost(hostname) }).then(
        (addresses) => {
          const results = addresses.map(toLookupAddress);
          const [first] = results;
          if (options.all === true || first === undefined) callback(null, results);
          else callback(null, first.address, first.family);
        },
        (error: unknown) => {
          callback(error instanceof Error ? error : new Error(String(error)), []);
        },
      );
    };
  }

  /** Resolves and checks all addresses of a target. @throws Refusal if any is not public; Error if there are none */
  async resolveAddresses(target: Target): Promise<string[]> {
    const addresses = isIP(target.host) === 0 ? await this.#resolve(target.host) : [target.host];
    if (!this.#isAllowed(target) && !addresses.every((address) => this.#isPublic(address)))
      throw new Refusal('resolves to an IP address that is not public');
    return addresses.slice(0, maxTried);
  }

  #checkHost(host: string): void {
    if (isIP(host) !== 0) {
      if (!this.#isPublic(host)) throw new Refusal('has an IP address that is not public');
    } else if (!publicName.test(host) || this.#names.some((name) => host === name || host.endsWith(`.${name}`))) {
      throw new Refusal('has a host that is not a public name');
    }
  }

  #isAllowed(target: Target): boolean {
    return this.#allow.has(`${target.host}:${target.port}`);
  }
}

function parseUrl(address: string): URL {
  if (!URL.canParse(address)) throw new Refusal('is not a complete URL such as https://example.org/page');
  return new URL(address);
}

function normalizeHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '');
}

function readPort(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** Whether an IP address, as text, may be reached. */
export type AddressCheck = (address: string) => boolean;

/**
 * Allows public addresses except those in `closed` (such as 10.0.0.0/8) and this machine's own. @throws Error for an entry
 * that is not a subnet
 */
export function createAddressCheck(closed: readonly string[]): AddressCheck {
  const never = createSubnetMatcher(closeAlso(closed));
  return (text) => {
    if (!ipaddr.isValid(text)) return false;
    const own = listOwnAddresses();
    return listReadings(ipaddr.parse(text)).every((address) => {
      const normal = address.toNormalizedString();
      return !own.has(normal) && !never(normal);
    });
  };
}

/** Lists every address that this one can lead to: itself, and the IPv4 address that a translator would extract. */
function listReadings(address: Address): Address[] {
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

function listOwnAddresses(): ReadonlySet<string> {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return new Set(all.map(({ address }) => ipaddr.parse(address).toNormalizedString().replace(/%.*/, '')));
}

/** Resolves all addresses of a name. @throws Error (ENOTFOUND) if there are none */
export type Resolve = (hostname: string) => Promise<string[]>;

/**
 * Resolves with this machine's DNS servers only: no hosts file, no search domains, and no thread that a slow server could
 * block.
 */
export function createDnsResolver(): Resolve {
  const resolver = new Resolver({ timeout: 2_500, tries: 2 });
  return async (hostname) => {
    const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (addresses.length === 0)
      throw answers.find((answer) => answer.status === 'rejected')?.reason ?? new Error(`no address for ${hostname}`);
    return addresses;
  };
}

export function toLookupAddress(address: string): LookupAddress {
  return { address, family: isIPv6(address) ? 6 : 4 };
}

const ports = list.transform((items) => items.map(Number)).pipe(z.array(z.int().min(1).max(65_535)).min(1));

/** Every environment variable of the guarded fetch. */
export const fetchEnvironment = z.object({
  MOORAGE_FETCH_PORTS: ports
    .optional()
    .describe('TCP ports that tools may fetch from. Default: 80, 443, 8080 and 8443.'),
  MOORAGE_CLOSED_CIDRS: subnets
    .default([])
    .describe(
      'Further subnets that tools never fetch from, such as those of nodes, pods and services. Private, reserved and metadata addresses are always closed.',
    ),
  MOORAGE_FETCH_CLOSED_NAMES: list.default([]).describe('Host names that tools never fetch from.'),
  MOORAGE_FETCH_TEST_HOSTS: list
    .pipe(
      z.array(
        z.string().regex(/^(?:\[[0-9a-f:.]+\]|[A-Za-z0-9._-]+):\d{1,5}$/, 'must be host:port, such as 127.0.0.1:9000'),
      ),
    )
    .default([])
    .describe(
      'For trials and tests: `host:port` pairs that tools may fetch from although they are not public, such as 127.0.0.1:9000. Refused where NODE_ENV is production, as in the image of the API.',
    ),
});

/** Reads the settings. @throws Error that names every invalid variable */
export function readFetchConfig(variables: NodeJS.ProcessEnv = process.env): GuardOptions {
  const read = readConfig(fetchEnvironment, variables);
  const testHosts = read.MOORAGE_FETCH_TEST_HOSTS;
  if (testHosts.length > 0 && variables['NODE_ENV'] === 'production')
    throw new Error(
      'invalid configuration in the environment:\n  MOORAGE_FETCH_TEST_HOSTS: must not be set where NODE_ENV is production: it would let callers reach inside',
    );
  return {
    closed: read.MOORAGE_CLOSED_CIDRS,
    closedNames: read.MOORAGE_FETCH_CLOSED_NAMES.map((name) => name.toLowerCase()),
    // The guard compares hosts without the brackets of an IPv6 address.
    allow: testHosts.map((host) => host.toLowerCase().replaceAll(/[[\]]/g, '')),
    ...(read.MOORAGE_FETCH_PORTS === undefined ? {} : { ports: read.MOORAGE_FETCH_PORTS }),
  };
}
