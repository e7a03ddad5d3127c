// Defines the components of an app (spec.components): its processes, which are released, woken and put to rest as one.
import { z } from 'zod';
import { omitUndefined, parseDuration } from '../lib/values.ts';
import type { Control } from './control.ts';
import { strategies } from './languages.ts';
import { previewLabelPattern } from './names.ts';
import {
  addRules,
  appVariable,
  createNameRule,
  createPatternRule,
  declaredMcp,
  duration,
  healthPath,
  listBy,
  parseQuantityValue,
  portNumber,
  quantity,
  relativePath,
  secretReference,
  stageName,
  toCelString,
  variable,
  volume,
} from './values.ts';

export const componentKinds = ['web', 'worker', 'task', 'cron'] as const;
type ComponentKind = (typeof componentKinds)[number];

/** The only component of an app that lists none. */
export const onlyComponent = 'app';

/** Most components of an app. */
export const maximumComponents = 8;

export const componentName = addRules(z.string().max(30), createNameRule('the name of a component'), {
  cel: `!(self in ['app', 'localhost'])`,
  isValid: (name) => name !== onlyComponent && name !== 'localhost',
  message: 'app and localhost are reserved; give the component another name',
});

const previewPattern = `^${previewLabelPattern}$`;
const previewExpression = new RegExp(previewPattern);

const routePath = addRules(
  z.string().max(100),
  createPatternRule(
    '^/([A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*)?$',
    'path must be / or like /api: letters, digits, ".", "_", "~" and "-" between slashes, and no slash at its end',
  ),
);

const route = addRules(
  z.strictObject({
    path: routePath
      .default('/')
      .describe('Requests whose path is this one or below it go to the component. The longest match wins.'),
    stripPath: z
      .boolean()
      .default(false)
      .describe('Whether the path is removed before the component sees the request: /api/users becomes /users.'),
    morePaths: z
      .array(routePath)
      .max(12)
      .optional()
      .describe('Other paths whose requests go to it too, such as /ws. They are never removed.'),
    subdomain: addRules(z.string().max(15), createNameRule('subdomain'), {
      cel: `!self.matches(${toCelString(previewPattern)})`,
      isValid: (text) => !previewExpression.test(text),
      message: 'subdomain cannot be like pr-1, mr-1 or br-name, which are those of previews; choose another one',
    })
      .optional()
      .describe('The component has a host name of its own, <app>--<subdomain>, in addition to that of the app.'),
  }),
  {
    cel: '!has(self.stripPath) || !self.stripPath || (has(self.path) && self.path != "/")',
    isValid: ({ path, stripPath }) => !stripPath || path !== '/',
    message: 'stripPath needs a path other than /',
  },
);

const componentBuild = z.strictObject({
  strategy: z
    .enum(['auto', ...strategies])
    .optional()
    .describe('As build.strategy of the app.'),
  dockerfile: relativePath('dockerfile').optional().describe('Path of the Dockerfile, relative to path.'),
  target: stageName.optional().describe('Dockerfile stage to build. Defaults to the last one.'),
  args: listBy(z.array(variable).max(32), 'name').optional().describe('Build arguments.'),
  env: listBy(z.array(variable).max(32), 'name')
    .optional()
    .describe('Environment variables of a build that Moorage plans.'),
});

export const schedule = addRules(
  z.string().max(60),
  createPatternRule(
    '^(@(hourly|daily|weekly|monthly)|([0-9*,/A-Za-z-]+ ){4}[0-9*,/A-Za-z-]+)$',
    'schedule must have the five fields of cron, like "0 3 * * *", or be @hourly, @daily, @weekly or @monthly',
  ),
);

