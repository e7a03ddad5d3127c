// Builds the app's environment from a compose file: literal values, defaults, and values from sample files.
import { askedSecret } from '../../../../../crds/values.ts';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { escapePattern } from '../../../../../lib/values.ts';
import type { Tree } from '../../../tree.ts';
import { createWarning, type DeclaredVariable } from '../declaration.ts';
import type { BesideResult } from './services.ts';
import { isOwnSecret } from '../own-secrets.ts';
import { findKnownImage, interpolate, type Lookup, parseEnv, type ComposeService } from './read.ts';

const samples = [
  '.env',
  '.env.example',
  '.env.sample',
  '.env.template',
  '.env.dist',
  '.env.docker.example',
  '.env.docker',
  'env.example',
  'example.env',
  '.env.local.example',
];
/** Placeholders that an author writes for a value to fill in. */
const blank = /^$|^<.{0,200}>$|your[-_ ]|xxx|change[-_ ]?(?:me|this)|replace[-_ ]|\.\.\.|^sk-|^todo$|^\*+$/i;
/** Development settings for which the platform has better values. */
const ofDevelopment =
  /^(?:NODE_ENV|PORT|HOSTNAME|PATH|HOME|PWD|UID|GID|PUID|PGID|TZ|COMPOSE_[A-Z_]{1,40}|CHOKIDAR_USEPOLLING|WATCHPACK_POLLING)$/;

/** Reads values from the sample files at the root of a tree; the first file that sets a variable wins. */
export function readSampleValues(tree: Tree): Lookup {
  const values = new Map<string, string>();
  for (const name of samples)
    for (const [key, value] of parseEnv(tree.readFile(name, 64 * 1024) ?? ''))
      if (!values.has(key) && !blank.test(value)) values.set(key, value);
  return (name) => values.get(name);
}

interface ServiceEnvironment {
  readonly env: readonly DeclaredVariable[];
  /** Names of variables without a value. */
  readonly unset: readonly string[];
  /** Names of secrets that everybody can read in the repository. */
  readonly open: readonly string[];
  /** Names of variables with an address of the machine that runs Docker. */
  readonly outside: readonly string[];
}

export function buildEnvironment(
  service: ComposeService,
  tree: Tree,
  { logins, hosts, ports }: BesideResult,
  sample: Lookup,
): ServiceEnvironment {
  const lookup: Lookup = (name) => sample(name) ?? logins.get(name);
  // The platform generates a login that the repository leaves open, for the database and for those that use it.
  const ofFiles = readEnvFiles(service, tree, lookup).flatMap(([name, value]): [string, string][] => {
    const known = blank.test(value) ? logins.get(name) : value;
    return known === undefined ? [] : [[name, known]];
  });
  const variables = (service.environment ?? []).map(
    ([name, text]) => [name, text === null ? lookup(name) : resolveVariable(text, lookup)] as const,
  );
  // A placeholder that the author is to fill in is no value either.
  const missing = variables
    .filter(([name, value]) => (value === undefined || isPlaceholder(name, value.trim())) && !isOwnSecret(name))
    .map(([name]) => name);
  const resolved = variables.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  const named = [...ofFiles, ...resolved, ...variables.map(([name]) => [name, ''] as const)];
  // A secret that everyone can read in the repository is not a secret, so the platform generates one.
  const secret = named.filter(([name]) => isOwnSecret(name)).map(([name]) => [name, askedSecret] as const);
  const env = new Map([...ofFiles, ...resolved, ...secret]);
  const open = [...env]
    .filter(([name, value]) => /SECRET|JWT|ENCRYPTION|SALT/i.test(name) && value !== askedSecret)
    .map(([name]) => name);
  return {
    env: [...env]
      .map(([name, value]) => ({ name, value: movePorts(name, renameHosts(value.trim(), hosts), ports) }))
      .filter(({ name, value }) => isUsable(name, value)),
    unset: missing,
    open,
    outside: [...env].filter(([, value]) => ofDockerHost.test(value)).map(([name]) => name),
  };
}

/** A sample file is often for programs outside of containers: the file's own default names the other container. */
function resolveVariable(text: string, lookup: Lookup): string | undefined {
  const value = interpolate(text, lookup);
  if (value === undefined || !ofMachine.test(value)) return value;
  const usual = interpolate(text, () => undefined);
  return usual === undefined || usual === '' || ofMachine.test(usual) ? value : usual;
}

const ofMachine = /\/\/(?:localhost|127\.0\.0\.1)\b/;

const ofDockerHost = /(?:^|[/@])(?:host|gateway)\.docker\.internal(?:[:/]|$)/;

/** Reports what is wrong with the variables of all services that are run. */
export function reportEnvironment(
  file: string,
  environments: readonly Pick<ServiceEnvironment, 'unset' | 'open' | 'outside'>[],
): Finding[] {
  const outside = [...new Set(environments.flatMap((each) => each.outside))];
  const missing = [...new Set(environments.flatMap(({ unset }) => unset))];
  const open = [...new Set(environments.flatMap((each) => each.open))];
  return [
    ...(missing.length === 0 ? [] : [warnAboutUnset(file, missing)]),
    ...(open.length === 0 ? [] : [warnAboutPublicSecrets(file, open)]),
    ...(outside.length === 0 ? [] : [warnAboutDockerHost(file, outside)]),
  ];
}

/** Such as an Ollama or a database that the developer starts outside of Docker. */
function warnAboutDockerHost(file: string, names: readonly string[]): Finding {
  return createWarning(
    'compose/docker-host',
    file,
    `${names.slice(0, 8).join(', ')} ${names.length === 1 ? 'names' : 'name'} host.docker.internal, the developer's own machine, on which nothing runs for the app here.`,
    'Add what runs there to the app (services in moorage.yaml, or a service of the compose file), or set the variables to public addresses (run.env).',
  );
}

