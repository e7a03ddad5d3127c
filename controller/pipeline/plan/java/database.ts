// Finds the servers that the settings of a Spring Boot app expect on the author's machine, and declares services for them.
import { readField, readKeys } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { type Declaration, type DeclaredVariable, parseYaml } from '../platforms/declaration.ts';

type Server = 'postgres' | 'mysql' | 'mongo' | 'redis';

interface Settings {
  /** The first file that was read. */
  readonly file: string;
  /** Values by their dotted names, in lower case and without dashes, as Spring compares them. */
  readonly values: ReadonlyMap<string, string>;
}

interface SpringService {
  readonly type: Server;
  readonly env: readonly DeclaredVariable[];
}

const buildFiles = /^(?:[\w.-]{1,60}\/){0,2}(?:pom\.xml|build\.gradle(?:\.kts)?)$/;
const settingsFiles =
  /^(?:[\w.-]{1,60}\/){0,2}src\/main\/resources\/(?:config\/)?application(?:-([\w-]{1,40}))?\.(?:properties|ya?ml)$/;
const maximumBytes = 128 * 1024;

/**
 * Declares a service for each server that the settings look for on the author's machine. Spring prefers these variables
 * to its files, whatever names of variables the files read.
 */
export function declareSpringServices(tree: Tree): Declaration | undefined {
  const build = readBuild(tree);
  const settings = /org\.springframework\.boot|spring-boot/.test(build) ? readSettings(tree) : undefined;
  if (settings === undefined) return undefined;
  const found = [findJdbc(settings), findMongo(settings, build), findRedis(settings, build)].filter(
    (each) => each !== undefined,
  );
  if (found.length === 0) return undefined;
  return {
    file: settings.file,
    services: found.map(({ type }) => ({ name: toServiceName(type), type })),
    env: found.flatMap(({ env }) => env),
  };
}

const toServiceName = (type: Server): string => (type === 'mongo' || type === 'redis' ? type : 'db');

function readBuild(tree: Tree): string {
  return tree.entries
    .filter(({ kind, path }) => kind === 'file' && buildFiles.test(path))
    .map(({ path }) => (tree.readFile(path, maximumBytes) ?? '').replace(/<!--[\s\S]{0,5000}?-->/g, ''))
    .join('\n');
}

/** Reads the settings without a profile, and above them those of the profile that they activate. */
function readSettings(tree: Tree): Settings | undefined {
  const files = tree.entries.flatMap(({ kind, path }) => {
    const match = kind === 'file' ? settingsFiles.exec(path) : null;
    return match === null ? [] : [{ path, profile: match[1] }];
  });
  const main = files.filter(({ profile }) => profile === undefined);
  const [first] = main;
  if (first === undefined) return undefined;
  const values = new Map(main.flatMap(({ path }) => [...readValues(tree, path)]));
  const active = resolveDefault(values.get('spring.profiles.active') ?? '')
    .split(',')[0]
    ?.trim();
  const chosen = files.filter(({ profile }) => profile !== undefined && profile === active);
  return {
    file: chosen[0]?.path ?? first.path,
    values: new Map([...values, ...chosen.flatMap(({ path }) => [...readValues(tree, path)])]),
  };
}

function readValues(tree: Tree, path: string): Map<string, string> {
  const text = tree.readFile(path, maximumBytes) ?? '';
  return path.endsWith('.properties') ? parseProperties(text) : parseDocuments(text);
}

function parseProperties(text: string): Map<string, string> {
  const pairs = [...text.matchAll(/^[ \t]*([A-Za-z][\w.[\]-]{0,200})[ \t]*[=:][ \t]*(.{0,2000})$/gm)];
  return new Map(pairs.map(([, key = '', value = '']) => [toKey(key), value.trim()]));
}

/** A document that names a profile does not count. */
function parseDocuments(text: string): Map<string, string> {
  const documents = text
    .split(/^---[ \t]*$/m)
    .map((each) => new Map(collectValues(parseYaml(each))))
    .filter((each) => !['spring.profiles', 'spring.config.activate.onprofile'].some((key) => each.has(key)));
  return new Map(documents.flatMap((each) => [...each]));
}

function collectValues(value: unknown, prefix = '', depth = 0): [string, string][] {
  if (typeof value === 'string' || typeof value === 'number') return [[prefix, String(value)]];
  if (depth > 12) return [];
  return readKeys(value).flatMap((key) =>
    collectValues(readField(value, key), prefix === '' ? toKey(key) : `${prefix}.${toKey(key)}`, depth + 1),
  );
}

