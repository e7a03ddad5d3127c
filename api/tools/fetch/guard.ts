// Decides what may be reached for a stranger: by its scheme, port and name before, and by every address of the name at
// the moment of connecting.
import { isIP, type LookupFunction } from 'node:net';
import { publicOnly, type AddressCheck } from './addresses.ts';
import { dnsResolver, lookupAddress, type Resolve } from './resolver.ts';

export interface GuardOptions {
  /** Ports that may be reached; default 80, 443, 8080, 8443. */
  readonly ports?: readonly number[];
  /** Subnets that are closed beside those that never are public, like those of the cluster. */
  readonly closed?: readonly string[];
  /** Names that are closed with all below them, beside those that are always. */
  readonly closedNames?: readonly string[];
  /** For trials and tests: `host:port` pairs that are taken as they are. */
  readonly allow?: readonly string[];
  /** For tests only: instead of DNS. */
  readonly resolve?: Resolve;
}

/** Where a request goes. */
export interface Target {
  readonly url: URL;
  /** Name or address, without brackets and without a dot at the end. */
  readonly host: string;
  readonly port: number;
}

/** Said of a target that is not reached for a stranger. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
}

/** Addresses of one name that are tried. */
const maxTried = 4;

/**
 * Ends of names that lead inside, or nowhere: RFC 6761, RFC 6762, RFC 8375, ICANN's .internal, and what networks call
 * themselves.
 */
const innerNames = [
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
const usualPorts = [80, 443, 8080, 8443];
const publicName = /^(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;

export class Guard {
  readonly #ports: ReadonlySet<number>;
  readonly #names: readonly string[];
  readonly #allow: ReadonlySet<string>;
  readonly #resolve: Resolve;
  readonly #open: AddressCheck;

  constructor(options: GuardOptions = {}) {
    this.#ports = new Set(options.ports ?? usualPorts);
    this.#names = [...innerNames, ...(options.closedNames ?? [])];
    this.#allow = new Set(options.allow);
    this.#resolve = options.resolve ?? dnsResolver();
    this.#open = publicOnly(options.closed ?? []);
  }

  /** Checks all that can be checked without DNS. @throws Refusal */
  target(address: string, httpsOnly = false): Target {
    const url = parsed(address);
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new Refusal('is not http or https');
    if (url.username !== '' || url.password !== '') throw new Refusal('contains a user name or password');
    const target = { url, host: bare(url.hostname), port: portOf(url) };
    if (this.#isAllowed(target)) return target;
    if (httpsOnly && url.protocol !== 'https:') throw new Refusal('is not https');
    if (!this.#ports.has(target.port))
      throw new Refusal(`uses port ${target.port}; allowed ports are ${[...this.#ports].join(', ')}`);
    this.#checkHost(target.host);
    return target;
  }

  /**
   * For `net.connect`: gives out the addresses that it has checked, so that what is connected to is what was checked.
   */
  lookup(target: Target): LookupFunction {
    return (hostname, options, callback) => {
      this.addresses({ ...target, host: bare(hostname) }).then(
        (addresses) => {
          const found = addresses.map(lookupAddress);
          const [first] = found;
          if (options.all === true || first === undefined) callback(null, found);
          else callback(null, first.address, first.family);
        },
        (error: unknown) => {
          callback(error instanceof Error ? error : new Error(String(error)), []);
        },
      );
    };
  }

  /** Addresses of a target, each of them checked. @throws Refusal when any is not public; Error when there are none */
  async addresses(target: Target): Promise<string[]> {
    const addresses = isIP(target.host) === 0 ? await this.#resolve(target.host) : [target.host];
    if (!this.#isAllowed(target) && !addresses.every((address) => this.#open(address)))
      throw new Refusal('resolves to an IP address that is not public');
    return addresses.slice(0, maxTried);
  }

  #checkHost(host: string): void {
    if (isIP(host) !== 0) {
      if (!this.#open(host)) throw new Refusal('has an IP address that is not public');
    } else if (!publicName.test(host) || this.#names.some((name) => host === name || host.endsWith(`.${name}`))) {
      throw new Refusal('has a host that is not a public name');
    }
  }

  #isAllowed(target: Target): boolean {
    return this.#allow.has(`${target.host}:${target.port}`);
  }
}

function parsed(address: string): URL {
  if (!URL.canParse(address)) throw new Refusal('is not a complete URL such as https://example.org/page');
  return new URL(address);
}

function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '');
}

function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}
