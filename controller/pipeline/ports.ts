// Gives each component of an app a port. All of them share one network address, so no two listen on the same one.
import type { Finding } from '../../crds/hosted-app.ts';
import { isRunning } from '../../crds/components.ts';
import type { PipelineComponent } from './contract.ts';
import { defaultPort } from './plan/recipe.ts';

/** What is known of the port that an image listens on. */
export interface ImagePort {
  /** Absent if nothing shows it. */
  readonly port?: number | undefined;
  /** The image listens on $PORT, so that it can be given another one. */
  readonly isMovable: boolean;
}

export interface PortAssignment {
  /** By component. Workers without a port of their own have none: nothing says that they listen. */
  readonly ports: ReadonlyMap<string, number>;
  /** Set if two components listen on the same port. */
  readonly conflict?: Finding;
}

/** Finds a port that is not taken, the usual one first. */
export function findFreePort(taken: ReadonlySet<number>, wanted = defaultPort): number {
  if (!taken.has(wanted)) return wanted;
  let port = defaultPort;
  while (taken.has(port)) port += 1;
  return port;
}

/**
 * Assigns the ports of all components: its own, else that of its image, else 8080. Those that follow $PORT are moved out
 * of the way of the others.
 *
 * @param images by the component that builds them
 */
export function assignPorts(
  components: readonly PipelineComponent[],
  images: ReadonlyMap<string, ImagePort>,
): PortAssignment {
  const ports = new Map<string, number>();
  const wanted = components
    .filter((component) => isRunning(component) && (component.kind === 'web' || component.port !== undefined))
    .toSorted((one, other) => Number(other.isMain) - Number(one.isMain))
    .map((component) => toWantedPort(component, images.get(component.imageOf)));
  const owners = new Map<number, WantedPort>();
  for (const each of wanted.filter(({ isMovable }) => !isMovable)) {
    const other = owners.get(each.port);
    if (other !== undefined) return { ports, conflict: createConflict(other, each) };
    owners.set(each.port, each);
  }
  const taken = new Set([...owners.keys(), ...listSilentPorts(components, images)]);
  for (const each of wanted) {
    const port = each.isMovable ? findFreePort(taken, each.port) : each.port;
    taken.add(port);
    ports.set(each.component.name, port);
  }
  return { ports };
}

interface WantedPort {
  readonly component: PipelineComponent;
  readonly port: number;
  readonly isMovable: boolean;
  /** Nothing shows the port, so it is the usual one. */
  readonly isAssumed: boolean;
}

function toWantedPort(component: PipelineComponent, image: ImagePort | undefined): WantedPort {
  const { port, isMovable } = image ?? { port: undefined, isMovable: false };
  return {
    component,
    port: component.port ?? port ?? defaultPort,
    isMovable: component.port === undefined && isMovable,
    isAssumed: component.port === undefined && port === undefined,
  };
}

/** Ports on which a worker may listen, although nothing has to reach it. Others only keep clear of them. */
function listSilentPorts(
  components: readonly PipelineComponent[],
  images: ReadonlyMap<string, ImagePort>,
): readonly number[] {
  return components
    .filter(({ kind, port, imageOf, name }) => kind === 'worker' && port === undefined && imageOf === name)
    .flatMap(({ name }) => images.get(name)?.port ?? []);
}

function createConflict(first: WantedPort, second: WantedPort): Finding {
  const { port } = second;
  const [one, other] = [first.component.name, second.component.name];
  const assumed = [first, second].filter(({ isAssumed }) => isAssumed).map(({ component }) => component.name);
  const because =
    assumed.length === 0
      ? ''
      : ` (${port} is assumed for ${assumed.join(' and ')}, as no EXPOSE in its Dockerfile and no port in its settings says another)`;
  return {
    rule: 'components/port',
    severity: 'error',
    message: `The components ${one} and ${other} both listen on port ${port}, and the components of an app share one network address${because}.`,
    fix: `Let one of them listen on another port, best on $PORT, and set that port in moorage.yaml, such as components[${other}].port: ${port === 65_535 ? defaultPort : port + 1}.`,
  };
}