const toKey = (key: string): string => key.toLowerCase().replace(/[-_]/g, '');

/** Replaces `${NAME:default}` by its default, and `${NAME}` by nothing. */
function resolveDefault(value: string): string {
  let text = value;
  for (let level = 0; level < 3; level += 1)
    text = text.replace(/\$\{[\w.-]{1,80}(?::([^${}]{0,500}))?\}/g, (_whole, fallback?: string) => fallback ?? '');
  return text;
}

/** The author's machine, a container next to it, or a variable without a default. */
const ownHost = /^(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[?::1\]?|host\.docker\.internal|[a-z][\w-]{0,40}|)$/i;
const jdbcUrl =
  /^jdbc:(mysql|mariadb|postgresql):\/\/([^/:?]{0,200})(?::\d{0,5})?(?:\/([^?]{0,200}))?(?:\?(.{0,1000}))?$/i;
/** The services have no TLS; MySQL sends its key for the password instead. */
const tlsOption = /^(?:ssl\w{0,20}|usessl|requiressl|verifyservercertificate|allowpublickeyretrieval)=/i;
const plainOption = /^[\w.-]{1,60}=[\w.:/%+,-]{0,200}$/;

function findJdbc({ values }: Settings): SpringService | undefined {
  const [, scheme = '', host, , options = ''] =
    jdbcUrl.exec(resolveDefault(values.get('spring.datasource.url') ?? '')) ?? [];
  if (host === undefined || !ownHost.test(host)) return undefined;
  const type = scheme.toLowerCase() === 'postgresql' ? 'postgres' : 'mysql';
  const kept = options.split('&').filter((each) => plainOption.test(each) && !tlsOption.test(each));
  const all = [...kept, ...(type === 'mysql' ? ['useSSL=false', 'allowPublicKeyRetrieval=true'] : [])];
  const query = all.length === 0 ? '' : `?${all.join('&')}`;
  const address = `${scheme.toLowerCase()}://\${{services.db.host}}:\${{services.db.port}}/\${{services.db.database}}`;
  return {
    type,
    env: [
      { name: 'SPRING_DATASOURCE_URL', value: `jdbc:${address}${query}` },
      { name: 'SPRING_DATASOURCE_USERNAME', value: '${{services.db.user}}' },
      { name: 'SPRING_DATASOURCE_PASSWORD', value: '${{services.db.password}}' },
    ],
  };
}

function findMongo({ values }: Settings, build: string): SpringService | undefined {
  if (!/spring-boot-starter-data-mongodb\b/.test(build) || /flapdoodle/.test(build)) return undefined;
  const url = ['spring.data.mongodb.uri', 'spring.mongodb.uri'].map((key) => values.get(key)).find(Boolean);
  const host =
    url === undefined
      ? (values.get('spring.data.mongodb.host') ?? '')
      : /^mongodb:\/\/(?:[^@/]{0,200}@)?([^/:?,]{0,200})/.exec(resolveDefault(url))?.[1];
  if (host === undefined || !ownHost.test(resolveDefault(host))) return undefined;
  // Spring Boot 4 has another name for it.
  const names = ['SPRING_DATA_MONGODB_URI', 'SPRING_MONGODB_URI'];
  return { type: 'mongo', env: names.map((name) => ({ name, value: '${{services.mongo.url}}' })) };
}

function findRedis({ values }: Settings, build: string): SpringService | undefined {
  if (!/spring-boot-starter-data-redis\b/.test(build)) return undefined;
  const keys = ['spring.data.redis', 'spring.redis'];
  const url = keys.map((key) => values.get(`${key}.url`)).find(Boolean);
  const host =
    url === undefined
      ? (keys.map((key) => values.get(`${key}.host`)).find(Boolean) ?? '')
      : /^rediss?:\/\/(?:[^@/]{0,200}@)?([^/:?]{0,200})/.exec(resolveDefault(url))?.[1];
  if (host === undefined || !ownHost.test(resolveDefault(host))) return undefined;
  // The name of Spring Boot 2, and that of later ones.
  const names = ['SPRING_REDIS_URL', 'SPRING_DATA_REDIS_URL'];
  return { type: 'redis', env: names.map((name) => ({ name, value: '${{services.redis.url}}' })) };
}