/** Fields that the author can set, too. */
const authorFields = {
  name: componentName.describe('Name of the component. The others reach it at this host name, at its port.'),
  kind: z
    .enum(componentKinds)
    .default('web')
    .describe(
      'web: answers requests from outside. worker: runs as long as the app does; with a port, the other components can reach it. task: runs once per release, before it serves, such as a migration. cron: runs at each time of its schedule.',
    ),
  path: relativePath('path').default('.').describe('Folder of its source, relative to source.path.'),
  build: componentBuild.optional().describe('How its image is built.'),
  image: z
    .string()
    .max(30)
    .optional()
    .describe('Name of another component whose image this one runs, usually with another command.'),
  command: z
    .array(z.string().min(1).max(4096))
    .max(64)
    .optional()
    .describe('Command and arguments that replace those of the image. Not run in a shell.'),
  mcp: declaredMcp
    .optional()
    .describe('How it starts, if it is an MCP server of kind web. Default: what the files of its folder show.'),
  port: portNumber
    .optional()
    .describe(
      'TCP port on which it listens; passed to it as $PORT. Of a web component, it defaults to the port of its plan or image. All components of an app share one network address, so each has its own port.',
    ),
  route: route.optional().describe('Which requests a web component gets. Exactly one has the path / of the app.'),
  env: listBy(z.array(appVariable).max(128), 'name')
    .optional()
    .describe('Environment variables of this component, over those of run.env, which all components have.'),
  resources: z
    .strictObject({
      cpu: quantity('cpu', '10m', '64').optional().describe('CPU limit, from 10m to 64.'),
      memory: quantity('memory', '16Mi', '256Gi').optional().describe('Memory limit, from 16Mi to 256Gi.'),
      disk: quantity('disk', '16Mi', '100Gi').optional().describe('Temporary disk limit, from 16Mi to 100Gi.'),
    })
    .optional()
    .describe('Its limits. What is not set is as in run.resources.'),
  healthPath: healthPath.optional().describe('Path that responds with a status from 200 to 399 when it is ready.'),
  startupTime: duration('startupTime', '10s', '30m')
    .optional()
    .describe('How long it may take to become ready, or how long a task may run. Defaults to run.startupTime.'),
  volumes: listBy(z.array(volume).max(8), 'name')
    .optional()
    .describe('Persistent volumes that it mounts. Components that name the same volume share it.'),
  dependsOn: z
    .array(z.string().max(30))
    .max(maximumComponents)
    .optional()
    .describe('Components that must be ready before this one starts.'),
  schedule: schedule.optional().describe('When a cron component runs, in UTC.'),
};

const component = z.strictObject({
  ...authorFields,
  secrets: listBy(z.array(secretReference).max(64), 'name')
    .optional()
    .describe('Environment variables of this component whose values come from Secrets.'),
});
type ComponentFields = z.output<typeof component>;

/** Whether a listed component answers at / of the app. */
export function isMain({
  kind,
  route: at,
}: {
  readonly kind: string;
  readonly route?: { readonly path?: string | undefined; readonly subdomain?: string | undefined } | undefined;
}): boolean {
  return kind === 'web' && (at === undefined || (at.path === '/' && at.subdomain === undefined));
}

/** Whether a component runs in the app's pod, as long as it does. */
export function isRunning({ kind }: { readonly kind: string }): boolean {
  return kind === 'web' || kind === 'worker';
}

/** Host name and path of each route, of which two components cannot have the same. */
const toRouteKeys = ({ route: at }: ComponentFields): string[] => [
  ...new Set([at?.path ?? '/', ...(at?.morePaths ?? [])].map((path) => `${at?.subdomain ?? ''} ${path}`)),
];

/** The components in an order in which each comes after those that it depends on; undefined if they form a circle. */
export function sortComponents<C extends Pick<ComponentFields, 'name' | 'dependsOn'>>(
  list: readonly C[],
): readonly C[] | undefined {
  const ordered: C[] = [];
  let rest = [...list];
  while (rest.length > 0) {
    const isFree = ({ dependsOn = [] }: C): boolean => !rest.some(({ name }) => dependsOn.includes(name));
    const free = rest.filter(isFree);
    if (free.length === 0) return undefined;
    ordered.push(...free);
    rest = rest.filter((each) => !free.includes(each));
  }
  return ordered;
}

const hasRoute = 'has(one.route)';
const cel = {
  listPaths: (name: string): string =>
    `(has(${name}.route) ? [${name}.route.path] + (has(${name}.route.morePaths) ? ${name}.route.morePaths : []) : ['/'])`,
  main: `one.kind == 'web' && (!${hasRoute} || (one.route.path == '/' && !has(one.route.subdomain)))`,
};

