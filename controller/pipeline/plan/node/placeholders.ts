// Finds the keys and addresses that an app receives only at run time, so that the build can use placeholders.
import type { Tree } from '../../tree.ts';

export const placeholder = 'given-when-it-runs';
const samples = [
  '.env.example',
  '.env.sample',
  '.env.template',
  '.example.env',
  '.env.local.example',
  '.env.example.local',
];
/** Client libraries that cannot be constructed without a key. */
const clients: Readonly<Record<string, string>> = {
  openai: 'OPENAI_API_KEY',
  '@anthropic-ai/sdk': 'ANTHROPIC_API_KEY',
  'together-ai': 'TOGETHER_API_KEY',
  'groq-sdk': 'GROQ_API_KEY',
  replicate: 'REPLICATE_API_TOKEN',
  'cohere-ai': 'COHERE_API_KEY',
  resend: 'RESEND_API_KEY',
  stripe: 'STRIPE_SECRET_KEY',
  anthropic: 'ANTHROPIC_API_KEY',
  together: 'TOGETHER_API_KEY',
  groq: 'GROQ_API_KEY',
  cohere: 'COHERE_API_KEY',
};
const key = /^[A-Z][A-Z0-9_]{0,60}_(?:KEY|TOKEN|SECRET)$/;
/** Variables that bundlers write into pages, and credentials of build tools. */
const leftAlone =
  /^(?:NEXT_PUBLIC|VITE|PUBLIC|REACT_APP|NUXT_PUBLIC|EXPO_PUBLIC|GATSBY|SENTRY|NPM|NODE|GITHUB|GH|GITLAB|CODECOV|VERCEL|NETLIFY|CHROMATIC|TURBO)_/;
const maximumKeys = 40;

/**
 * Lists the key names: those of client libraries, of the repository's sample environment file, and those that its code
 * reads.
 */
export function listPlaceholderKeys(
  tree: Tree,
  dependencies: ReadonlySet<string>,
  variables: readonly string[] = [],
): string[] {
  const lines = samples.flatMap((file) => (tree.readFile(file, 64 * 1024) ?? '').split('\n'));
  const listed = lines.map((line) => /^\s{0,9}(?:export\s)?(?:#\s?)?([A-Z][A-Z0-9_]*)\s{0,9}=/.exec(line)?.[1] ?? '');
  const clientKeys = Object.entries(clients).flatMap(([name, variable]) => (dependencies.has(name) ? [variable] : []));
  return [...new Set([...clientKeys, ...listed, ...variables])]
    .filter((name) => key.test(name) && !leftAlone.test(name))
    .sort()
    .slice(0, maximumKeys);
}

/** Stores whose addresses code checks when it is loaded. The clients of others, such as Redis, would connect immediately. */
const stores: readonly (readonly [RegExp, string])[] = [
  [/^MONGO(?:DB)?_(?:\w{1,40}_)?UR[LI]$/, 'mongodb://127.0.0.1:27017/build'],
  [/^MYSQL_(?:\w{1,40}_)?URL$/, 'mysql://build:build@127.0.0.1:3306/build'],
  [/^(?:DATABASE|POSTGRES(?:QL)?)_(?:\w{1,40}_)?UR[LI]$/, 'postgresql://build:build@127.0.0.1:5432/build'],
];

/** Lists the addresses of databases that the sample environment file names, with values of the same kind. */
export function listSampleAddresses(tree: Tree): Record<string, string> {
  const lines = samples.flatMap((file) => (tree.readFile(file, 64 * 1024) ?? '').split('\n'));
  return Object.fromEntries(
    lines.flatMap((line) => {
      const [, name = '', value = ''] =
        /^\s{0,9}(?:export\s)?([A-Z][A-Z0-9_]*)\s{0,9}=\s{0,9}["']?([^\s"'#]*)/.exec(line) ?? [];
      const address = stores.find(([pattern]) => pattern.test(name))?.[1];
      if (address === undefined) return [];
      return [[name, chooseAddress(value) ?? address] as const];
    }),
  );
}

function chooseAddress(sample: string): string | undefined {
  if (/^file:|^sqlite:/.test(sample)) return 'file:/tmp/build.db';
  const scheme = /^(\w{1,20})(?:\+\w{1,20})?:\/\//.exec(sample)?.[1];
  return stores.map(([, address]) => address).find((address) => address.startsWith(`${scheme ?? ' '}:`));
}
