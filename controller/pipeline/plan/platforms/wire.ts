// Decides which component answers at / of an app, at which path or host name the others are reached, and what the variables
// that name an address of the developer's machine have to say here.
import { posix } from 'node:path';
import type { DeclaredComponent } from '../../../../crds/components.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
import {
  address,
  findNamed,
  findOnlyServer,
  isServing,
  listNamings,
  listProxies,
  listValues,
  ofMachine,
  type Part,
  readUrlPath,
} from './addresses.ts';
import type { ProxyConfig, ProxyRoute } from './compose/proxy.ts';
import { createWarning, type DeclaredVariable } from './declaration.ts';
import { findLocalPort, isPageVariable, type PageAddress } from './page-calls.ts';

type Route = NonNullable<DeclaredComponent['route']>;

export interface WiredPart {
  readonly kind: Part['kind'];
  readonly route?: Route;
  readonly env: readonly DeclaredVariable[];
  readonly args: readonly DeclaredVariable[];
  /** Variables of a build that Moorage plans. */
  readonly buildEnv: readonly DeclaredVariable[];
  /** Its pages are planned, since the Dockerfile does not take the addresses that they need. */
  readonly isPlanned: boolean;
}

export interface Wiring {
  readonly parts: ReadonlyMap<string, WiredPart>;
  /** Sentences, one for each component that is reached from outside. */
  readonly reasons: readonly string[];
  /** Name of another component that could as well answer at /. */
  readonly otherMain?: string;
  readonly findings: readonly Finding[];
}

export interface WiringOptions {
  /** The declaring file. */
  readonly file: string;
  readonly tree: Tree;
  readonly proxy?: ProxyConfig | undefined;
}

/** Returns undefined if no part answers requests. */
export function resolveWiring(parts: readonly Part[], options: WiringOptions): Wiring | undefined {
  const routed = options.proxy === undefined ? new Map<string, ProxyRoute[]>() : groupRoutes(parts, options.proxy);
  const webs = parts.filter(({ kind, name }) => kind === 'web' || routed.has(name));
  const proxied = webs.filter(({ name }) => routed.get(name)?.some(isRoot) === true);
  const [only, second] = proxied;
  const choice =
    only === undefined || second !== undefined
      ? chooseMain(only === undefined ? webs : proxied, parts)
      : { main: only, because: `${options.proxy?.file ?? 'the proxy'} passes / on to it` };
  if (choice === undefined) return undefined;
  const { main } = choice;
  const places = new Map<string, Place>([[main.name, { route: {}, base: appUrl, because: choice.because }]]);
  for (const web of webs)
    if (web !== main) {
      const place = placePart(web, { main, parts, tree: options.tree, routes: routed.get(web.name) ?? [] });
      places.set(web.name, avoidTakenPath(web.name, place, [...places.values()]));
    }
  const addresses = parts.flatMap((part) => checkAddresses(part, parts));
  return {
    parts: new Map(parts.map((part) => [part.name, resolvePart(part, parts, places)])),
    reasons: webs.map(({ name }) => describePlace(name, places.get(name))),
    ...(choice.other === undefined ? {} : { otherMain: choice.other.name }),
    findings: [
      ...addresses,
      ...webs.flatMap(({ name }) => warnAboutKeptPaths(name, places.get(name), options)),
      ...parts.flatMap((part) => [
        ...warnAboutArguments(part, parts, places, options),
        ...warnAboutSockets(part, parts, places, options),
      ]),
    ],
  };
}

// The component at /.

interface MainChoice {
  readonly main: Part;
  readonly because: string;
  readonly other?: Part;
}

const ofPages =
  /(?:^|[-_])(?:front(?:[-_]?end)?|web(?:app|ui|site|client)?|clients?|ui|www|site|pages?|dashboard|portal|next(?:js)?|nuxt|react|vue|angular|svelte|streamlit|gradio|gui|chat)(?:$|[-_0-9])/i;
const ofServers =
  /(?:^|[-_])(?:api|back(?:[-_]?end)?|server|services?|worker|gateway|rest|graphql|ws|websocket|auth|admin|docs|platform|proxy|flower|mcp)(?:$|[-_0-9])/i;

