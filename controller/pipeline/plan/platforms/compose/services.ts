// Chooses the service of a compose file that is the app, and converts its databases and stores to backing services.
import type { z } from 'zod';
import type { services } from '../../../../../crds/backing-services.ts';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { omitUndefined } from '../../../../../lib/values.ts';
import { createWarning } from '../declaration.ts';
import {
  interpolate,
  type Lookup,
  readOnlyVariable,
  splitWords,
  type ComposeFile,
  type ComposeService,
  findKnownImage,
  isDevelopmentService,
  isLanguage,
  isProxy,
} from './read.ts';

interface ComposeChoice {
  /** Undefined if the file contains only backing services or does not show which service is the app. */
  readonly app?: ComposeService;
  /** Services with a known image: databases and stores. */
  readonly knownServices: readonly ComposeService[];
  readonly findings: readonly Finding[];
}

export interface ChoiceOptions {
  /** Folder that the author chose, if any. */
  readonly path?: string | undefined;
  /** The author chose one process, or listed the components. */
  readonly isOneProcess?: boolean | undefined;
  /** Name of the repository. */
  readonly repository: string;
  /** Finds a Dockerfile that builds all of these folders into one image. */
  readonly findWhole?: ((folders: readonly string[]) => string | undefined) | undefined;
}

export function chooseServices({ file, services }: ComposeFile, options: ChoiceOptions): ComposeChoice {
  const stores = services.filter(
    ({ build, image }) => build === undefined && findKnownImage(image ?? '') !== undefined,
  );
  const knownServices = stores.filter((each) => !isForTests(each, services));
  const appServices = services.filter(
    ({ build, image }) => build !== undefined || findKnownImage(image ?? '') === undefined,
  );
  const built = appServices.filter(({ build }) => build !== undefined);
  const main = appServices.filter(
    (each) => !isProxy(each) && !isDevelopmentService(each) && !isLanguage(each.image ?? ''),
  );
  const candidates =
    built.length > 0 ? main.filter(({ build }) => build !== undefined) : selectPublished(main, options);
  const chosen = chooseOne(candidates, options) ?? (candidates.length === 0 ? chooseOne(built, options) : undefined);
  if (chosen === undefined)
    return {
      knownServices,
      findings:
        candidates.length > 1 && options.path === undefined
          ? [rejectSeveral(file, candidates, built.length > 0, options)]
          : [],
    };
  return { app: chosen, knownServices, findings: reportIgnored(file, appServices, chosen) };
}

/** Returns whether only tests use it: it has their name, next to another of its kind, and nothing that is run waits for it. */
function isForTests(store: ComposeService, services: readonly ComposeService[]): boolean {
  const { name, image = '' } = store;
  const type = findKnownImage(image)?.type;
  const isOther = (each: ComposeService): boolean => each !== store && findKnownImage(each.image ?? '')?.type === type;
  const isUsed = services.some(
    (each) =>
      !isDevelopmentService(each) &&
      ((each.depends_on ?? []).some((of) => of.name === name) ||
        (each.environment ?? []).some(([, value]) => value === name || value?.includes(`@${name}:`) === true)),
  );
  return ofTests.test(name) && services.some((each) => isOther(each) && !ofTests.test(each.name)) && !isUsed;
}

const ofTests = /(?:^|[-_])tests?(?:$|[-_0-9])/i;

/** Among services with only a published image, selects those named like the repository, or the only one. */
function selectPublished(main: readonly ComposeService[], { repository }: ChoiceOptions): readonly ComposeService[] {
  const ownServices = main.filter(({ image = '' }) => image.toLowerCase().includes(`/${repository.toLowerCase()}`));
  return ownServices.length > 0 ? ownServices : main.length === 1 ? main : [];
}

function chooseOne(candidates: readonly ComposeService[], { path }: ChoiceOptions): ComposeService | undefined {
  if (path !== undefined)
    return findReachable(candidates.filter(({ build }) => build === undefined || toFolder(build.context) === path));
  if (candidates.length === 1) return candidates[0];
  // The Dockerfile at the root builds the repository's main image; images built in subfolders are parts of it, or
  // tools.
  const top = candidates.filter(({ build }) => build !== undefined && toFolder(build.context) === '.');
  if (top.length === 1 && isUsual(top[0]?.build?.dockerfile)) return top[0];
  const open = candidates.filter(({ ports = [] }) => ports.length > 0);
  // One published service whose image all others share: the others are its jobs and workers, which the findings name.
  return open.length === 1 && isOneImage(candidates) && candidates.every((each) => each === open[0] || isJob(each))
    ? open[0]
    : undefined;
}

function isUsual(dockerfile: string | undefined): boolean {
  return dockerfile === undefined || /^(?:\.\/)?Dockerfile$/.test(dockerfile);
}

