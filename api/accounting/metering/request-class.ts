// Decides what kind of request a record is, which separates uses from requests that earn an author nothing.
import { BlockList, isIP } from 'node:net';
import { RE2JS } from 're2js';
import { listComponents } from '../../../crds/components.ts';
import { formatAppHost, parseHostLabel, type AppsSite, labels } from '../../../crds/names.ts';
import { readSettings, resolveSpec } from '../../../crds/effective-settings.ts';
import type { FreeRequests } from '../../../crds/hosted-app.ts';
import type { App } from '../../apps/index.ts';
import {
  toAddressPrefix,
  hashAnonymousCaller,
  resolveClientAddress,
  computeKeyedHash,
  toNetworkPrefix,
} from '../../http/index.ts';
import type { GatewayRecord } from './gateway-record.ts';

/**
 * The classes, in the order in which they are tried; the first that holds is the record's.
 * - `refused`: the host is not that of an app.
 * - `platform`: the host is that of the API, which meters its calls itself.
 * - `wake`: the activator answered, not the app: with the page that is shown while an app wakes, or because the app is
 *   protected and the visitor was not admitted.
 * - `probe`: this installation looked at the app: a user agent of ours, from an address inside.
 * - `call`: the API called for an agent; that is metered there.
 * - `free`: the author says so (`metering.free`).
 * - `health`: GET or HEAD of the app's own health path.
 * - `preflight`: OPTIONS: a browser checks what it may send.
 * - `failed`: a status of 500 and above, or none: nobody got what he came for.
 * - `asset`: GET or HEAD of what a page is made of: the browser says so (Sec-Fetch-Dest), or the name of the file, where
 *   it does not say; or a status of 304, for which nothing was sent.
 * - `own`: the visitor's address is that from which the app was submitted without a key. Nobody earns by using what is his.
 * - `use`: anything else.
 */
export const classes = [
  'refused',
  'platform',
  'wake',
  'probe',
  'call',
  'free',
  'health',
  'preflight',
  'failed',
  'asset',
  'own',
  'use',
] as const;
export type RequestClass = (typeof classes)[number];

/** What the classification needs to know about a host. */
export type HostKind = { readonly kind: 'app'; readonly app: HostApp } | { readonly kind: 'platform' | 'unknown' };

/** What the classification needs to know about an app. */
export interface HostApp {
  readonly slug: string;
  /** Of each component, as visitors would request it. */
  readonly healthPaths: readonly string[];
  /** Hash of the submitter; undefined if the operator of the installation created the app. */
  readonly submitter: string | undefined;
  /** Whether the author declared such requests free. */
  readonly isFree: (path: string, status: number) => boolean;
}

/** User agents of the platform's own requests. */
const platformAgents: ReadonlyMap<string, RequestClass> = new Map([
  ['moorage-operator', 'probe'],
  ['moorage-bench', 'probe'],
  ['moorage-api', 'call'],
]);
const assetDestinations: ReadonlySet<string> = new Set([
  'audio',
  'audioworklet',
  'font',
  'image',
  'manifest',
  'paintworklet',
  'script',
  'serviceworker',
  'sharedworker',
  'style',
  'track',
  'video',
  'worker',
  'xslt',
]);
const assetExtension =
  /\.(?:avif|bmp|css|eot|gif|ico|jpe?g|js|map|mjs|mp3|mp4|ogg|otf|png|svg|ttf|wasm|webm|webmanifest|webp|woff2?)$/i;

export function classify(
  record: GatewayRecord,
  host: HostKind,
  visitor: Pick<Visitor, 'submitter' | 'isInside'>,
): RequestClass {
  if (host.kind !== 'app') return host.kind === 'platform' ? 'platform' : 'refused';
  const { app } = host;
  return (
    classifyPlatform(record, visitor.isInside) ??
    (app.isFree(record.path, record.status) ? 'free' : undefined) ??
    classifyRequest(record, app.healthPaths) ??
    (app.submitter === visitor.submitter ? 'own' : 'use')
  );
}

function classifyPlatform({ wake, userAgent }: GatewayRecord, isInside: boolean): RequestClass | undefined {
  if (wake !== '') return 'wake';
  return isInside ? platformAgents.get(userAgent) : undefined;
}

function classifyRequest(record: GatewayRecord, healthPaths: readonly string[]): RequestClass | undefined {
  const { method, path, status } = record;
  const isRead = method === 'GET' || method === 'HEAD';
  if (isRead && healthPaths.includes(path)) return 'health';
  if (method === 'OPTIONS') return 'preflight';
  if (status === 0 || status >= 500) return 'failed';
  return isRead && isAsset(record) ? 'asset' : undefined;
}

function isAsset({ destination, path, status }: GatewayRecord): boolean {
  if (status === 304) return true;
  return destination === '' ? assetExtension.test(path) : assetDestinations.has(destination);
}

export interface HostsOptions {
  readonly apps: { get(name: string): App | undefined; findByDomain?(domain: string): App | undefined };
  readonly site: AppsSite;
  /** Host of the API. */
  readonly platformHost: string;
}