function chooseMain(webs: readonly Part[], parts: readonly Part[]): MainChoice | undefined {
  const ranked = webs
    .map((part) => ({ part, ...rankMain(part, webs, parts) }))
    .toSorted((one, two) => two.rank - one.rank);
  const [best, next] = ranked;
  if (best === undefined) return undefined;
  const isOnly = next === undefined;
  const because = isOnly ? 'it is the only one that answers requests' : best.because;
  return { main: best.part, because, ...(next?.rank === best.rank ? { other: next.part } : {}) };
}

function rankMain(part: Part, webs: readonly Part[], parts: readonly Part[]): { rank: number; because: string } {
  const { name, calls, isSecondary = false } = part;
  const isOfServers = ofServers.test(name);
  const needs = webs.find((each) => each !== part && (part.dependsOn.includes(each.name) || isNaming(part, each)));
  const isNeeded = parts.some((each) => each !== part && webs.includes(each) && each.dependsOn.includes(name));
  const signs = [
    { isGiven: calls !== undefined, rank: 4, because: 'it has the pages' },
    { isGiven: ofPages.test(name) && !isOfServers, rank: 3, because: 'of its name' },
    { isGiven: needs !== undefined, rank: 2, because: `it needs ${needs?.name ?? ''}` },
    { isGiven: isOfServers, rank: -3 },
    { isGiven: isNeeded, rank: -1 },
    { isGiven: isSecondary, rank: -8 },
  ].filter(({ isGiven }) => isGiven);
  return {
    rank: signs.reduce((sum, { rank }) => sum + rank, 0),
    because: signs.find(({ because }) => because !== undefined)?.because ?? 'it comes first',
  };
}

/** Returns whether a variable of one part names a host of the other. */
function isNaming({ env, args }: Part, { hosts, published }: Part): boolean {
  return [...env, ...args].some(({ value }) => {
    const port = findLocalPort(value);
    return hosts.some((host) => value.includes(`//${host}:`)) || (port !== undefined && published.includes(port));
  });
}

// Routes.

const appUrl = '${{app.url}}';

/** How a part is reached from outside. */
interface Place {
  /** Absent: it is not. */
  readonly route?: Route;
  /** Address at which visitors find its path /. Absent: a variable cannot name it. */
  readonly base?: string;
  /** Address at the host name that only it has. Servers reach it at localhost. */
  readonly hostBase?: string;
  readonly because: string;
  /** Paths that the files remove and the gateway does not, which removes only one. */
  readonly keptPaths?: readonly string[];
}

function isRoot({ path, subdomain }: ProxyRoute): boolean {
  return path === '/' && subdomain === undefined;
}

function groupRoutes(parts: readonly Part[], { routes }: ProxyConfig): Map<string, ProxyRoute[]> {
  const groups = new Map<string, ProxyRoute[]>();
  for (const route of routes) {
    const isLocal = ofMachine.test(route.host);
    const part = parts.find(
      ({ hosts, port }) => hosts.includes(route.host) || (isLocal && port !== undefined && port === route.port),
    );
    if (part !== undefined) groups.set(part.name, [...(groups.get(part.name) ?? []), route]);
  }
  return groups;
}

interface PlaceInput {
  readonly main: Part;
  readonly parts: readonly Part[];
  readonly tree: Tree;
  readonly routes: readonly ProxyRoute[];
}

function placePart(part: Part, input: PlaceInput): Place {
  return placeByProxy(input.routes) ?? placeByPages(part, input) ?? placeByItself(part);
}

function placeByProxy(routes: readonly ProxyRoute[]): Place | undefined {
  const paths = routes.filter(({ path }) => path !== '/');
  if (paths.length > 0) return toPathPlace(paths, 'the proxy passes it on');
  const subdomain = routes.find((each) => each.subdomain !== undefined)?.subdomain;
  return subdomain === undefined ? undefined : toHostPlace(subdomain, 'the proxy has a host name for it');
}

