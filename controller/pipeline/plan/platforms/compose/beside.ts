// Turns the databases and stores of a compose file into backing services, with the logins that the file gives them.
import type { z } from 'zod';
import type { services } from '../../../../../crds/backing-services.ts';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { present } from '../../../../../lib/present.ts';
import { createWarning } from '../declaration.ts';
import { interpolate, type Lookup, readOnlyVariable, splitWords } from './interpolate.ts';
import { type ComposeService, findKnownImage } from './read.ts';

type Service = z.input<typeof services>[number];

export interface BesideResult {
  readonly services: readonly Service[];
  /** Names of hosts in the file that are called otherwise here. */
  readonly hosts: ReadonlyMap<string, string>;
  /** Variables of nobody that stand for a login, by what stands for them here. */
  readonly logins: ReadonlyMap<string, string>;
  readonly findings: readonly Finding[];
}

/** What each image reads of its environment, and what an absent password means to it. */
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

export function toBackingServices(file: string, given: readonly ComposeService[], lookup: Lookup): BesideResult {
  const hosts = new Map<string, string>();
  const logins = new Map<string, string>();
  const made = given.flatMap((each) => {
    const service = toService(each, lookup, logins);
    if (service === undefined) return [];
    for (const alias of [each.name, each.container_name ?? each.name])
      if (alias !== service.name) hosts.set(alias, service.name);
    return [service];
  });
  return { services: made, hosts, logins, findings: given.flatMap((each) => warnAboutScripts(file, each)) };
}

function toService(given: ComposeService, lookup: Lookup, logins: Map<string, string>): Service | undefined {
  const known = findKnownImage(interpolate(given.image ?? '', lookup) ?? given.image ?? '');
  if (known === undefined) return undefined;
  const name = toHostName(given.name);
  const env = readServiceEnvironment(given, known.type, lookup, (variable, field) => {
    logins.set(variable, `\${{services.${name}.${field}}}`);
  });
  return present({
    name,
    ...known,
    env: env.size === 0 ? undefined : [...env].map(([key, value]) => ({ name: key, value })),
  });
}

/** `onNobodys` learns of variables that nobody gives: the platform makes their values. */
function readServiceEnvironment(
  given: ComposeService,
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
  for (const [variable, text] of given.environment ?? [])
    if (pattern.test(variable)) take(variable, text ?? `\${${variable}}`);
  const required = findPassword(given);
  if (required !== undefined) take('REDIS_PASSWORD', required);
  // Without a password in the file, the app gives none either.
  if (open !== undefined && !env.has(open) && !requiresPassword(given, open)) env.set(open, '');
  return env;
}

/** The file sets it, with a value that nobody gives: one is generated. */
function requiresPassword({ environment = [], command }: ComposeService, name: string): boolean {
  return environment.some(([key]) => key === name) || String(command ?? '').includes('--requirepass');
}

function toLoginField(variable: string): 'user' | 'password' | 'database' {
  if (/PASSWORD|KEY/.test(variable) && variable !== 'MINIO_ACCESS_KEY') return 'password';
  return /DB$|DATABASE$/.test(variable) ? 'database' : 'user';
}

/** redis-server --requirepass secret */
function findPassword({ command }: ComposeService): string | undefined {
  const each = typeof command === 'string' ? (splitWords(command) ?? []) : (command ?? []);
  return each.includes('--requirepass') ? each[each.indexOf('--requirepass') + 1] : undefined;
}

/** A host name of at most 30 characters, as Kubernetes writes it. */
function toHostName(name: string): string {
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
