// Decides which component of an app gets a request, by host name and path. The operator lists a pod's components in an
// annotation, and the operator, the activator and the API read them there.
import { createHash } from 'node:crypto';
import { z } from 'zod';

const route = z.object({
  path: z.string(),
  stripPath: z.boolean(),
  morePaths: z.array(z.string()).readonly().optional(),
  subdomain: z.string().optional(),
});

const podComponent = z.object({
  /** Also the name of its container. */
  name: z.string(),
  image: z.string(),
  /** Absent: it does not listen. */
  port: z.int().optional(),
  /** Path that says whether it is ready; absent: it is once it accepts connections. */
  healthPath: z.string().optional(),
  /** Which requests it gets; absent: none from outside. */
  route: route.optional(),
});

/** A component that runs in a pod. */
export type PodComponent = z.output<typeof podComponent>;

/** A component that gets requests from outside. */
export type RoutedComponent = PodComponent & {
  readonly port: number;
  readonly route: NonNullable<PodComponent['route']>;
};

/** The components of a pod in its annotation; undefined if its app is one process, or the annotation cannot be read. */
export function parsePodComponents(text: string | undefined): readonly PodComponent[] | undefined {
  if (text === undefined) return undefined;
  try {
    return z.array(podComponent).safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

export function isRouted(component: PodComponent): component is RoutedComponent {
  return component.route !== undefined && component.port !== undefined;
}

/** Whether the component answers at / of the app. */
export function isMain({ route: at }: Pick<PodComponent, 'route'>): boolean {
  return at?.path === '/' && at.subdomain === undefined;
}

/**
 * The component that gets a request: of those with this subdomain, the one with the longest path that the request is at or
 * below. Undefined: none has it.
 *
 * @param url path of the request, with or without a query
 */
export function chooseComponent(
  list: readonly PodComponent[],
  subdomain: string | undefined,
  url: string,
): RoutedComponent | undefined {
  const path = removeQuery(url);
  return list
    .filter(isRouted)
    .filter(({ route: at }) => at.subdomain === subdomain)
    .map((component) => ({ component, length: findLongestPath(path, component.route)?.length ?? 0 }))
    .filter(({ length }) => length > 0)
    .toSorted((one, other) => other.length - one.length)[0]?.component;
}

/** All paths whose requests go to a component. Only the first one can be removed. */
export function listRoutePaths({ path, morePaths = [] }: RoutedComponent['route']): readonly string[] {
  return [path, ...morePaths];
}

/** The longest path of the route that the request is at or below. */
function findLongestPath(path: string, at: RoutedComponent['route']): string | undefined {
  return listRoutePaths(at)
    .filter((each) => isBelow(path, each))
    .toSorted((one, other) => other.length - one.length)[0];
}

function removeQuery(url: string): string {
  return url.replace(/[?#].*$/s, '');
}

function isBelow(path: string, folder: string): boolean {
  return folder === '/' || path === folder || path.startsWith(`${folder}/`);
}

/** The URL that the component sees: without the path of its route, if that is removed and no longer one matches. */
export function stripRoutePath(url: string, at: RoutedComponent['route']): string {
  const { path, stripPath } = at;
  if (!stripPath || findLongestPath(removeQuery(url), at) !== path) return url;
  const rest = url.slice(path.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

// Names and numbers of ports. The port of the component at / has the name and number that the only port of an app has, so
// that a release with other components can take over from one without.

const mainPort = { name: 'http', number: 80 } as const;
const firstNumber = 20_000;
const numbers = 10_000;

/** The name of the port of a component in its pod and in the app's Service: at most 15 characters. */
export function formatPortName(component: PodComponent): string {
  const { name } = component;
  if (isMain(component)) return mainPort.name;
  // A gateway may read a protocol out of a name such as https.
  const isUsable = name.length <= 15 && !name.includes('--') && !name.startsWith('http');
  return isUsable ? name : `c-${hashName(name).slice(0, 10)}`;
}

/**
 * The port of the app's Service at which each of these component names is reached. It does not depend on the container's
 * port, which may differ between two releases whose pods both serve.
 */
export function assignServicePorts(list: readonly PodComponent[]): ReadonlyMap<string, number> {
  const assigned = new Map<string, number>([[mainPort.name, mainPort.number]]);
  const taken = new Set<number>();
  for (const name of [...new Set(list.filter(isRouted).map(formatPortName))].sort()) {
    if (name === mainPort.name) continue;
    let number = Number.parseInt(hashName(name).slice(0, 8), 16) % numbers;
    while (taken.has(number)) number = (number + 1) % numbers;
    taken.add(number);
    assigned.set(name, firstNumber + number);
  }
  return assigned;
}

function hashName(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}
