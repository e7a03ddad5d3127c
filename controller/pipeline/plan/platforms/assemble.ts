// Assembles the components of an app from its processes: their routes, variables and ports, and the finding that explains them.
import { authorLimits } from '../../../../crds/app-manifest.ts';
import { type DeclaredComponent, sortComponents } from '../../../../crds/components.ts';
import { type Finding, run } from '../../../../crds/hosted-app.ts';
import { parseQuantityValue } from '../../../../crds/values.ts';
import { omitUndefined } from '../../../../lib/values.ts';
import { keepHead } from '../../text.ts';
import { createWarning, type DeclaredVariable } from './declaration.ts';
import { isUsablePort } from '../port-literal.ts';
import type { Part } from './addresses.ts';
import { resolveWiring, toSubdomain, type WiredPart, type Wiring, type WiringOptions } from './wire.ts';

/** A process with the fields of its component that do not depend on the others. */
export interface PartDraft extends Part {
  readonly component: DeclaredComponent;
  /** It listens on its port whatever $PORT is. */
  readonly isFixed: boolean;
}

export interface Assembly {
  readonly components: readonly DeclaredComponent[];
  readonly findings: readonly Finding[];
}

/** Returns undefined if no process answers requests. */
export function assembleComponents(drafts: readonly PartDraft[], options: WiringOptions): Assembly | undefined {
  const parts = resolvePorts(drafts);
  const wiring = resolveWiring(parts, options);
  if (wiring === undefined) return undefined;
  const unordered = parts.map((part) => toComponent(part, parts, wiring));
  const isCircular = sortComponents(unordered) === undefined;
  const components = unordered
    .map((each) => (isCircular ? omitUndefined({ ...each, dependsOn: undefined }) : each))
    .toSorted((one, two) => rankComponent(one) - rankComponent(two));
  return {
    components: shareCores(components),
    findings: [...wiring.findings, explainComponents(components, wiring, options)],
  };
}

/** Divides what an author may have among the components, if each one's usual limit is too much. */
function shareCores(components: readonly DeclaredComponent[]): DeclaredComponent[] {
  const running = components.filter(({ kind = 'web' }) => kind === 'web' || kind === 'worker').length;
  const maximum = parseQuantityValue(authorLimits.components.cpu) ?? 0;
  const usual = parseQuantityValue(run.shape.resources.parse({}).cpu) ?? 0;
  if (running * usual <= maximum) return [...components];
  const cpu = `${Math.floor((maximum * 1000) / running)}m`;
  return components.map((each) => (each.kind === 'task' ? each : { ...each, resources: { ...each.resources, cpu } }));
}

/** The component at / first, tasks last. */
function rankComponent({ kind = 'web', route }: DeclaredComponent): number {
  const isMain = kind === 'web' && route === undefined;
  return isMain ? 0 : ['web', 'worker', 'cron', 'task'].indexOf(kind) + 1;
}

function toComponent(part: PartDraft, parts: readonly PartDraft[], { parts: wired }: Wiring): DeclaredComponent {
  const { kind, route, env, isPlanned, ...built } = wired.get(part.name) ?? emptyPart;
  const { image, build, path, ...own } = part.component;
  const isRunning = (name: string): boolean =>
    name !== part.name && parts.some((each) => each.name === name) && wired.get(name)?.kind !== 'task';
  const isTask = kind === 'task';
  return omitUndefined({
    ...own,
    path: isPlanned && part.folder !== '.' ? part.folder : path,
    kind: kind === 'web' ? undefined : kind,
    image,
    build: image === undefined ? toBuild(build, { ...built, isPlanned }) : undefined,
    port: isTask ? undefined : part.port,
    route,
    env: omitEmpty(env),
    dependsOn: isTask ? undefined : omitEmpty([...new Set(part.dependsOn)].filter(isRunning)),
  });
}

function toBuild(
  build: DeclaredComponent['build'],
  { args, buildEnv, isPlanned }: Pick<WiredPart, 'args' | 'buildEnv' | 'isPlanned'>,
): DeclaredComponent['build'] {
  const fields = omitUndefined({
    ...(isPlanned ? { strategy: 'node' as const } : build),
    args: isPlanned ? undefined : omitEmpty(args),
    env: omitEmpty(buildEnv),
  });
  return Object.keys(fields).length === 0 ? undefined : fields;
}

function omitEmpty<Item>(list: readonly Item[]): Item[] | undefined {
  return list.length === 0 ? undefined : [...list];
}

const emptyPart: WiredPart = { kind: 'worker', env: [], args: [], buildEnv: [], isPlanned: false };

/**
 * Gives each process its own port, since all have one network address. One that listens where $PORT says is moved, with
 * the addresses that name it.
 */
