// Reads the files of other hosting platforms: Procfile, Railway, Render, Fly.io, Hugging Face, Heroku, Vercel and Netlify.
import { z } from 'zod';
import { askedSecret } from '../../../../crds/values.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { omitUndefined } from '../../../../lib/values.ts';
import { parseJson, parseToml, readField, readKeys, readText, readTexts } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import {
  createWarning,
  type Declaration,
  type DeclaredVariable,
  parseYaml,
  type DeclaredBuild,
  type DeclaredVolume,
} from './declaration.ts';

const processLine = /^([A-Za-z0-9_-]{1,50})[ \t]{0,9}:[ \t]{0,9}(\S[^\n]{0,2000})$/gm;

/** The commands of a Procfile by the names of their processes. */
export function readProcesses(tree: Tree): ReadonlyMap<string, string> {
  const text = (tree.readFile('Procfile', 64 * 1024) ?? '').replaceAll('\r', '');
  return new Map([...text.matchAll(processLine)].map(([, name = '', command = '']) => [name, command.trim()]));
}

export function readProcfile(tree: Tree): Declaration | undefined {
  const file = 'Procfile';
  const processes = readProcesses(tree);
  const start = processes.get('web');
  if (start === undefined) return undefined;
  const release = processes.get('release');
  const otherProcesses = [...processes.keys()].filter((name) => name !== 'web' && name !== 'release');
  return {
    file,
    start,
    ...(release === undefined ? {} : { release }),
    findings:
      otherProcesses.length === 0
        ? []
        : [
            createWarning(
              'procfile/not-run',
              file,
              `Only the process web is run; not ${otherProcesses.slice(0, 6).join(', ')}.`,
              'If the app needs another process, start it in the command of web, like "worker & exec server".',
            ),
          ],
  };
}