function findReachable(services: readonly ComposeService[]): ComposeService | undefined {
  return services.find(({ ports = [] }) => ports.length > 0) ?? services[0];
}

function isOneImage(services: readonly ComposeService[]): boolean {
  return (
    new Set(services.map(({ build, image }) => JSON.stringify([build?.context, build?.dockerfile, build ? '' : image])))
      .size === 1
  );
}

/** Returns whether it runs once and exits, such as migrations and seeds. */
export function isJob({ name, restart }: ComposeService): boolean {
  return restart === 'no' || /migrat|^init|-init$|setup|seed/i.test(name);
}

/** Normalizes "./web/" to "web". */
export function toFolder(context: string): string {
  const folder = context.replace(/^(?:\.\/)+/, '').replace(/\/+$/, '');
  return folder === '' ? '.' : folder;
}

function rejectSeveral(
  file: string,
  candidates: readonly ComposeService[],
  isBuilt: boolean,
  { findWhole }: ChoiceOptions,
): Finding {
  const whole = findWhole?.(candidates.flatMap(({ build }) => (build === undefined ? [] : [toFolder(build.context)])));
  const suggestion =
    whole === undefined
      ? 'Choose'
      : `${whole} builds them into one image: set build.dockerfile: ${whole} in moorage.yaml. Or choose`;
  const each = candidates.slice(0, 6).map(({ name, build, image }) => {
    const of = build === undefined ? (image ?? '') : `built in ${toFolder(build.context)}`;
    return `${name} (${of})`.slice(0, 100);
  });
  const more = candidates.length > 6 ? `, and ${candidates.length - 6} more` : '';
  return {
    rule: 'compose/several-services',
    severity: isBuilt ? 'error' : 'warning',
    file,
    message: `This file starts ${candidates.length} services of the app itself: ${each.join(', ')}${more}. One app here is one image with one process that is reached from outside.`,
    fix: `${suggestion} one in moorage.yaml: set source.path to its folder (. for the top), and build.dockerfile if it has another name; or make one image that starts them all. Another one can be submitted as a separate app, and both can know each other by URL.`,
  };
}

function reportIgnored(file: string, others: readonly ComposeService[], app: ComposeService): Finding[] {
  const ignored = others.filter((each) => each !== app && !isDevelopmentService(each)).map(({ name }) => name);
  if (ignored.length === 0) return [];
  const nameList = ignored.slice(0, 8).join(', ');
  return [
    createWarning(
      'compose/not-run',
      file,
      `The service ${app.name} is the app. Not run here: ${nameList}${ignored.length > 8 ? ', …' : ''}.`,
      'A proxy is not needed: the platform has one. If the app needs another service, reach it by its public URL, or start it in the same image.',
    ),
  ];
}

type Service = z.input<typeof services>[number];

export interface BesideResult {
  readonly services: readonly Service[];
  /** Host names in the file, by the names that they have here. */
  readonly hosts: ReadonlyMap<string, string>;
  /** Login variables without a value, with the values that the platform generates. */
  readonly logins: ReadonlyMap<string, string>;
  /** Ports other than the usual one, by the names that the services have here. */
  readonly ports: ReadonlyMap<string, { readonly from: number; readonly to: number }>;
  readonly findings: readonly Finding[];
}

/** Variables that each image reads, and the one whose empty value turns off authentication. */
const read: Readonly<Record<Service['type'], { readonly pattern: RegExp; readonly open?: string }>> = {
  postgres: { pattern: /^POSTGRES_(?:USER|PASSWORD|DB|HOST_AUTH_METHOD|INITDB_ARGS)$/ },
  redis: { pattern: /^REDIS_PASSWORD$/, open: 'REDIS_PASSWORD' },
  mongo: { pattern: /^MONGO_INITDB_(?:ROOT_USERNAME|ROOT_PASSWORD|DATABASE)$/, open: 'MONGO_INITDB_ROOT_PASSWORD' },
  mysql: { pattern: /^(?:MYSQL|MARIADB)_(?:USER|PASSWORD|DATABASE|ROOT_PASSWORD)$/ },
  qdrant: { pattern: /^QDRANT__SERVICE__API_KEY$/, open: 'QDRANT__SERVICE__API_KEY' },
  chroma: { pattern: /^(?:CHROMA|ALLOW_RESET)[A-Z_]{0,40}$/ },
  minio: { pattern: /^MINIO_(?:ROOT_USER|ROOT_PASSWORD|ACCESS_KEY|SECRET_KEY)$/ },
  meilisearch: { pattern: /^MEILI_(?:MASTER_KEY|ENV)$/, open: 'MEILI_MASTER_KEY' },
};

