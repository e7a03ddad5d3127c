// Detects Node frameworks that render pages on a server, and the target platform of SvelteKit and Astro.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
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
  if (adapter?.target !== 'foreign' || hasOwnServer(scripts['start'])) return undefined;
  const fix = adapter.package.startsWith('@sveltejs')
    ? 'Use @sveltejs/adapter-auto, @sveltejs/adapter-node or @sveltejs/adapter-static there, and commit the lock file.'
    : 'Use @astrojs/node with mode "standalone" there, or no adapter if every page can be prerendered, and commit the lock file.';
  return {
    rule: 'plan/adapter',
    severity: 'error',
    file: adapter.file,
    message: `${adapter.package} builds for another platform, and its output cannot run here.`,
    fix,
  };
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

function detectSvelteKit(tree: Tree, { dependencies, scripts }: NodeProject): NodeApp | undefined {
  if (!dependencies.has('@sveltejs/kit') || hasOwnServer(scripts['start'])) return undefined;
  const { target } = detectSvelteAdapter(tree, dependencies);
  if (target === 'files')
    return {
      kind: 'files',
      framework: 'SvelteKit',
      folder: 'build',
      fallback: true,
      because: '@sveltejs/adapter-static is its adapter.',
    };
  if (target === 'foreign') return undefined;
  const node = { kind: 'server', framework: 'SvelteKit', command: 'exec node build', prune: true } as const;
  if (target === 'node') return { ...node, because: '@sveltejs/adapter-node is its adapter.' };
  // adapter-auto detects the platform from its environment; this setting makes it choose adapter-node.
  return {
    ...node,
    because: '@sveltejs/kit is among its packages; adapter-auto is led to adapter-node.',
    environment: { GCP_BUILDPACKS: '1' },
  };
}

function detectAstro(tree: Tree, { dependencies, scripts }: NodeProject): NodeApp | undefined {
  if (!dependencies.has('astro') || hasOwnServer(scripts['start']) || detectAstroAdapter(tree).target !== 'node')
    return undefined;
  return {
    kind: 'server',
    framework: 'Astro',
    command: 'exec node dist/server/entry.mjs',
    because: '@astrojs/node is its adapter.',
    prune: true,
  };
}

/**
 * `node`: a server in the folder build or dist; `auto`: SvelteKit detects its platform; `foreign`: another platform,
 * which cannot run here.
 */
type Adapter =
  | { readonly target: 'node' | 'files' | 'auto' }
  | { readonly target: 'foreign'; readonly package: string; readonly file: string };

const configs = {
  svelte: ['svelte.config.js', 'svelte.config.ts', 'svelte.config.mjs'],
  astro: ['astro.config.mjs', 'astro.config.ts', 'astro.config.js', 'astro.config.cjs'],
} as const;
const foreign =
  /["'](@sveltejs\/adapter-(?:vercel|netlify|cloudflare)[\w-]{0,20}|@astrojs\/(?:vercel|netlify|cloudflare))(?:\/[\w/-]{1,40})?["']/;

/** Detects the target of a SvelteKit project. */
function detectSvelteAdapter(tree: Tree, dependencies: ReadonlySet<string>): Adapter {
  const { file, text } = readConfigFile(tree, 'svelte');
  const hasAdapter = (name: string): boolean => (file === undefined ? dependencies.has(name) : text.includes(name));
  if (hasAdapter('@sveltejs/adapter-node')) return { target: 'node' };
  if (hasAdapter('@sveltejs/adapter-static')) return { target: 'files' };
  return findForeignAdapter(file, text) ?? { target: 'auto' };
}

/** Detects the target of an Astro project: static files, unless its configuration names an adapter. */
function detectAstroAdapter(tree: Tree): Adapter {
  const { file, text } = readConfigFile(tree, 'astro');
  if (text.includes('@astrojs/node')) return { target: 'node' };
  // Since Astro 5, pages are static unless they opt out; projects with a platform adapter have some that do.
  return findForeignAdapter(file, text) ?? { target: 'files' };
}

function findForeignAdapter(file: string | undefined, text: string): Adapter | undefined {
  const adapter = foreign.exec(text)?.[1];
  return adapter === undefined || file === undefined ? undefined : { target: 'foreign', package: adapter, file };
}

function readConfigFile(tree: Tree, framework: keyof typeof configs): { file: string | undefined; text: string } {
  const file = configs[framework].find((each) => tree.has(each));
  return { file, text: (file === undefined ? undefined : tree.readFile(file)) ?? '' };
}

interface NextConfig {
  readonly output: 'standalone' | 'export' | undefined;
  /** Package names, without paths inside the packages. */
  readonly imports: readonly string[];
}

const files = ['next.config.js', 'next.config.mjs', 'next.config.ts', 'next.config.cjs'];

function readNextConfig(tree: Tree): NextConfig {
  const file = files.find((each) => tree.has(each));
  const text = file === undefined ? '' : (tree.readFile(file) ?? '');
  const output = /\boutput\s{0,9}:\s{0,9}["'](standalone|export)["']/.exec(text)?.[1];
  const imported = /\b(?:from|import|require)\s{0,9}\(?\s{0,9}["']((?:@[\w.-]{1,100}\/)?[\w.-]{1,100})/g;
  const imports = [...text.matchAll(imported)].flatMap(([, name = '']) => (name.startsWith('.') ? [] : [name]));
  return { output: output === 'standalone' || output === 'export' ? output : undefined, imports };
}
