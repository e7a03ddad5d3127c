// Reads an untrusted compose file into a normalized form, classifies the images of its services, and expands variables and splits
// commands as Docker Compose does.
import { posix } from 'node:path';
import { z } from 'zod';
import type { ServiceType } from '../../../../../crds/backing-services.ts';
import { baseImages } from '../../../../../crds/languages.ts';
import type { Tree } from '../../../tree.ts';
import { parseYaml } from '../declaration.ts';

const scalar = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const toOptional = <Schema extends z.ZodType>(schema: Schema) => schema.optional().catch(undefined);
const list = z.union([scalar.transform((each) => [each]), z.array(scalar).max(200)]);
const variables = z.union([
  z.record(z.string(), z.union([scalar, z.null()])).transform((map) => Object.entries(map)),
  z.array(scalar).transform((lines) =>
    lines.map((line): [string, string | null] => {
      const at = line.indexOf('=');
      return at < 0 ? [line, null] : [line.slice(0, at), line.slice(at + 1)];
    }),
  ),
]);
const port = z.union([
  scalar,
  z
    .looseObject({ target: scalar, published: scalar.optional() })
    .transform(({ target, published }) => (published === undefined ? target : `${published}:${target}`)),
]);
/** The parts of SOURCE:TARGET:MODE. A colon in ${NAME:-default} separates nothing. */
const mountPart = /(?:\$\{[^}]{0,200}\}|[^:])+/g;
const mount = z.union([
  z.string().transform((text) => {
    const [source = '', target, mode = ''] = text.slice(0, 1_000).match(mountPart) ?? [];
    return target === undefined
      ? { source: '', target: source, isReadOnly: false }
      : { source, target, isReadOnly: mode.split(',').includes('ro') };
  }),
  z
    .looseObject({ source: z.string().default(''), target: z.string(), read_only: z.boolean().default(false) })
    .transform(({ source, target, read_only }) => ({ source, target, isReadOnly: read_only })),
]);
const pathItem = z.union([z.string(), z.looseObject({ path: z.string() }).transform(({ path }) => path)]);

const dependencies = z.union([
  z.array(z.string()).transform((names) => names.map((name) => ({ name, condition: 'service_started' }))),
  z
    .record(z.string(), z.looseObject({ condition: z.string().default('service_started') }).nullable())
    .transform((map) =>
      Object.entries(map).map(([name, each]) => ({ name, condition: each?.condition ?? 'service_started' })),
    ),
]);

const service = z.looseObject({
  image: toOptional(z.string().max(500)),
  build: toOptional(
    z.union([
      z.string().transform((context) => ({ context, dockerfile: undefined, target: undefined, args: undefined })),
      z.looseObject({
        context: z.string().default('.'),
        dockerfile: toOptional(z.string()),
        target: toOptional(z.string()),
        args: toOptional(variables),
      }),
    ]),
  ),
  container_name: toOptional(z.string()),
  ports: toOptional(z.array(port).max(100)),
  expose: toOptional(z.array(scalar).max(100)),
  command: toOptional(z.union([z.string(), z.array(scalar).max(64)])),
  entrypoint: toOptional(z.union([z.string(), z.array(scalar).max(64)])),
  environment: toOptional(variables),
  env_file: toOptional(z.union([pathItem.transform((each) => [each]), z.array(pathItem).max(20)])),
  volumes: toOptional(z.array(mount.catch({ source: '', target: '', isReadOnly: false })).max(100)),
  profiles: toOptional(list),
  restart: toOptional(scalar),
  depends_on: toOptional(dependencies),
  healthcheck: toOptional(z.looseObject({ test: toOptional(list), disable: toOptional(z.boolean()) })),
  hostname: toOptional(z.string()),
  links: toOptional(z.array(z.string()).max(50)),
  networks: toOptional(z.record(z.string(), z.unknown())),
  labels: toOptional(variables),
  network_mode: toOptional(z.string()),
  privileged: toOptional(z.boolean()),
});
export type ComposeService = z.infer<typeof service> & { readonly name: string };

export interface ComposeFile {
  readonly file: string;
  /** Folder of the file, which has its .env. The paths of the services start at the root of the repository. */
  readonly folder: string;
  readonly services: readonly ComposeService[];
  /** Services of profiles that nothing turns on. */
  readonly inactive: readonly string[];
}

/** In the order in which Docker Compose looks for them. */
const names = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'];

/** Reads the compose file at the repository's root, without services that are started on demand only. */
export function readCompose(tree: Tree): ComposeFile | undefined {
  return readFolderCompose(tree, '.');
}