function placeByPages(part: Part, input: PlaceInput): Place | undefined {
  const { parts } = input;
  const pages = parts.filter(({ calls }) => calls !== undefined);
  const proxies = pages.flatMap((page) => listProxies(page, part, parts));
  const [proxy] = proxies;
  if (proxy !== undefined) return toPathPlace(proxies, `${proxy.file} passes it on while the pages are developed`);
  const namings = listNamings(part, parts);
  const [first] = namings;
  if (first !== undefined) {
    const path = namings.find((each) => each.path !== '')?.path;
    const isCommon = path !== undefined && namings.every((each) => each.path === path);
    const chosen = isCommon ? { path, strips: false } : choosePath(part, input);
    return toPathPlace([chosen, ...listSockets(part, parts)], `${first.name} of ${first.of} names it`);
  }
  const caller = pages.find((page) => page !== part && isAnswering(page, part, input));
  return caller === undefined
    ? undefined
    : toPathPlace([{ path: '/api', strips: false }], `the pages of ${caller.name} call it there`);
}

function placeByItself({ name, published, calls }: Part): Place {
  if (published.length === 0 && calls === undefined) return { because: 'only the others reach it' };
  const because = published.length > 0 ? 'it publishes a port' : 'it has its own pages';
  return toHostPlace(toSubdomain(name), because);
}

function toHostPlace(subdomain: string, because: string): Place {
  return { route: { subdomain }, hostBase: `\${{app.${subdomain}.url}}`, because };
}

function toPathPlace(all: readonly { readonly path: string; readonly strips: boolean }[], because: string): Place {
  const paths = [...new Map(all.map((each) => [each.path, each])).values()].filter(
    ({ path }) => !all.some((other) => path.startsWith(`${other.path}/`)),
  );
  const [first, ...rest] = paths.toSorted((one, two) => Number(two.strips) - Number(one.strips));
  if (first === undefined) return { because };
  const morePaths = rest.map(({ path }) => path);
  const keptPaths = rest.filter(({ strips }) => strips).map(({ path }) => path);
  return {
    route: {
      path: first.path,
      ...(first.strips ? { stripPath: true } : {}),
      ...(morePaths.length === 0 ? {} : { morePaths }),
    },
    base: first.strips ? `${appUrl}${first.path}` : appUrl,
    because,
    keptPaths,
  };
}