/** Returns a function that finds the app of a host. Caches each app until it changes. */
export function createHostIndex({ apps, site, platformHost }: HostsOptions): (host: string) => HostKind {
  const hostApps = new WeakMap<App, IndexedApp>();
  const suffix = formatAppHost('', site);
  const getIndexedApp = (app: App): IndexedApp => {
    const indexed = hostApps.get(app) ?? readIndexedApp(app);
    hostApps.set(app, indexed);
    return indexed;
  };
  return (host) => {
    if (host === platformHost) return { kind: 'platform' };
    const label = host.endsWith(suffix) ? host.slice(0, -suffix.length) : '';
    const domainOwner = label === '' ? apps.findByDomain?.(host) : undefined;
    if (domainOwner !== undefined) return { kind: 'app', app: getIndexedApp(domainOwner).app };
    const { app: name, subdomain } = parseHostLabel(label);
    // An app of an earlier version may have a name with two hyphens.
    const own = apps.get(label);
    const app = own ?? apps.get(name);
    if (app === undefined) return { kind: 'unknown' };
    const indexed = getIndexedApp(app);
    const isKnown = own !== undefined || (subdomain !== undefined && indexed.subdomains.has(subdomain));
    return isKnown ? { kind: 'app', app: indexed.app } : { kind: 'unknown' };
  };
}

interface IndexedApp {
  readonly app: HostApp;
  /** Those of components that have host names of their own. */
  readonly subdomains: ReadonlySet<string>;
}

function readIndexedApp(app: App): IndexedApp {
  const { metadata, status } = app;
  const { settings, built, releases = [] } = status ?? {};
  const newest = resolveSpec(app, readSettings(settings?.values));
  const current = listComponents(newest);
  // A release with older settings may be what serves.
  const others = new Set([built?.settings, ...releases.map((release) => release.settings)]);
  others.delete(settings?.values);
  const components = [
    ...current,
    ...[...others].flatMap((text) => listComponents(resolveSpec(app, readSettings(text)))),
  ];
  return {
    app: {
      slug: metadata.name,
      // A component without a route answers no visitor: its path may be a page of another one.
      healthPaths: current.flatMap(({ healthPath, route }) =>
        healthPath === undefined || route === undefined
          ? []
          : [route.stripPath ? `${route.path}${healthPath}` : healthPath],
      ),
      submitter: metadata.labels?.[labels.caller],
      isFree: compileFreeRule(newest.metering.free),
    },
    subdomains: new Set(components.flatMap(({ route }) => route?.subdomain ?? [])),
  };
}

/** Compiles the rules into a predicate on path and status. */
export function compileFreeRule(rules: FreeRequests): (path: string, status: number) => boolean {
  const compiled = rules.map(({ path, statuses = [] }) => ({
    path: path === undefined ? undefined : RE2JS.compile(toPattern(path)),
    statuses: new Set(statuses),
  }));
  return (requestPath, status) =>
    compiled.some(
      ({ path, statuses }) =>
        (path === undefined || path.matches(requestPath)) &&
        (statuses.size === 0 || statuses.has(String(status)) || statuses.has(`${Math.floor(status / 100)}xx`)),
    );
}

/** `*` matches within a segment, `**` across segments. Visitors choose the path, so the regex engine must be linear. */
function toPattern(glob: string): string {
  return glob
    .split(/(\*{1,2})/)
    .map((part) => ({ '*': '[^/]*', '**': '.*' })[part] ?? RE2JS.quote(part))
    .join('');
}

export interface VisitorRules {
  readonly salt: string;
  /** Proxies in front of the gateway that are trusted to report the client. */
  readonly trustedProxies: BlockList;
}

export interface Visitor {
  readonly hash: string;
  /** Hash of the visitor's /24 or /48, which one person may own entirely. */
  readonly network: string;
  /** Hash that labels apps this visitor submits without a key. It is compared, and never stored with a visit. */
  readonly submitter: string;
  /** Whether the address is one of this cluster or machine. */
  readonly isInside: boolean;
}

const maxVisitors = 16_384;

/** Returns a function that resolves visitors. `day` is the UTC day of the request, as YYYY-MM-DD. */
export function createVisitorResolver({
  salt,
  trustedProxies,
}: VisitorRules): (client: string, day: string) => Visitor {
  const visitors = new Map<string, Visitor>();
  const salts = new Map<string, string>();
  const getSalt = (day: string): string => {
    const today = salts.get(day) ?? computeKeyedHash(`visitors:${day}`, salt);
    if (salts.size > 64) salts.clear();
    salts.set(day, today);
    return today;
  };
  return (client, day) => {
    const visitorKey = `${day} ${client}`;
    const cached = visitors.get(visitorKey);
    if (cached !== undefined) return cached;
    const hops = client.split(',');
    const address = resolveClientAddress(hops.at(-1)?.trim(), hops.slice(0, -1).join(','), trustedProxies);
    const visitor = {
      hash: computeKeyedHash(`address:${toAddressPrefix(address)}`, getSalt(day)),
      network: computeKeyedHash(`network:${toNetworkPrefix(address)}`, getSalt(day)),
      submitter: hashAnonymousCaller(address, salt),
      isInside: isInside(address),
    };
    if (visitors.size >= maxVisitors) visitors.clear();
    visitors.set(visitorKey, visitor);
    return visitor;
  };
}

/** Address ranges that are not routed on the public internet. */
const insideAddresses = new BlockList();
for (const [address, bits] of [
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['127.0.0.0', 8],
  ['100.64.0.0', 10],
] as const)
  insideAddresses.addSubnet(address, bits, 'ipv4');
insideAddresses.addSubnet('fc00::', 7, 'ipv6');
insideAddresses.addAddress('::1', 'ipv6');

function isInside(address: string): boolean {
  const version = isIP(address);
  return version !== 0 && insideAddresses.check(address, version === 6 ? 'ipv6' : 'ipv4');
}