/** Folders with compose files for other purposes than to start the app. */
const asideFolder =
  /^(?:\..*|.*(?:examples?|docs?|tests?|e2e|samples?|templates?|scripts?|bench\w*|monitoring|observability|dev).*)$/i;

/**
 * Reads the only compose file of a folder below the root that builds several images, such as docker/compose.yaml;
 * undefined if the root has one, or a Dockerfile.
 */
export function readComposeBelow(tree: Tree): ComposeFile | undefined {
  if (['Dockerfile', ...names].some((name) => tree.has(name))) return undefined;
  const paths = tree.entries.filter(({ kind, path }) => kind === 'file' && names.includes(posix.basename(path)));
  const folders = [...new Set(paths.map(({ path }) => posix.dirname(path)))].filter(
    (folder) => !folder.includes('/') && !asideFolder.test(folder),
  );
  const found = folders
    .flatMap((folder) => readFolderCompose(tree, folder) ?? [])
    .filter(({ services }) => services.filter(({ build }) => build !== undefined).length > 1);
  return found.length === 1 ? found[0] : undefined;
}

function readFolderCompose(tree: Tree, folder: string): ComposeFile | undefined {
  const file = names.map((name) => posix.join(folder, name)).find((path) => tree.has(path));
  const all = file === undefined ? undefined : readServices(tree, file);
  if (file === undefined || all === undefined) return undefined;
  const profiles = readProfiles(tree.getSubtree(folder));
  const services = Object.entries(all)
    .slice(0, 60)
    .flatMap(([name, value]) => {
      const read = service.safeParse(extendService(value, all));
      return read.success ? [toImageService(tree, movePaths({ ...read.data, name }, folder))] : [];
    });
  const isActive = ({ profiles: own = [] }: ComposeService): boolean =>
    own.length === 0 || own.some((each) => profiles.includes(each));
  return {
    file,
    folder,
    services: services.filter(isActive),
    inactive: services.filter((each) => !isActive(each)).map(({ name }) => name),
  };
}

/** Makes the paths of a service, which start at the folder of its file, those of the repository. */
function movePaths(composeService: ComposeService, folder: string): ComposeService {
  if (folder === '.') return composeService;
  const { build, env_file: files, volumes } = composeService;
  const rebase = (path: string): string => (posix.isAbsolute(path) ? path : posix.join(folder, path));
  return {
    ...composeService,
    ...(build === undefined ? {} : { build: { ...build, context: rebase(build.context) } }),
    ...(files === undefined ? {} : { env_file: files.map(rebase) }),
    ...(volumes === undefined
      ? {}
      : {
          volumes: volumes.map((each) =>
            each.source.startsWith('.') ? { ...each, source: `./${rebase(each.source)}` } : each,
          ),
        }),
  };
}

/** The profiles that a committed .env, or the sample that people copy to it, turns on. */
function readProfiles(tree: Tree): string[] {
  const texts = ['.env', '.env.example', '.env.sample'].map((name) => tree.readFile(name, 64 * 1024) ?? '');
  const found = texts.map((text) => parseEnv(text).get('COMPOSE_PROFILES')).find((each) => each !== undefined);
  return (found ?? '').split(',').map((each) => each.trim());
}

const composeFile = z.looseObject({
  services: z.record(z.string(), z.unknown()).default({}),
  include: toOptional(z.array(pathItem).max(20)),
});

/** Reads the services of a file, and those of the files of the same folder that it includes. */
function readServices(tree: Tree, file: string): Record<string, unknown> | undefined {
  const parsed = composeFile.safeParse(parseYaml(tree.readFile(file)));
  if (!parsed.success) return undefined;
  const { services, include = [] } = parsed.data;
  const others = include
    .map((path) => posix.normalize(path))
    .filter((path) => !path.includes('/'))
    .map((path) => parseYaml(tree.readFile(posix.join(posix.dirname(file), path))))
    .map((content) => composeFile.safeParse(content).data?.services ?? {});
  const all = Object.assign({}, ...others, services) as Record<string, unknown>;
  return Object.keys(all).length === 0 ? undefined : all;
}

const extendable = z.looseObject({ extends: z.union([z.string(), z.looseObject({ service: z.string() })]) });

/** Adds the fields of the service of this file that it extends. Lists are not joined. */
function extendService(value: unknown, all: Readonly<Record<string, unknown>>, depth = 0): unknown {
  const read = extendable.safeParse(value);
  if (!read.success || depth > 4) return value;
  const { extends: of, ...own } = read.data;
  const base: unknown = all[typeof of === 'string' ? of : of.service];
  if (typeof base !== 'object' || base === null || (typeof of !== 'string' && 'file' in of)) return own;
  return { ...(extendService(base, all, depth + 1) as object), ...own };
}

