// Builds the app's environment from a compose file: literal values, defaults, and values from sample files.
import { askedSecret } from '../../../../../crds/values.ts';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import type { Tree } from '../../../tree.ts';
import { createWarning, type DeclaredVariable } from '../declaration.ts';
import type { BesideResult } from './services.ts';
import { isOwnSecret } from '../own-secrets.ts';
import { interpolate, type Lookup, parseEnv, type ComposeService } from './read.ts';

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

/** Reads values from the sample files at the repository's root; the first file that sets a variable wins. */
export function readSampleValues(tree: Tree): Lookup {
  const values = new Map<string, string>();
  for (const name of samples)
    for (const [key, value] of parseEnv(tree.readFile(name, 64 * 1024) ?? ''))
      if (!values.has(key) && !blank.test(value)) values.set(key, value);
  return (name) => values.get(name);
}

export function buildEnvironment(
  file: string,
  service: ComposeService,
  tree: Tree,
  { logins, hosts }: BesideResult,
): { env: DeclaredVariable[]; findings: Finding[] } {
  const sample = readSampleValues(tree);
  const lookup: Lookup = (name) => sample(name) ?? logins.get(name);
  const variables = (service.environment ?? []).map(
    ([name, text]) => [name, text === null ? lookup(name) : interpolate(text, lookup)] as const,
  );
  const missing = variables.filter(([name, value]) => value === undefined && !isOwnSecret(name)).map(([name]) => name);
  const resolved = variables.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  const named = [...readEnvFiles(service, tree), ...resolved, ...variables.map(([name]) => [name, ''] as const)];
  // A secret that everyone can read in the repository is not a secret, so the platform generates one.
  const secret = named.filter(([name]) => isOwnSecret(name)).map(([name]) => [name, askedSecret] as const);
  const env = new Map([...readEnvFiles(service, tree), ...resolved, ...secret]);
  const open = [...env]
    .filter(([name, value]) => /SECRET|JWT|ENCRYPTION|SALT/i.test(name) && value !== askedSecret)
    .map(([name]) => name);
  return {
    env: [...env]
      .map(([name, value]) => ({ name, value: renameHosts(value.trim(), hosts) }))
      .filter(({ name, value }) => isUsable(name, value)),
    findings: [
      ...(missing.length === 0 ? [] : [warnAboutUnset(file, missing)]),
      ...(open.length === 0 ? [] : [warnAboutPublicSecrets(file, open)]),
    ],
  };
}

/** Reads the values of its env_file. */
function readEnvFiles({ env_file: paths = [] }: ComposeService, tree: Tree): [string, string][] {
  return paths
    .slice(0, 5)
    .flatMap((path) => [...readEnvFile(tree, path)])
    .filter(([, value]) => !blank.test(value));
}

function isUsable(name: string, value: string): boolean {
  const isPlaceholder = /(?:KEY|TOKEN)$/i.test(name) && blank.test(value);
  return /^[A-Za-z_][A-Za-z0-9_]{0,100}$/.test(name) && !ofDevelopment.test(name) && !isPlaceholder;
}

function warnAboutPublicSecrets(file: string, names: readonly string[]): Finding {
  return createWarning(
    'compose/public-secret',
    file,
    `Everybody can read the values of ${names.slice(0, 6).join(', ')} in the repository, and the app runs with them.`,
    'Ask the operator of this installation to set secret ones (spec.run.secrets of the HostedApp).',
  );
}

/** Reads the file itself if it is committed, or else the sample next to it. */
function readEnvFile(tree: Tree, path: string): Map<string, string> {
  const relativePath = path.replace(/^\.\//, '');
  const found = [
    relativePath,
    `${relativePath}.example`,
    `${relativePath}.sample`,
    `${relativePath}.template`,
    `${relativePath}.dist`,
  ].find((each) => tree.has(each));
  return parseEnv(found === undefined ? '' : (tree.readFile(found, 64 * 1024) ?? ''));
}

/** Replaces host names with the names that they have here. */
function renameHosts(value: string, hosts: ReadonlyMap<string, string>): string {
  return [...hosts].reduce((text, [from, to]) => {
    const escaped = from.replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
    return text.replaceAll(
      new RegExp(`(^|[@/,= ])${escaped}(?=[:/, ?]|$)`, 'g'),
      (_whole, before: string) => `${before}${to}`,
    );
  }, value);
}

function warnAboutUnset(file: string, names: readonly string[]): Finding {
  const shown = names.slice(0, 10).join(', ');
  return createWarning(
    'compose/unset-variables',
    file,
    `Variables without a value in the repository are not set: ${shown}${names.length > 10 ? `, and ${names.length - 10} more` : ''}.`,
    'Give those that the app needs in moorage.yaml (run.env), or ask the operator of this installation to set secret ones.',
  );
}