/** Applies the rules about the list as a whole to a list of components. */
function addListRules<Item extends typeof component | typeof authorComponent>(
  items: z.ZodArray<Item>,
): z.ZodArray<Item> {
  const toFields = (list: unknown): readonly ComponentFields[] => list as readonly ComponentFields[];
  return addRules(
    listBy(items, 'name') as z.ZodArray<Item>,
    {
      cel: `self.size() == 0 || self.exists_one(one, ${cel.main})`,
      isValid: (list) => list.length === 0 || toFields(list).filter(isMain).length === 1,
      message:
        'exactly one component must answer at / of the app: kind web, with no route or with route.path /; give the others a route, or kind worker',
    },
    {
      cel: `self.all(one, one.kind == 'web' || !${hasRoute})`,
      isValid: (list) => toFields(list).every(({ kind, route: at }) => kind === 'web' || at === undefined),
      message: 'only a web component has a route; remove it, or set kind: web',
    },
    {
      cel: `self.all(one, one.kind != 'web' || ${cel.listPaths('one')}.all(path, self.exists_one(other, other.kind == 'web' && path in ${cel.listPaths('other')} && (${hasRoute} && has(one.route.subdomain) ? one.route.subdomain : '') == (has(other.route) && has(other.route.subdomain) ? other.route.subdomain : ''))))`,
      isValid: (list) => {
        const keys = toFields(list)
          .filter(({ kind }) => kind === 'web')
          .flatMap(toRouteKeys);
        return new Set(keys).size === keys.length;
      },
      message: 'two web components have a path in common; give each its own paths, or a subdomain',
    },
    {
      cel: `self.all(one, (one.kind == 'cron') == has(one.schedule))`,
      isValid: (list) => toFields(list).every(({ kind, schedule: at }) => (kind === 'cron') === (at !== undefined)),
      message: 'a cron component needs a schedule, and no other kind has one',
    },
    {
      cel: `self.all(one, !has(one.image) || (!has(one.build) && one.path == '.' && self.exists(other, other.name == one.image && !has(other.image))))`,
      isValid: (list) =>
        toFields(list).every(
          ({ image, build, path }) =>
            image === undefined ||
            (build === undefined &&
              path === '.' &&
              toFields(list).some((other) => other.name === image && other.image === undefined)),
        ),
      message: 'image must name a component that builds an image of its own; remove path and build, which belong there',
    },
    {
      cel: `self.all(one, !has(one.dependsOn) || one.dependsOn.all(name, name != one.name && self.exists(other, other.name == name && other.kind in ['web', 'worker'])))`,
      isValid: (list) =>
        toFields(list).every(({ name, dependsOn = [] }) =>
          dependsOn.every(
            (wanted) => wanted !== name && toFields(list).some((other) => other.name === wanted && isRunning(other)),
          ),
        ),
      message: 'dependsOn must name other components of kind web or worker; a task always runs before them',
    },
    {
      cel: `self.all(one, !has(one.dependsOn) || one.dependsOn.all(name, self.all(other, other.name != name || !has(other.dependsOn) || !(one.name in other.dependsOn))))`,
      isValid: (list) => sortComponents(toFields(list)) !== undefined,
      message: 'components depend on each other in a circle; remove one dependsOn',
    },
  );
}

/** A component as the author writes it in moorage.yaml. */
const authorComponent = z.strictObject(authorFields);

/** What files of other platforms and authors say about a component. */
export type DeclaredComponent = z.input<typeof authorComponent>;

export const components = addListRules(z.array(component).max(maximumComponents));
/** The same in moorage.yaml: secrets are for the operator of the installation. */
export const authorComponents = addListRules(z.array(authorComponent).max(maximumComponents));

/** Settings of an app that describe its only process; an app with components sets them in each. */
interface OneProcess {
  readonly run?:
    | {
        readonly port?: number | undefined;
        readonly command?: readonly string[] | undefined;
        readonly healthPath?: string | undefined;
        readonly volumes?: readonly unknown[] | undefined;
      }
    | undefined;
  readonly build?:
    | {
        readonly strategy?: string | undefined;
        readonly dockerfile?: string | undefined;
        readonly target?: string | undefined;
        readonly args?: readonly unknown[] | undefined;
      }
    | undefined;
  readonly mcp?:
    { readonly transport?: string | undefined; readonly command?: readonly string[] | undefined } | undefined;
}

/** Names those of them that are set to other than their default, such as run.port. */
export function listProcessFields({ run = {}, build = {}, mcp = {} }: OneProcess): string[] {
  const { port, command = [], healthPath: probed, volumes = [] } = run;
  const { strategy = 'auto', dockerfile = 'Dockerfile', target, args = [] } = build;
  const isSet = {
    'run.port': port !== undefined,
    'run.command': command.length > 0,
    'run.healthPath': probed !== undefined,
    'run.volumes': volumes.length > 0,
    'build.strategy': strategy !== 'auto',
    'build.dockerfile': dockerfile !== 'Dockerfile',
    'build.target': target !== undefined,
    'build.args': args.length > 0,
    'mcp.transport': mcp.transport !== undefined,
    'mcp.command': (mcp.command ?? []).length > 0,
  };
  return Object.entries(isSet).flatMap(([field, isGiven]) => (isGiven ? [field] : []));
}

export function hasProcessFields(settings: OneProcess): boolean {
  return listProcessFields(settings).length > 0;
}

export const onlyInComponents =
  'an app with components sets port, command, healthPath, volumes, build.strategy, build.dockerfile, build.target, build.args and mcp in each component, not in run, build and mcp';