/** A service built from a database image is a database: its Dockerfile only adds settings. */
function toImageService(tree: Tree, composeService: ComposeService): ComposeService {
  const { context = '', dockerfile = 'Dockerfile' } = composeService.build ?? {};
  const text =
    composeService.build === undefined ? undefined : tree.readFile(posix.join(context, dockerfile), 64 * 1024);
  const base = [...(text ?? '').matchAll(/^[ \t]{0,20}FROM[ \t]{1,20}(?:--\S{1,100}[ \t]{1,20})?(\S{1,300})/gim)].at(
    -1,
  )?.[1];
  return base === undefined || findKnownImage(base) === undefined
    ? composeService
    : { ...composeService, image: base, build: undefined };
}

interface KnownImage {
  readonly type: ServiceType;
  readonly version?: string;
}

/** By image path, without registry and tag. */
const imageTypes: readonly (readonly [RegExp, ServiceType])[] = [
  [/(?:^|\/)(?:postgres|postgresql|pgvector|postgis|timescaledb|timescaledb-ha|pgvecto-rs)$/, 'postgres'],
  [/(?:^|\/)(?:redis|valkey|redis-stack|redis-stack-server|keydb|dragonfly)$/, 'redis'],
  [/(?:^|\/)(?:mongo|mongodb|mongodb-community-server)$/, 'mongo'],
  [/(?:^|\/)(?:mysql|mariadb|mysql-server)$/, 'mysql'],
  [/(?:^|\/)qdrant$/, 'qdrant'],
  [/(?:^|\/)(?:chroma|chromadb)$/, 'chroma'],
  [/(?:^|\/)minio$/, 'minio'],
  [/(?:^|\/)meilisearch$/, 'meilisearch'],
];

/** Returns the type and version of an image; undefined if it is not a backing service. */
export function findKnownImage(image: string): KnownImage | undefined {
  const [path = '', digest] = image.split('@', 2);
  const [, name = '', tag = ''] = /^(.{1,400}?)(?::([^:/]{1,128}))?$/.exec(path) ?? [];
  const type = imageTypes.find(([pattern]) => pattern.test(name))?.[1];
  if (type === undefined) return undefined;
  const version = digest === undefined ? parseImageVersion(tag) : undefined;
  return version === undefined ? { type } : { type, version };
}

/** Parses 16 from pg16 and 0.8.0-pg16, and 1.2.3 from v1.2.3. */
function parseImageVersion(tag: string): string | undefined {
  return /(?:^|-)pg([0-9]{1,3})/.exec(tag)?.[1] ?? /^v?([0-9]{1,6}(?:\.[0-9]{1,6}){0,3})/.exec(tag)?.[1];
}

/** Returns whether it is a reverse proxy, which the platform's gateway replaces. */
export function isProxy({ name, image = '' }: { readonly name: string; readonly image?: string | undefined }): boolean {
  const path = image.split('@')[0]?.replace(/:[^:/]{0,128}$/, '') ?? '';
  return (
    /(?:^|\/)(?:nginx|nginx-unprivileged|traefik|caddy|haproxy|envoy|nginx-proxy|nginx-proxy-manager|cloudflared|swag|certbot|acme-companion)$/.test(
      path,
    ) || /^(?:nginx|traefik|caddy|haproxy|proxy|reverse-?proxy|certbot|tunnel|cloudflared)$/i.test(name)
  );
}

/** Returns whether only a developer starts it: tests, tools, database viewers. */
export function isDevelopmentService({
  name,
  image = '',
}: {
  readonly name: string;
  readonly image?: string | undefined;
}): boolean {
  return (
    /(?:^|[-_])(?:tests?|mock(?:ed)?|e2e|cypress|playwright|lint|docs?|storybook|dev|devcontainer|debug|mailhog|mailpit|mailcatcher|adminer|pgadmin|phpmyadmin|studio|seed|backup|watchtower|prometheus|grafana|jaeger)(?:$|[-_0-9])/i.test(
      name,
    ) ||
    // What watches the sources of pages while they are developed.
    /^(?:js|css|assets?|tailwind(?:css)?|webpack|gulp|grunt|browser-?sync|esbuild|watch(?:er)?)$/i.test(name) ||
    /(?:adminer|pgadmin4?|phpmyadmin|mongo-express|redis-commander|redisinsight|mailhog|mailpit|maildev|watchtower|dbgate)(?::|@|$)/i.test(
      image,
    )
  );
}