function resolvePorts(drafts: readonly PartDraft[]): PartDraft[] {
  const moved = new Map<PartDraft, number>();
  const taken = new Set<number>();
  // Those that cannot be moved, and those whose address others know, keep their port.
  const ranked = drafts.toSorted((one, two) => rankPort(two, drafts) - rankPort(one, drafts));
  for (const draft of ranked) {
    const { port, kind, isFixed } = draft;
    if (port === undefined || kind === 'task') continue;
    if (taken.has(port) && !isFixed) {
      const isFree = (each: number): boolean =>
        isUsablePort(each) && !taken.has(each) && !drafts.some((other) => other.port === each);
      moved.set(draft, findFreePort(port < 1024 ? port + 8000 : port + 1, isFree));
    }
    taken.add(moved.get(draft) ?? port);
  }
  if (moved.size === 0) return [...drafts];
  const move = ({ name, value }: DeclaredVariable): DeclaredVariable => ({
    name,
    value: [...moved].reduce(
      (text, [{ hosts, port }, to]) =>
        hosts.reduce((each, host) => each.replaceAll(`//${host}:${port ?? 0}`, `//${host}:${to}`), text),
      value,
    ),
  });
  return drafts.map((draft) => ({
    ...draft,
    port: moved.get(draft) ?? draft.port,
    env: draft.env.map(move),
    args: draft.args.map(move),
  }));
}

function rankPort({ isFixed, hosts, port }: PartDraft, drafts: readonly PartDraft[]): number {
  const isKnown = drafts.some(({ env }) =>
    env.some(({ value }) => hosts.some((host) => value.includes(`//${host}:${port ?? 0}`))),
  );
  return (isFixed ? 2 : 0) + (isKnown ? 1 : 0);
}

function findFreePort(from: number, isFree: (port: number) => boolean): number {
  let port = from;
  while (!isFree(port) && port < from + 100) port += 1;
  return port;
}

/** Reports what each component is, why, and the line of moorage.yaml that decides otherwise. */
function explainComponents(
  components: readonly DeclaredComponent[],
  { reasons, otherMain }: Wiring,
  { file }: WiringOptions,
): Finding {
  const workers = components
    .filter(({ kind, port }) => kind === 'worker' && port === undefined)
    .map(({ name }) => name)
    .filter((name) => !reasons.some((each) => each.startsWith(`${name} `)));
  const tasks = components.filter(({ kind }) => kind === 'task').map(({ name }) => name);
  const sentences = [
    ...reasons,
    ...components
      .filter(({ kind, port }) => kind === 'worker' && port !== undefined)
      .filter(({ name }) => !reasons.some((each) => each.startsWith(`${name} `)))
      .map(({ name }) => `${name} is reached by the others alone`),
    ...(workers.length === 0 ? [] : [`${workers.join(', ')} answers no requests`]),
    ...(tasks.length === 0 ? [] : [`${tasks.join(', ')} runs once before each release serves`]),
  ];
  const alternative = otherMain === undefined ? undefined : formatOtherReading(components, otherMain);
  const folder = components.map(({ path = '.' }) => path).find((path) => path !== '.');
  const alone = `To host one of them alone, choose its folder in moorage.yaml, like source: {path: ${folder ?? '.'}}.`;
  return createWarning(
    'components/found',
    file,
    keepHead(`The app has ${components.length} components: ${sentences.join('; ')}.`, 1_500),
    keepHead(
      alternative === undefined
        ? alone
        : `If ${otherMain ?? ''} is to answer at /, write in moorage.yaml: ${alternative} ${alone}`,
      590,
    ),
  );
}

/** The line that lets another component answer at /. What it leaves out stays as the other files have it. */
function formatOtherReading(components: readonly DeclaredComponent[], main: string): string {
  const items = components.map(({ name, kind, image, route }, index) => {
    const fields = [
      `name: ${name}`,
      ...(kind === undefined ? [] : [`kind: ${kind}`]),
      ...(image === undefined ? [] : [`image: ${image}`]),
      ...(name === main
        ? ['route: {path: /}']
        : index === 0
          ? [`route: {subdomain: ${toSubdomain(name)}}`]
          : formatRoute(route)),
    ];
    return `{${fields.join(', ')}}`;
  });
  return `components: [${items.join(', ')}]`;
}

function formatRoute(route: DeclaredComponent['route']): string[] {
  if (route === undefined) return [];
  const { path, stripPath, morePaths = [], subdomain } = route;
  const fields = [
    ...(path === undefined ? [] : [`path: ${path}`]),
    ...(stripPath === true ? ['stripPath: true'] : []),
    ...(morePaths.length === 0 ? [] : [`morePaths: [${morePaths.join(', ')}]`]),
    ...(subdomain === undefined ? [] : [`subdomain: ${subdomain}`]),
  ];
  return [`route: {${fields.join(', ')}}`];
}
