// Finds what SvelteKit and Astro build for: a server of Node, files, or somebody else's platform.
import type { Tree } from '../../tree.ts';

/**
 * `node`: a server in the folder build or dist; `auto`: SvelteKit asks where it is; `foreign`: nothing that can be run
 * here.
 */
export type Adapter =
  | { readonly target: 'node' | 'files' | 'auto' }
  | { readonly target: 'foreign'; readonly package: string; readonly file: string };

const configs = {
  svelte: ['svelte.config.js', 'svelte.config.ts', 'svelte.config.mjs'],
  astro: ['astro.config.mjs', 'astro.config.ts', 'astro.config.js', 'astro.config.cjs'],
} as const;
const foreign =
  /["'](@sveltejs\/adapter-(?:vercel|netlify|cloudflare)[\w-]{0,20}|@astrojs\/(?:vercel|netlify|cloudflare))(?:\/[\w/-]{1,40})?["']/;

/** What a SvelteKit project is built for. */
export function svelteAdapter(tree: Tree, dependencies: ReadonlySet<string>): Adapter {
  const { file, text } = read(tree, 'svelte');
  const uses = (name: string): boolean => (file === undefined ? dependencies.has(name) : text.includes(name));
  if (uses('@sveltejs/adapter-node')) return { target: 'node' };
  if (uses('@sveltejs/adapter-static')) return { target: 'files' };
  return elsewhere(file, text) ?? { target: 'auto' };
}

/** What an Astro project is built for: files, unless its configuration names an adapter. */
export function astroAdapter(tree: Tree): Adapter {
  const { file, text } = read(tree, 'astro');
  if (text.includes('@astrojs/node')) return { target: 'node' };
  // Since Astro 5 a page is drawn by a server only where it says so; with an adapter for a platform some do.
  return elsewhere(file, text) ?? { target: 'files' };
}

function elsewhere(file: string | undefined, text: string): Adapter | undefined {
  const found = foreign.exec(text)?.[1];
  return found === undefined || file === undefined ? undefined : { target: 'foreign', package: found, file };
}

function read(tree: Tree, framework: keyof typeof configs): { file: string | undefined; text: string } {
  const file = configs[framework].find((each) => tree.has(each));
  return { file, text: (file === undefined ? undefined : tree.text(file)) ?? '' };
}