export function readRailway(tree: Tree): Declaration | undefined {
  const file = ['railway.json', 'railway.toml'].find((name) => tree.has(name));
  if (file === undefined) return undefined;
  const content = tree.readFile(file);
  const parsed = file.endsWith('.json') ? parseJson(content) : parseToml(content);
  const findText = (section: string, pattern: RegExp, ...names: readonly string[]): string | undefined =>
    names
      .map((name) => readText(parsed, section, name)?.trim())
      .find((value) => value !== undefined && pattern.test(value));
  const dockerfile = findText('build', /./, 'dockerfilePath')?.replace(/^(?:\.?\/)+/, '');
  return omitUndefined({
    file,
    start: findText('deploy', /./, 'startCommand'),
    release: findText('deploy', /./, 'preDeployCommand', 'releaseCommand'),
    healthPath: findText('deploy', /^\//, 'healthcheckPath'),
    build: dockerfile !== undefined && tree.has(dockerfile) ? { path: '.', dockerfile } : undefined,
  });
}

/** Reads fly.toml: process, port, variables, disks, Dockerfile and release command. */
export function readFly(tree: Tree): Declaration | undefined {
  const file = 'fly.toml';
  const parsed = parseToml(tree.readFile(file));
  if (parsed === undefined) return undefined;
  return omitUndefined({
    file,
    start: readText(parsed, 'processes', 'app') ?? readText(parsed, 'processes', 'web'),
    release: readText(parsed, 'deploy', 'release_command'),
    port: readFlyPort(parsed),
    env: readKeys(parsed, 'env').flatMap((name): DeclaredVariable[] => {
      const value = readField(parsed, 'env', name);
      return ['string', 'number', 'boolean'].includes(typeof value) ? [{ name, value: String(value) }] : [];
    }),
    volumes: readFlyDisks(parsed),
    build: readFlyBuild(parsed, tree),
  });
}

function readFlyPort(parsed: unknown): number | undefined {
  const port =
    readField(parsed, 'http_service', 'internal_port') ?? readField(readFirst(parsed, 'services'), 'internal_port');
  return typeof port === 'number' && Number.isInteger(port) && port > 0 && port <= 65_535 ? port : undefined;
}

function readFlyBuild(parsed: unknown, tree: Tree): DeclaredBuild | undefined {
  const dockerfile = readText(parsed, 'build', 'dockerfile')?.replace(/^(?:\.?\/)+/, '');
  if (dockerfile === undefined || !tree.has(dockerfile)) return undefined;
  return omitUndefined({ path: '.', dockerfile, target: readText(parsed, 'build', 'build-target') });
}

function readFlyDisks(parsed: unknown): DeclaredVolume[] {
  const mounts = readField(parsed, 'mounts') ?? readField(parsed, 'mount');
  const each: unknown[] = Array.isArray(mounts) ? mounts : [mounts];
  return each.flatMap((mount) => {
    const path = readText(mount, 'destination');
    return path === undefined ? [] : [{ name: 'data', path }];
  });
}

function readFirst(parsed: unknown, name: string): unknown {
  const value = readField(parsed, name);
  return Array.isArray(value) ? (value[0] as unknown) : value;
}

export function readHuggingFace(tree: Tree): Declaration | undefined {
  const file = 'README.md';
  const matter = /^\ufeff?---\r?\n([\s\S]{1,4000}?)\r?\n---/.exec(tree.readFile(file, 8_000) ?? '')?.[1];
  const parsed = parseYaml(matter);
  switch (readText(parsed, 'sdk')) {
    case 'docker':
      return { file, port: readSpacePort(parsed) ?? 7860 };
    case 'static':
      return { file, site: { folder: '.', fallback: false } };
    case 'gradio':
      return toSpace(tree, file, 'gradio', parsed);
    case 'streamlit':
      return toSpace(tree, file, 'streamlit', parsed);
    default:
      return undefined;
  }
}

function readSpacePort(parsed: unknown): number | undefined {
  const port = readField(parsed, 'app_port');
  return typeof port === 'number' && Number.isInteger(port) && port > 0 && port <= 65_535 ? port : undefined;
}

function toSpace(tree: Tree, file: string, sdk: 'gradio' | 'streamlit', parsed: unknown): Declaration | undefined {
  const script = readText(parsed, 'app_file') ?? 'app.py';
  const version = /^[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}$/.exec(String(readField(parsed, 'sdk_version')))?.[0];
  return tree.has(script) && script.endsWith('.py')
    ? { file, space: omitUndefined({ sdk, file: script, version }) }
    : undefined;
}

const addons: readonly (readonly [RegExp, { name: string; type: 'postgres' | 'redis' | 'mysql' | 'mongo' }])[] = [
  [/^heroku-postgresql\b/, { name: 'db', type: 'postgres' }],
  [/^(?:heroku-redis|heroku-key-value-store|rediscloud|redistogo)\b/, { name: 'redis', type: 'redis' }],
  [/^(?:jawsdb|cleardb)\b/, { name: 'mysql', type: 'mysql' }],
  [/^(?:mongolab|ormongo)\b/, { name: 'mongo', type: 'mongo' }],
];

/** Other generated values are for people to read, such as a sign-up code. */
const secretName = /SECRET|KEY|TOKEN|SALT|PEPPER/;

export function readAppJson(tree: Tree): Declaration | undefined {
  const file = 'app.json';
  const parsed = parseJson(tree.readFile(file));
  // Expo uses a file with this name too, with a single `expo` field.
  if (parsed === undefined || readField(parsed, 'expo') !== undefined) return undefined;
  const env = readKeys(parsed, 'env').flatMap((name): DeclaredVariable[] => {
    if (readText(parsed, 'env', name, 'generator') === 'secret' && secretName.test(name))
      return [{ name, value: askedSecret }];
    const value = readText(parsed, 'env', name) ?? readText(parsed, 'env', name, 'value');
    return value === undefined || value === '' ? [] : [{ name, value }];
  });
  const addonEntries = readField(parsed, 'addons');
  const plans = [
    ...readTexts(parsed, 'addons'),
    ...(Array.isArray(addonEntries) ? addonEntries.flatMap((each) => readText(each, 'plan') ?? []) : []),
  ];
  const services = addons.flatMap(([pattern, service]) => (plans.some((plan) => pattern.test(plan)) ? [service] : []));
  if (env.length === 0 && services.length === 0) return undefined;
  return { file, env, ...(services.length === 0 ? {} : { services }) };
}

const warnAboutFunctions = (file: string, folder: string): Finding[] => [
  createWarning(
    'platform/functions',
    file,
    `The functions in ${folder} are not run here: an app is one server.`,
    'Serve them from a server of the app, like those of Next.js, Express or FastAPI.',
  ),
];

/** Reads vercel.json. */
export function readVercel(tree: Tree): Declaration | undefined {
  const file = 'vercel.json';
  const parsed = parseJson(tree.readFile(file));
  const folder = toSiteFolder(readText(parsed, 'outputDirectory'));
  const hasFunctions = tree.entries.some(
    ({ kind, path }) => kind === 'file' && /^api\/[^/]{1,100}\.(?:js|ts|py|go)$/.test(path),
  );
  if (parsed === undefined || (folder === undefined && !hasFunctions)) return undefined;
  const rewrites = readList(parsed, 'rewrites').some(
    (each) =>
      /^\/\(?\.\*|^\/\(\.\*\)|^\/:path\*/.test(readText(each, 'source') ?? '') &&
      /^\/(?:index\.html)?$/.test(readText(each, 'destination') ?? ''),
  );
  return {
    file,
    // The output of functions cannot be served as files.
    ...(folder === undefined || hasFunctions ? {} : { site: { folder, fallback: rewrites } }),
    ...(hasFunctions && !tree.has('package.json') ? { findings: warnAboutFunctions(file, 'api') } : {}),
  };
}

/** Reads netlify.toml. */
export function readNetlify(tree: Tree): Declaration | undefined {
  const file = 'netlify.toml';
  const parsed = parseToml(tree.readFile(file));
  const folder = toSiteFolder(readText(parsed, 'build', 'publish'));
  if (parsed === undefined || folder === undefined || readText(parsed, 'build', 'base') !== undefined) return undefined;
  const functions = readText(parsed, 'build', 'functions') ?? readText(parsed, 'functions', 'directory');
  const plugin = readList(parsed, 'plugins').some((each) =>
    /nextjs|nuxt|remix|gatsby/.test(readText(each, 'package') ?? ''),
  );
  if (plugin || folder === '.next') return undefined;
  const fallback = readList(parsed, 'redirects').some(
    (each) =>
      readText(each, 'from') === '/*' && readText(each, 'to') === '/index.html' && readField(each, 'status') === 200,
  );
  return {
    file,
    site: { folder, fallback },
    ...(functions === undefined ? {} : { findings: warnAboutFunctions(file, functions) }),
  };
}

/** Returns a folder inside the repository. */
function toSiteFolder(path: string | undefined): string | undefined {
  const folder = path?.replace(/^(?:\.?\/)+/, '').replace(/\/+$/, '');
  return folder === undefined || folder.includes('..') || folder.length > 150
    ? undefined
    : folder === ''
      ? '.'
      : folder;
}

function readList(parsed: unknown, name: string): unknown[] {
  const found = readField(parsed, name);
  return Array.isArray(found) ? found.slice(0, 100) : [];
}

// render.yaml: the first web service, its databases, and the variables that refer to them.

const variable = z.looseObject({
  key: z.string(),
  value: z.union([z.string(), z.number(), z.boolean()]).transform(String).optional(),
  generateValue: z.boolean().optional(),
  fromDatabase: z.looseObject({ property: z.string() }).optional(),
  fromService: z.looseObject({ type: z.string().optional(), property: z.string().optional() }).optional(),
});
const service = z.looseObject({
  type: z.string(),
  startCommand: z.string().optional().catch(undefined),
  preDeployCommand: z.string().optional().catch(undefined),
  staticPublishPath: z.string().optional().catch(undefined),
  healthCheckPath: z.string().optional().catch(undefined),
  routes: z
    .array(z.looseObject({ type: z.string().optional(), source: z.string().optional() }))
    .optional()
    .catch(undefined),
  disk: z.looseObject({ mountPath: z.string() }).optional().catch(undefined),
  envVars: z.array(z.unknown()).max(100).optional().catch(undefined),
});
const blueprint = z.looseObject({
  services: z.array(z.unknown()).max(50),
  databases: z.array(z.unknown()).max(20).optional().catch(undefined),
});

/** Database properties, as placeholders name them. */
const properties: Readonly<Record<string, string>> = {
  connectionString: 'url',
  connectionPoolString: 'url',
  host: 'host',
  port: 'port',
  user: 'user',
  password: 'password',
  database: 'database',
};

export function readRender(tree: Tree): Declaration | undefined {
  const file = ['render.yaml', 'render.yml'].find((name) => tree.has(name));
  const parsed = blueprint.safeParse(parseYaml(file === undefined ? undefined : tree.readFile(file)));
  if (file === undefined || !parsed.success) return undefined;
  const services = parsed.data.services.flatMap((each) => service.safeParse(each).data ?? []);
  const web = services.find(({ type }) => type === 'web') ?? services.find(({ type }) => type === 'static_site');
  if (web === undefined) return undefined;
  return {
    file,
    ...toStart(web),
    env: (web.envVars ?? []).flatMap((each) => toVariables(variable.safeParse(each).data)),
    volumes: web.disk === undefined ? [] : [{ name: 'data', path: web.disk.mountPath }],
    services: toServices(parsed.data.databases ?? [], services),
  };
}

function toServices(
  databases: readonly unknown[],
  services: readonly { readonly type: string }[],
): NonNullable<Declaration['services']> {
  return [
    ...(databases.length > 0 ? [{ name: 'db', type: 'postgres' } as const] : []),
    ...(services.some(({ type }) => ofRedis.test(type)) ? [{ name: 'redis', type: 'redis' } as const] : []),
  ];
}

const ofRedis = /^(?:redis|keyvalue)$/;

function toStart(web: z.infer<typeof service>): Partial<Declaration> {
  const { startCommand: start, preDeployCommand: release, staticPublishPath: folder, healthCheckPath } = web;
  const fallback = (web.routes ?? []).some((route) => route.type === 'rewrite' && route.source === '/*');
  return omitUndefined({
    start,
    release,
    healthPath: healthCheckPath?.startsWith('/') === true ? healthCheckPath : undefined,
    site: folder === undefined ? undefined : { folder, fallback },
  });
}

function toVariables(entries: z.infer<typeof variable> | undefined): DeclaredVariable[] {
  if (entries === undefined) return [];
  const { key: name, value, generateValue } = entries;
  if (generateValue === true) return [{ name, value: askedSecret }];
  const resolvedValue =
    value ?? toPlaceholder('db', entries.fromDatabase) ?? toPlaceholder('redis', selectRedis(entries.fromService));
  return resolvedValue === undefined || resolvedValue === '' ? [] : [{ name, value: resolvedValue }];
}

type Source = { readonly type?: string | undefined; readonly property?: string | undefined } | undefined;

function selectRedis(source: Source): Source {
  return ofRedis.test(source?.type ?? '') ? source : undefined;
}

function toPlaceholder(service: string, source: Source): string | undefined {
  const part = properties[source?.property ?? ''];
  return part === undefined ? undefined : `\${{services.${service}.${part}}}`;
}