/** A component with every default resolved. */
export interface Component {
  readonly name: string;
  readonly kind: ComponentKind;
  readonly command: readonly string[];
  readonly port: number | undefined;
  /** Of web components alone. */
  readonly route:
    | {
        readonly path: string;
        readonly stripPath: boolean;
        readonly morePaths?: readonly string[] | undefined;
        readonly subdomain?: string | undefined;
      }
    | undefined;
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly secrets: readonly z.output<typeof secretReference>[];
  readonly resources: { readonly cpu: string; readonly memory: string; readonly disk: string };
  readonly healthPath: string | undefined;
  readonly startupTime: string;
  readonly volumes: readonly z.output<typeof volume>[];
  readonly dependsOn: readonly string[];
  readonly schedule: string | undefined;
}

/** What the components of an app are resolved from: its spec, with every default. */
interface ComponentSource {
  readonly components: readonly ComponentFields[];
  readonly run: Pick<Component, 'command' | 'env' | 'secrets' | 'resources' | 'startupTime' | 'volumes'> & {
    readonly port?: number | undefined;
    readonly healthPath?: string | undefined;
  };
  /** Variables that the author has set without a commit. */
  readonly control?: Pick<Control, 'env' | 'secrets'> | undefined;
}

/**
 * Lists the components of an app, each after those that it depends on. An app that lists none is one web component, as
 * run describes it.
 */
export function listComponents(source: ComponentSource): readonly Component[] {
  const { components: list, run } = source;
  const { port, healthPath: runHealthPath } = run;
  if (list.length > 0) return (sortComponents(list) ?? list).map((each) => resolveComponent(each, source));
  const only = { name: onlyComponent, kind: 'web', dependsOn: [] } as const;
  return [
    { ...run, ...only, port, healthPath: runHealthPath, route: { path: '/', stripPath: false }, schedule: undefined },
  ];
}

function resolveComponent(fields: ComponentFields, { run, control }: ComponentSource): Component {
  const { name, kind, port, secrets = [], resources = {}, volumes = [], dependsOn = [] } = fields;
  const env = omitControlled(fields.env ?? [], control);
  const isShadowed = (item: { readonly name: string }): boolean =>
    [...env, ...secrets].some((own) => own.name === item.name);
  return {
    ...{ name, kind, port, volumes, dependsOn, schedule: fields.schedule, healthPath: fields.healthPath },
    command: fields.command ?? [],
    route: kind === 'web' ? (fields.route ?? { path: '/', stripPath: false }) : undefined,
    env: [...run.env.filter((item) => !isShadowed(item)), ...env],
    secrets: [...run.secrets.filter((item) => !isShadowed(item)), ...secrets],
    resources: { ...run.resources, ...omitUndefined(resources) },
    startupTime: fields.startupTime ?? run.startupTime,
  };
}

/** What the author sets without a commit applies to every component, and is part of run by now. */
function omitControlled(
  env: Component['env'],
  { env: own = [], secrets = [] }: ComponentSource['control'] = {},
): Component['env'] {
  const names = new Set([...own, ...secrets].map(({ name }) => name));
  return env.filter(({ name }) => !names.has(name));
}

/** The component that answers at / of the app. */
export function findMainComponent(list: readonly Component[]): Component {
  const main = list.find(({ route: at }) => at?.path === '/' && at.subdomain === undefined);
  if (main === undefined) throw new Error('no component answers at /');
  return main;
}

/** The components that run in the app's pod, each after those that it depends on. */
export function listRunningComponents(list: readonly Component[]): readonly Component[] {
  return list.filter(isRunning);
}

/** Whether another running component waits for this one, so that it must be ready before that one starts. */
export function isDependedOn({ name }: Component, running: readonly Component[]): boolean {
  return running.some(({ dependsOn }) => dependsOn.includes(name));
}

/** Milliseconds that a component may take to start. */
export function parseComponentStartMs({ startupTime }: Component): number {
  return parseDuration(startupTime);
}

/** Milliseconds that a pod of these components may take to start: those that others wait for start one after another. */
export function computePodStartMs(running: readonly Component[]): number {
  const [first, rest] = [true, false].map((wanted) =>
    running.filter((each) => isDependedOn(each, running) === wanted).map(parseComponentStartMs),
  );
  return (first ?? []).reduce((sum, ms) => sum + ms, 0) + Math.max(0, ...(rest ?? []));
}

/** The volumes of all components, each once. One that several share has the largest size that any of them asks for. */
export function listVolumes(list: readonly Component[]): readonly Component['volumes'][number][] {
  const byName = Map.groupBy(
    list.flatMap(({ volumes }) => volumes),
    ({ name }) => name,
  );
  return [...byName.values()].flatMap((same) =>
    same
      .toSorted((one, other) => (parseQuantityValue(other.size) ?? 0) - (parseQuantityValue(one.size) ?? 0))
      .slice(0, 1),
  );
}
