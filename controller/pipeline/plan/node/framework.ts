// Detects Node frameworks that render pages on a server, and the target platform of SvelteKit and Astro.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
import { readPath, resolveValues } from '../syntax/resolve.ts';
import { parseScript, readLiteralText } from '../syntax/javascript.ts';
import { type Adapter, detectAstroAdapter, detectSvelteAdapter, rejectAdapter } from './adapter.ts';
import { type NodeApp, resolveScriptStart } from './app.ts';
import type { NodeProject } from './project.ts';

/** Returns the framework's app; undefined if there is no framework, or it builds static files. */
export function findFramework(tree: Tree, project: NodeProject): NodeApp | undefined {
  return (
    detectNext(tree, project) ?? detectNuxt(project) ?? detectSvelteKit(tree, project) ?? detectAstro(tree, project)
  );
}

/**
 * Reports an adapter that builds for another platform; undefined if there is none, or a custom start script replaces
 * it.
 */
export function detectForeignAdapter(tree: Tree, { dependencies, scripts }: NodeProject): Finding | undefined {
  const adapter = detectAdapter(tree, dependencies);
  return adapter === undefined || hasOwnServer(scripts['start']) ? undefined : rejectAdapter(adapter);
}

/** Returns whether a Next.js project has pages. A workspace root may list next among its packages without any. */
export function hasPages(tree: Tree): boolean {
  return ['app', 'pages', 'src/app', 'src/pages'].some((folder) => tree.getEntry(folder)?.kind === 'directory');
}

function detectAdapter(tree: Tree, dependencies: ReadonlySet<string>): Adapter | undefined {
  if (dependencies.has('@sveltejs/kit')) return detectSvelteAdapter(tree, dependencies);
  return dependencies.has('astro') ? detectAstroAdapter(tree) : undefined;
}

/** Start scripts that only run the framework's development server or preview. */
const previews = /^(?:npx )?(?:vite|astro|next|nuxt|svelte-kit)\b/;

function hasOwnServer(script: string | undefined): boolean {
  return script !== undefined && !previews.test(script);
}

function detectNext(tree: Tree, { dependencies, runtime, scripts }: NodeProject): NodeApp | undefined {
  if (!dependencies.has('next') || !hasPages(tree)) return undefined;
  const { output, imports } = readNextConfig(tree);
  const because = `next is among its packages${output === undefined ? '' : `, and its configuration has output ${output}`}.`;
  if (output === 'export') return { kind: 'files', framework: 'Next.js', folder: 'out', fallback: false, because };
  if (output === 'standalone') return { kind: 'standalone', framework: 'Next.js', because };
  const start = scripts['start'];
  if (start !== undefined && hasOwnServer(start))
    return { kind: 'server', framework: 'Next.js', ...resolveScriptStart(tree, start), because };
  return {
    kind: 'server',
    framework: 'Next.js',
    command: 'exec node_modules/.bin/next start --hostname 0.0.0.0 --port $PORT',
    because,
    // The server reads its configuration at start, which may import development packages.
    prune: imports.every((name) => !dependencies.has(name) || runtime.has(name)),
  };
}

function detectNuxt({ dependencies, ranges }: NodeProject): NodeApp | undefined {
  if (!dependencies.has('nuxt')) return undefined;
  if (/^\D{0,3}[12]\./.test(ranges['nuxt'] ?? ''))
    return {
      kind: 'server',
      framework: 'Nuxt',
      command: 'exec node_modules/.bin/nuxt start --hostname 0.0.0.0 --port $PORT',
      because: `nuxt ${ranges['nuxt'] ?? ''} is among its packages.`,
      prune: false,
    };
  return {
    kind: 'server',
    framework: 'Nuxt',
    command: 'export NITRO_HOST=0.0.0.0 NITRO_PORT=$PORT; exec node .output/server/index.mjs',
    because: 'nuxt is among its packages.',
    prune: false,
  };
}

function detectSvelteKit(tree: Tree, { dependencies, scripts, ranges }: NodeProject): NodeApp | undefined {
  if (!dependencies.has('@sveltejs/kit') || hasOwnServer(scripts['start'])) return undefined;
  const adapter = detectSvelteAdapter(tree, dependencies);
  const { target, folder = 'build', certainty } = adapter;
  const shared = { framework: 'SvelteKit', certainty, ...describeOthers(adapter) };
  if (target === 'files')
    return { ...shared, kind: 'files', folder, fallback: true, because: '@sveltejs/adapter-static is its adapter.' };
  if (target === 'foreign' || target === 'none') return undefined;
  const server = { ...shared, kind: 'server', command: `exec node ${folder}`, prune: true } as const;
  if (target === 'node') return { ...server, because: '@sveltejs/adapter-node is its adapter.' };
  const version = chooseAdapterVersion(ranges['@sveltejs/kit'] ?? '');
  return {
    ...server,
    because: `Its adapter-auto knows no platform here, so the build takes @sveltejs/adapter-node ${version} instead.`,
    replaced: { package: '@sveltejs/adapter-auto', by: '@sveltejs/adapter-node', version },
  };
}

/** The newest adapter-node that fits the major version of SvelteKit. */
function chooseAdapterVersion(kit: string): string {
  return /^\D{0,3}1\./.test(kit) || /^\D{0,3}1$/.test(kit) ? '1' : '5';
}

/** Names the adapters that a condition in the configuration may choose too. */
function describeOthers({ file, others }: Adapter): Pick<NodeApp, 'otherwise'> {
  return others.length === 0 || file === undefined
    ? {}
    : { otherwise: `${file} may also choose ${others.join(', ')}: its condition cannot be decided before the build.` };
}

function detectAstro(tree: Tree, { dependencies, scripts }: NodeProject): NodeApp | undefined {
  if (!dependencies.has('astro') || hasOwnServer(scripts['start'])) return undefined;
  const adapter = detectAstroAdapter(tree);
  if (adapter.target !== 'node') return undefined;
  return {
    kind: 'server',
    framework: 'Astro',
    command: 'exec node dist/server/entry.mjs',
    because: '@astrojs/node is its adapter.',
    prune: true,
    certainty: adapter.certainty,
    ...describeOthers(adapter),
  };
}

interface NextConfig {
  readonly output: 'standalone' | 'export' | undefined;
  /** Package names, without paths inside the packages. */
  readonly imports: readonly string[];
}

const files = ['next.config.js', 'next.config.mjs', 'next.config.ts', 'next.config.cjs'];

function readNextConfig(tree: Tree): NextConfig {
  const file = files.find((each) => tree.has(each));
  const module = parseScript(file === undefined ? '' : (tree.readFile(file) ?? ''));
  const assigned = [...module.variables].flatMap(([name, value]) => (/\.output$/.test(name) ? [value] : []));
  const outputs = [...assigned, ...readPath(module.exported, ['output'], module)]
    .flatMap((value) => resolveValues(value, module))
    .map(readLiteralText);
  const output = outputs.find((each) => each === 'standalone' || each === 'export');
  const imports = module.sources
    .filter((name) => !name.startsWith('.'))
    .map((name) => /^(?:@[\w.-]{1,100}\/)?[\w.-]{1,100}/.exec(name)?.[0] ?? name);
  return { output, imports };
}