/** Reads the values of its env_file, and of an .env file that is mounted into it. */
function readEnvFiles(
  { env_file: paths = [], volumes = [] }: ComposeService,
  tree: Tree,
  lookup: Lookup,
): [string, string][] {
  const mounted = volumes
    .filter(({ source, target }) => source.startsWith('.') && /(?:^|\/)\.env$/.test(target))
    .map(({ source }) => source);
  return [...new Set([...paths, ...mounted])]
    .slice(0, 5)
    .flatMap((path) => expandFile(readEnvFile(tree, path), lookup));
}

/** Adds the variables of its env_file to those that the file itself gives to a service. One to fill in has no value. */
export function addFileVariables(service: ComposeService, tree: Tree, lookup: Lookup): ComposeService {
  const { environment = [] } = service;
  const own = new Set(environment.map(([name]) => name));
  const ofFiles = new Map(
    readEnvFiles(service, tree, lookup)
      .filter(([name]) => !own.has(name))
      .map(([name, value]) => [name, blank.test(value) ? `\${${name}}` : value.replaceAll('$', '$$$$')]),
  );
  return ofFiles.size === 0 ? service : { ...service, environment: [...ofFiles, ...environment] };
}

/** An address, or a variable such as DB_USER, that logs in as postgres. */
const postgresAddress = /^postgres(?:ql)?(?:\+\w{1,20})?:\/\/postgres[:@]/;
const userName = /USER(?:NAME)?$/;

/**
 * Gives a PostgreSQL without a user that of its image, if another service logs in with it. Without a file, the platform's
 * own name is the usual one.
 */
export function addImageUser(
  service: ComposeService,
  others: readonly ComposeService[],
  lookup: Lookup,
): ComposeService {
  const { image = '', environment = [] } = service;
  const isUnnamed =
    findKnownImage(image)?.type === 'postgres' && !environment.some(([name]) => name === 'POSTGRES_USER');
  const isUser = ([name, text]: readonly [string, string | null]): boolean => {
    const value = interpolate(text ?? '', lookup) ?? '';
    return postgresAddress.test(value) || (userName.test(name) && value === 'postgres');
  };
  return isUnnamed && others.some((each) => (each.environment ?? []).some(isUser))
    ? { ...service, environment: [...environment, ['POSTGRES_USER', 'postgres']] }
    : service;
}

/** A value may name a variable of an earlier line. */
function expandFile(values: ReadonlyMap<string, string>, lookup: Lookup): [string, string][] {
  const known = new Map<string, string>();
  for (const [name, text] of values) {
    const value = text.includes('$') ? interpolate(text, (each) => known.get(each) ?? lookup(each)) : text;
    known.set(name, value ?? text);
  }
  return [...known];
}

function isUsable(name: string, value: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]{0,100}$/.test(name) && !ofDevelopment.test(name) && !isPlaceholder(name, value);
}

function isPlaceholder(name: string, value: string): boolean {
  return /(?:KEY|TOKEN)$/i.test(name) && blank.test(value);
}

function warnAboutPublicSecrets(file: string, names: readonly string[]): Finding {
  const shown = names.slice(0, 6);
  const warning = createWarning(
    'compose/public-secret',
    file,
    `Everybody can read the values of ${shown.join(', ')} in the repository, and the app runs with them.`,
    'Set secret ones with PUT /api/apps/{slug}/secrets/NAME, which replaces the values of the repository.',
  );
  return { ...warning, variables: shown };
}

/** Reads the file itself if it is committed, or else the sample next to it, or else that of the whole repository. */
function readEnvFile(tree: Tree, path: string): Map<string, string> {
  const relativePath = path.replace(/^\.\//, '');
  const found = [
    relativePath,
    `${relativePath}.example`,
    `${relativePath}.sample`,
    `${relativePath}.template`,
    `${relativePath}.dist`,
    ...(/\/\.env$/.test(relativePath) ? samples.filter((name) => name.startsWith('.env.')) : []),
  ].find((each) => tree.has(each));
  return parseEnv(found === undefined ? '' : (tree.readFile(found, 64 * 1024) ?? ''));
}

/** Replaces ports that the file gives to its databases: here each has the usual one. */
function movePorts(name: string, value: string, ports: BesideResult['ports']): string {
  return [...ports].reduce((text, [host, { from, to }]) => {
    if (/PORT$/i.test(name) && text === String(from)) return String(to);
    return text.replaceAll(`${host}:${from}`, `${host}:${to}`);
  }, value);
}

/** Replaces host names with the names that they have here. */
function renameHosts(value: string, hosts: ReadonlyMap<string, string>): string {
  return [...hosts].reduce((text, [from, to]) => {
    const escaped = escapePattern(from);
    return text.replaceAll(
      new RegExp(`(^|[@/,= ])${escaped}(?=[:/, ?]|$)`, 'g'),
      (_whole, before: string) => `${before}${to}`,
    );
  }, value);
}

function warnAboutUnset(file: string, names: readonly string[]): Finding {
  const shown = names.slice(0, 10);
  const warning = createWarning(
    'compose/unset-variables',
    file,
    `Variables without a value in the repository are not set: ${shown.join(', ')}${names.length > 10 ? `, and ${names.length - 10} more` : ''}.`,
    'Give those that the app needs in moorage.yaml (run.env), or set secret ones with PUT /api/apps/{slug}/secrets/NAME.',
  );
  return { ...warning, variables: shown };
}