export function toBackingServices(
  file: string,
  composeServices: readonly ComposeService[],
  lookup: Lookup,
): BesideResult {
  const hosts = new Map<string, string>();
  const logins = new Map<string, string>();
  const backingServices = composeServices.flatMap((each) => {
    const service = toService(each, lookup, logins);
    if (service === undefined) return [];
    for (const alias of [each.name, each.container_name ?? each.name])
      if (alias !== service.name) hosts.set(alias, service.name);
    return [service];
  });
  return {
    services: backingServices,
    hosts,
    logins,
    ports: new Map(composeServices.flatMap((each) => findOwnPort(each))),
    findings: composeServices.flatMap((each) => warnAboutScripts(file, each)),
  };
}

const usualPorts: Readonly<Record<Service['type'], number>> = {
  postgres: 5432,
  redis: 6379,
  mongo: 27_017,
  mysql: 3306,
  qdrant: 6333,
  chroma: 8000,
  minio: 9000,
  meilisearch: 7700,
};

/** The port that the file gives to a database. */
function findOwnPort(service: ComposeService): [string, { from: number; to: number }][] {
  const known = findKnownImage(service.image ?? '');
  const text =
    (service.environment ?? []).find(([name]) => /^(?:MYSQL_TCP_PORT|PGPORT)$/.test(name))?.[1] ??
    /(?:--port|-p)[ =](\d{2,5})\b/.exec([service.command ?? ''].flat().join(' '))?.[1];
  const from = Number(text ?? 0);
  if (known === undefined || !(from > 0) || from === usualPorts[known.type]) return [];
  return [[toHostName(service.name), { from, to: usualPorts[known.type] }]];
}

function toService(composeService: ComposeService, lookup: Lookup, logins: Map<string, string>): Service | undefined {
  const known = findKnownImage(interpolate(composeService.image ?? '', lookup) ?? composeService.image ?? '');
  if (known === undefined) return undefined;
  const name = toHostName(composeService.name);
  const env = readServiceEnvironment(composeService, known.type, lookup, (variable, field) => {
    logins.set(variable, `\${{services.${name}.${field}}}`);
  });
  return omitUndefined({
    name,
    ...known,
    env: env.size === 0 ? undefined : [...env].map(([key, value]) => ({ name: key, value })),
  });
}

/** Calls `onNobodys` for variables that have no value anywhere: the platform generates theirs. */
function readServiceEnvironment(
  composeService: ComposeService,
  type: Service['type'],
  lookup: Lookup,
  onNobodys: (variable: string, field: string) => void,
): Map<string, string> {
  const env = new Map<string, string>();
  const take = (variable: string, text: string): void => {
    const value = interpolate(text, lookup);
    if (value !== undefined) env.set(variable, value);
    const nobodys = value === undefined ? readOnlyVariable(text) : undefined;
    if (nobodys !== undefined) onNobodys(nobodys, toLoginField(variable));
  };
  const { pattern, open } = read[type];
  for (const [variable, text] of composeService.environment ?? [])
    if (pattern.test(variable)) take(variable, text ?? `\${${variable}}`);
  const required = findPassword(composeService);
  if (required !== undefined) take('REDIS_PASSWORD', required);
  // Without a password in the file, the app sends none either.
  if (open !== undefined && !env.has(open) && !hasPasswordSetting(composeService, open)) env.set(open, '');
  return env;
}

/** Returns whether the file sets the variable without a value; the platform then generates one. */
function hasPasswordSetting({ environment = [], command }: ComposeService, name: string): boolean {
  return environment.some(([key]) => key === name) || String(command ?? '').includes('--requirepass');
}

function toLoginField(variable: string): 'user' | 'password' | 'database' {
  if (/PASSWORD|KEY/.test(variable) && variable !== 'MINIO_ACCESS_KEY') return 'password';
  return /DB$|DATABASE$/.test(variable) ? 'database' : 'user';
}

/** Finds the password in `redis-server --requirepass secret`. */
function findPassword({ command }: ComposeService): string | undefined {
  const each = typeof command === 'string' ? (splitWords(command) ?? []) : (command ?? []);
  return each.includes('--requirepass') ? each[each.indexOf('--requirepass') + 1] : undefined;
}

/** Converts a name to a host name of at most 30 characters that Kubernetes accepts. */
export function toHostName(name: string): string {
  const label = name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 30)
    .replace(/-+$/, '');
  return label === '' || label === 'localhost' ? 'service' : label;
}

function warnAboutScripts(file: string, { name, volumes = [] }: ComposeService): Finding[] {
  if (!volumes.some(({ target }) => target.includes('docker-entrypoint-initdb.d'))) return [];
  return [
    createWarning(
      'compose/init-scripts',
      file,
      `The service ${name} runs scripts of the repository when its database is made, which is not done here.`,
      'Have the app make its tables when it starts.',
    ),
  ];
}
