// Finds secrets that only the app itself must know, such as the key that signs its sessions, by the names of variables
// in sample environment files and framework settings. The platform generates them.
import { askedSecret } from '../../../../crds/values.ts';
import type { Tree } from '../../tree.ts';
import { listSettingsFiles } from '../python/start/django.ts';
import { parseEnv } from './compose/read.ts';
import type { Declaration } from './declaration.ts';

/**
 * A single word, or words that refer to the app itself: STRIPE_SECRET_KEY and GITHUB_CLIENT_SECRET belong to other
 * services.
 */
const secretNamePattern =
  /^(?:(?:APP|APPLICATION|AUTH|BETTER_AUTH|NEXTAUTH|NEXT_AUTH|SESSION|COOKIE|JWT|JWT_ACCESS|JWT_REFRESH|ACCESS_TOKEN|REFRESH_TOKEN|TOKEN|DJANGO|FLASK|SERVER|SITE|CSRF|SIGNING|HASH|HMAC|WEBUI)_)?SECRET(?:_KEY)?$/;
/** Names that always belong to the app, whatever their prefix. */
const always = /(?:^|_)(?:SECRET_KEY_BASE|SESSION_SECRET|COOKIE_SECRET|JWT_SECRET|JWT_SECRET_KEY)$/;

const samples = [
  '.env.example',
  '.env.sample',
  '.env.template',
  '.env.dist',
  'env.example',
  'example.env',
  '.example.env',
  '.env.local.example',
  '.env.example.local',
];

/** Returns whether a variable with this name is one of the app's own secrets. */
export function isOwnSecret(variable: string): boolean {
  return secretNamePattern.test(variable) || always.test(variable);
}

export function readOwnSecrets(tree: Tree): Declaration | undefined {
  const secrets = [...findSampleSecrets(tree), ...findDjangoSecrets(tree), ...findByFramework(tree)];
  const first = secrets[0];
  if (first === undefined) return undefined;
  const names = [...new Set(secrets.map(({ name }) => name))];
  return { file: first.file, env: names.map((name) => ({ name, value: askedSecret })) };
}

interface OwnSecret {
  readonly file: string;
  readonly name: string;
}

function findSampleSecrets(tree: Tree): OwnSecret[] {
  return samples.flatMap((file) =>
    [...parseEnv(tree.readFile(file, 64 * 1024) ?? '').keys()].filter(isOwnSecret).map((name) => ({ file, name })),
  );
}

const ofSettings = /^\s*SECRET_KEY\b[^\n]{0,80}(?:[Ee]nv|config|[Ss]ecret)[^\n]{0,40}["']([A-Z][A-Z0-9_]{0,60})["']/m;

function findDjangoSecrets(tree: Tree): OwnSecret[] {
  return listSettingsFiles(tree).flatMap((file) => {
    const name = ofSettings.exec(tree.readFile(file) ?? '')?.[1];
    return name !== undefined && /SECRET|KEY/.test(name) ? [{ file, name }] : [];
  });
}

/** Frameworks that do not start in production without a secret. */
const frameworks = [
  { file: 'Gemfile', pattern: /^\s*gem ["']rails["']/m, name: 'SECRET_KEY_BASE' },
  { file: 'mix.exs', pattern: /\{\s*:phoenix\s*,/, name: 'SECRET_KEY_BASE' },
  { file: 'config/runtime.exs', pattern: /"SECRET_KEY_BASE"/, name: 'SECRET_KEY_BASE' },
];

function findByFramework(tree: Tree): OwnSecret[] {
  return frameworks.flatMap(({ file, pattern, name }) =>
    pattern.test(tree.readFile(file) ?? '') ? [{ file, name }] : [],
  );
}