const images: ReadonlySet<string> = new Set([
  ...baseImages.map((name) => name.replace(/:.*$/, '')),
  ...['openjdk', 'gradle', 'oven/bun', 'ubuntu', 'alpine', 'busybox', 'composer'],
]);

/** Returns whether the image only provides a language runtime, into which a developer's folder is mounted. */
export function isLanguage(image: string): boolean {
  const [, name = ''] = /^(?:docker\.io\/)?(?:library\/)?([^:@]{1,200})/.exec(image) ?? [];
  // Only names of Docker Hub: a host has a dot.
  return images.has(name) && !name.includes('.');
}

// Variables and commands, as Docker Compose expands and splits them.

/** Looks up a variable; undefined if it is not set. */
export type Lookup = (name: string) => string | undefined;

const innermost = /\$\{([A-Za-z_][A-Za-z0-9_]{0,100})(?:(:?[-?+])([^${}]{0,1000}))?\}/g;
const bare = /\$([A-Za-z_][A-Za-z0-9_]{0,100})/g;
const deepest = 4;
/** Stands for $$ until the end; does not occur in text. */
const dollar = '\u0000';

/** Expands a text's variables; undefined if one of them is not set. */
export function interpolate(text: string, lookup: Lookup): string | undefined {
  const missing = new Set<string>();
  let current = text.replaceAll(dollar, '').replaceAll('$$', dollar);
  for (let depth = 0; depth < deepest; depth += 1) {
    const next = current.replaceAll(innermost, (_whole, name: string, kind = '', other = '') =>
      resolveValue({ name, kind: String(kind), other: String(other) }, lookup, missing),
    );
    if (next === current) break;
    current = next;
  }
  current = current.replaceAll(bare, (_whole, name: string) =>
    resolveValue({ name, kind: '', other: '' }, lookup, missing),
  );
  return missing.size > 0 ? undefined : current.replaceAll(dollar, '$');
}

function resolveValue(
  { name, kind, other }: { name: string; kind: string; other: string },
  lookup: Lookup,
  missing: Set<string>,
): string {
  const found = lookup(name);
  if (kind.endsWith('+')) return found === undefined || found === '' ? '' : other;
  if (found !== undefined && (found !== '' || !kind.startsWith(':'))) return found;
  if (kind.endsWith('-')) return other;
  missing.add(name);
  return '';
}

/** Returns the name if the text is exactly one variable: ${NAME} or $NAME. */
export function readOnlyVariable(text: string): string | undefined {
  return /^\$\{?([A-Za-z_][A-Za-z0-9_]{0,100})(?::?\?[^}]{0,300})?\}?$/.exec(text.trim())?.[1];
}

/** Parses the lines of an .env file. */
export function parseEnv(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of text.slice(0, 64 * 1024).split('\n')) {
    const match =
      /^[ \t]{0,20}(?:export[ \t]{1,9})?([A-Za-z_][A-Za-z0-9_]{0,100})[ \t]{0,9}=[ \t]{0,9}(.{0,4000})$/.exec(
        line.replace(/\r$/, ''),
      );
    if (match?.[1] !== undefined) values.set(match[1], unquote(match[2] ?? ''));
  }
  return values;
}

function unquote(value: string): string {
  const quoted = /^(["'])(.{0,4000}?)\1/.exec(value);
  return quoted === null ? value.replace(/[ \t]{1,20}#.*$/, '').trim() : (quoted[2] ?? '');
}

/**
 * A part of a word: unquoted, in double quotes, in single quotes, escaped with a backslash; or whitespace between
 * words.
 */
const piece = /\\([\s\S])|"((?:[^"\\]|\\[\s\S]){0,4000})"|'([^']{0,4000})'|([^\s"'\\]{1,4000})|(\s{1,4000})/y;

/** Splits a command into words; undefined if a quote is not closed. */
export function splitWords(command: string): string[] | undefined {
  const text = command.slice(0, 4_000).trim();
  const found: string[] = [];
  let isNew = true;
  piece.lastIndex = 0;
  while (piece.lastIndex < text.length) {
    const match = piece.exec(text);
    if (match === null) return undefined;
    const isBlank = match[5] !== undefined;
    if (!isBlank) found.push(isNew ? toPlainText(match) : `${found.pop() ?? ''}${toPlainText(match)}`);
    isNew = isBlank;
  }
  return found;
}

function toPlainText([, escaped, double, single, plain]: RegExpExecArray): string {
  return escaped ?? double?.replaceAll(/\\([\s\S])/g, '$1') ?? single ?? plain ?? '';
}