/** Returns whether the pages call paths below /api, and only the part has them. */
function isAnswering(page: Part, part: Part, { parts, tree }: Pick<PlaceInput, 'parts' | 'tree' | 'main'>): boolean {
  if (page.calls?.callsApi !== true || findOnlyServer(page, parts) !== part || hasOwnApi(page, tree)) return false;
  return hasSource(part, tree, /["'`/]\/?api\//);
}

function hasSource({ folder }: Part, tree: Tree, pattern: RegExp): boolean {
  const below = tree.getSubtree(folder);
  return below.entries.some(
    ({ kind, path }) =>
      kind === 'file' && serverSource.test(path) && pattern.test(below.readFile(path, 64 * 1024) ?? ''),
  );
}

const serverSource = /\.(?:py|[cm]?[jt]s|go|rs|java|kt|rb|php|cs|ex|properties|ya?ml)$/;

/** Two servers cannot have the same path: the second one gets that of its name, if it is removed anyway. */
function avoidTakenPath(name: string, place: Place, others: readonly Place[]): Place {
  const { route } = place;
  const isTaken = others.some(
    (other) => other.route?.path === route?.path && other.route?.subdomain === route?.subdomain,
  );
  if (!isTaken || route?.stripPath !== true) return place;
  return { ...place, route: { ...route, path: `/${name}` }, base: `${appUrl}/${name}` };
}

/** WebSockets of pages often go to another path, whatever the address of the API. */
function listSockets(part: Part, parts: readonly Part[]): { path: string; strips: boolean }[] {
  const pages = parts.filter(
    (each) => each !== part && each.calls !== undefined && findOnlyServer(each, parts) === part,
  );
  return pages.flatMap(({ calls }) => (calls?.sockets ?? []).map((path) => ({ path, strips: false })));
}

/**
 * Chooses a path that no page has: /api, unless the server of the pages has one. It is removed, unless the part has all of
 * its paths below it, or the pages leave out the path of its address.
 */
function choosePath(part: Part, { main, parts, tree }: Omit<PlaceInput, 'routes'>): { path: string; strips: boolean } {
  const { name } = part;
  if (hasOwnApi(main, tree)) return { path: name === 'api' ? '/backend' : `/${name}`, strips: true };
  const isBelow =
    parts.some(({ calls }) => calls?.dropsBasePath === true && calls.callsApi) || hasSource(part, tree, apiPrefix);
  return { path: '/api', strips: !isBelow };
}

const apiPrefix = /\bsetGlobalPrefix\(\s{0,9}["'`]\/?api\b|\bcontext-path\s{0,3}[=:]\s{0,3}\/api\b/;

/** Returns whether the server of the pages answers at /api itself. */
function hasOwnApi(main: Part, tree: Tree): boolean {
  if (main.isStatic === true) return false;
  const below = tree.getSubtree(main.folder);
  return ['', 'src/', 'app/'].some((folder) =>
    ['pages/api', 'app/api', 'routes/api', 'server/api'].some(
      (path) => below.getEntry(`${folder}${path}`)?.kind === 'directory',
    ),
  );
}

export function toSubdomain(name: string): string {
  return name.slice(0, 15).replace(/-+$/, '');
}

function describePlace(name: string, place: Place | undefined): string {
  const { route, because = '' } = place ?? {};
  if (route === undefined) return `${name} is reached by the others alone`;
  const { path = '/', subdomain, morePaths = [] } = route;
  const where = subdomain === undefined ? [path, ...morePaths].join(' and ') : `the host name <app>--${subdomain}`;
  return `${name} answers at ${where}, since ${because.startsWith('of ') ? `that is ${because}` : because}`.replace(
    'since that is of its name',
    'by its name',
  );
}

// Variables.

function resolvePart(part: Part, parts: readonly Part[], places: ReadonlyMap<string, Place>): WiredPart {
  const place = places.get(part.name);
  const set = (variable: DeclaredVariable): DeclaredVariable => ({
    name: variable.name,
    value: publish(part, variable, parts, places),
  });
  const env = part.env.map(set);
  const inferred = listValues(part)
    .filter(({ name }) => ![...part.env, ...part.args].some((each) => each.name === name))
    .map(set)
    .filter(({ value }) => value.includes('${{app.'));
  const all = [...env, ...inferred];
  const built = all.filter(({ name }) => isPageVariable(name));
  const isPlanned = part.canBePlanned === true && listLostArguments(part, parts, places).length > 0;
  const declared = isPlanned ? undefined : part.buildArguments;
  const args = part.args.map(set);
  const added = built.filter(({ name }) => declared?.has(name) === true && !args.some((each) => each.name === name));
  const isOutside = place?.route !== undefined;
  return {
    kind: part.kind === 'task' ? 'task' : isOutside ? 'web' : 'worker',
    ...(place?.route === undefined || Object.keys(place.route).length === 0 ? {} : { route: place.route }),
    env: all,
    args: [...args, ...added],
    buildEnv: declared === undefined ? built : [],
    isPlanned,
  };
}

/** Replaces addresses of the developer's machine in a value by those that visitors use here. */
function publish(
  part: Part,
  { name, value }: DeclaredVariable,
  parts: readonly Part[],
  places: ReadonlyMap<string, Place>,
): string {
  const resolve = (text: string): string | undefined => {
    const named = findNamed(part, name, text, parts);
    if (named === undefined) return undefined;
    const place = places.get(named.name);
    if (place?.base !== undefined) return place.base;
    if (isPageVariable(name)) return place?.hostBase;
    return named.port === undefined ? undefined : `http://localhost:${named.port}`;
  };
  if (value === '') return resolve('') ?? '';
  return value.replaceAll(new RegExp(address, 'g'), (whole: string) => {
    const base = resolve(whole);
    if (base === undefined) return whole;
    const isSocket = whole.startsWith('ws');
    return `${isSocket ? base.replace(/^\$\{\{app\.(.*)url\}\}/, 'wss://${{app.$1host}}') : base}${readUrlPath(whole)}`;
  });
}

// What cannot be wired.

/** A page that calls the developer's machine would call the visitor's own. */
function checkAddresses(part: Part, parts: readonly Part[]): Finding[] {
  if (part.calls === undefined) return [];
  const findOther = ({ port }: PageAddress): Part | undefined =>
    parts.find(
      (each) => each !== part && each.kind !== 'task' && (each.published.includes(port) || each.port === port),
    );
  // Code that runs on the server reaches the others at localhost here, too.
  const found = part.calls.addresses.filter(
    (each) => !each.isFallback && (part.isStatic === true || !each.isOfServer) && findOther(each) !== undefined,
  );
  const [first] = found;
  const other = first === undefined ? undefined : findOther(first);
  if (first === undefined || other === undefined) return [];
  // Pages with a server can have the address for it, if their browsers have another one.
  const isConnected =
    isServing(part, other, parts) ||
    listProxies(part, other, parts).length > 0 ||
    listNamings(other, parts).some(({ of }) => of === part.name);
  const place = posix.join(part.folder, first.file);
  const more = found.length === 1 ? '' : `, and ${found.length - 1} more`;
  return [
    {
      rule: 'components/local-address',
      severity: part.isStatic !== true && isConnected ? 'warning' : 'error',
      file: place,
      line: first.line,
      message: `The pages of ${part.name} call http://localhost:${first.port} (line ${first.line}${more}): in a browser that is the visitor's own machine, and not the component ${other.name}.`,
      fix: 'Read the address from a variable of the build, such as VITE_API_URL, NEXT_PUBLIC_API_URL or REACT_APP_API_URL, which is then set to the address of the component here; or call paths without a host, such as /api.',
    },
  ];
}

/** Lists the addresses that pages read when they are built, and that their Dockerfile has no argument for. */
function listLostArguments(part: Part, parts: readonly Part[], places: ReadonlyMap<string, Place>): string[] {
  const { buildArguments, args, calls } = part;
  if (buildArguments === undefined || calls === undefined) return [];
  return listValues(part)
    .filter(({ name }) => isPageVariable(name) && !buildArguments.has(name) && !args.some((each) => each.name === name))
    .filter(({ name, value }) => {
      const named = findNamed(part, name, value, parts);
      return (
        named !== undefined &&
        named !== part &&
        !(part.isStatic === true && isServing(part, named, parts)) &&
        (places.get(named.name)?.base ?? places.get(named.name)?.hostBase) !== undefined
      );
    })
    .map(({ name }) => name);
}

/** Pages that an author's Dockerfile builds get a variable only by an argument that it declares. */
function warnAboutArguments(
  part: Part,
  parts: readonly Part[],
  places: ReadonlyMap<string, Place>,
  { file }: WiringOptions,
): Finding[] {
  const lost = listLostArguments(part, parts, places);
  const [first] = lost;
  if (first === undefined) return [];
  const what = `The pages of ${part.name} read ${lost.slice(0, 5).join(', ')} when they are built, and the Dockerfile of ${part.folder} declares no argument of that name`;
  return [
    createWarning(
      'components/build-argument',
      file,
      part.canBePlanned === true
        ? `${what}, so Moorage plans their build instead.`
        : `${what}: they call the developer's machine.`,
      `Add "ARG ${first}" to the Dockerfile before the pages are built, so that it gets the address of the app.`,
    ),
  ];
}

function warnAboutKeptPaths(name: string, place: Place | undefined, { file, proxy }: WiringOptions): Finding[] {
  const { keptPaths = [], route } = place ?? {};
  if (keptPaths.length === 0) return [];
  return [
    createWarning(
      'components/path-kept',
      proxy?.file ?? file,
      `${keptPaths.join(', ')} of the component ${name} ${keptPaths.length === 1 ? 'is' : 'are'} not removed from requests here: of a component, the gateway removes only ${route?.path ?? ''}.`,
      `Let ${name} answer at ${keptPaths[0] ?? ''}, or at paths below ${route?.path ?? ''}.`,
    ),
  ];
}

/** Socket.IO takes the path of an address for a namespace, so it does not find a server below a path. */
function warnAboutSockets(
  part: Part,
  parts: readonly Part[],
  places: ReadonlyMap<string, Place>,
  { file }: WiringOptions,
): Finding[] {
  const server = findOnlyServer(part, parts);
  const base = server === undefined ? undefined : places.get(server.name)?.base;
  if (part.calls?.usesSocketIo !== true || base === undefined || base === appUrl) return [];
  return [
    createWarning(
      'components/socket-path',
      file,
      `The pages of ${part.name} use Socket.IO, which takes the path of ${base} for a namespace and may not connect.`,
      'Give the client the host alone, like io(new URL(address).origin), or its option path.',
    ),
  ];
}
