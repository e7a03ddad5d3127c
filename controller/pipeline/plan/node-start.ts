// Finds what a Node project is: a site that is built to files, or a server and how it starts.
import type { Tree } from '../tree.ts';
import { shellWord } from './dockerfile-text.ts';
import type { NodeProject } from './node-project.ts';
import { procfile } from './procfile.ts';

export type NodeApp =
  | { readonly kind: 'files'; readonly framework: string; readonly folder: string; readonly fallback: boolean; readonly because: string }
  | { readonly kind: 'standalone'; readonly framework: string; readonly because: string }
  | { readonly kind: 'server'; readonly framework?: string; readonly command: string; readonly because: string; readonly prune: boolean };

const bundlers: readonly { readonly package: string; readonly framework: string; readonly folder: string; readonly fallback: boolean }[] = [
  { package: 'astro', framework: 'Astro', folder: 'dist', fallback: false },
  { package: '@docusaurus/core', framework: 'Docusaurus', folder: 'build', fallback: false },
  { package: 'vitepress', framework: 'VitePress', folder: '.vitepress/dist', fallback: false },
  { package: 'react-scripts', framework: 'Create React App', folder: 'build', fallback: true },
  { package: '@vue/cli-service', framework: 'Vue CLI', folder: 'dist', fallback: true },
  { package: 'vite', framework: 'Vite', folder: 'dist', fallback: true },
  { package: 'parcel', framework: 'Parcel', folder: 'dist', fallback: true },
];
/** Start scripts that only show a built site to its developer. */
const previews = /^(?:npx )?(?:vite|astro|react-scripts|vue-cli-service|docusaurus|vitepress|parcel|serve|http-server)\b/;
const servers = ['express', 'fastify', 'koa', 'hono', '@nestjs/core', '@hapi/hapi', 'polka'];

/** What the project is; undefined when nothing tells. */
export function findApp(tree: Tree, project: NodeProject): NodeApp | undefined {
  const web = procfile(tree);
  if (web !== undefined) return { kind: 'server', command: web, because: 'The Procfile says how it starts.', prune: false };
  return next(tree, project) ?? nuxt(project) ?? bundled(tree, project) ?? server(tree, project);
}

function next(tree: Tree, { dependencies, scripts }: NodeProject): NodeApp | undefined {
  if (!dependencies.has('next')) return undefined;
  const output = nextOutput(tree);
  const because = `next is among its packages${output === undefined ? '' : `, and its configuration has output ${output}`}.`;
  if (output === 'export') return { kind: 'files', framework: 'Next.js', folder: 'out', fallback: false, because };
  if (output === 'standalone') return { kind: 'standalone', framework: 'Next.js', because };
  const start = scripts['start'];
  if (start !== undefined && !/^next start\b/.test(start)) return { kind: 'server', framework: 'Next.js', ...command(start), because };
  return { kind: 'server', framework: 'Next.js', command: 'exec node_modules/.bin/next start --hostname 0.0.0.0 --port $PORT', because, prune: true };
}

function nextOutput(tree: Tree): string | undefined {
  const file = ['next.config.js', 'next.config.mjs', 'next.config.ts', 'next.config.cjs'].find((each) => tree.has(each));
  return file === undefined ? undefined : /\boutput\s{0,9}:\s{0,9}["'](standalone|export)["']/.exec(tree.text(file) ?? '')?.[1];
}

function nuxt({ dependencies }: NodeProject): NodeApp | undefined {
  if (!dependencies.has('nuxt')) return undefined;
  return { kind: 'server', framework: 'Nuxt', command: 'export NITRO_HOST=0.0.0.0 NITRO_PORT=$PORT; exec node .output/server/index.mjs', because: 'nuxt is among its packages.', prune: false };
}

function bundled(tree: Tree, { dependencies, scripts }: NodeProject): NodeApp | undefined {
  const start = scripts['start'];
  const serves = start !== undefined && !previews.test(start);
  const bundler = bundlers.find((each) => dependencies.has(each.package));
  if (bundler === undefined || scripts['build'] === undefined || serves || dependencies.has('@sveltejs/adapter-node') || dependencies.has('@astrojs/node')) return undefined;
  const folder = dependencies.has('@sveltejs/adapter-static') ? 'build' : outputFolder(tree) ?? bundler.folder;
  return {
    kind: 'files', framework: dependencies.has('@sveltejs/kit') ? 'SvelteKit' : bundler.framework, folder, fallback: bundler.fallback,
    because: `${bundler.package} is among its packages and no start script serves it, so what "build" leaves in ${folder} is served.`,
  };
}

function outputFolder(tree: Tree): string | undefined {
  const file = ['vite.config.ts', 'vite.config.js', 'vite.config.mjs', 'vite.config.mts'].find((each) => tree.has(each));
  const folder = /\boutDir\s{0,9}:\s{0,9}["']\.?\/?([A-Za-z0-9_][A-Za-z0-9_./-]{0,100})["']/.exec(tree.text(file ?? '') ?? '')?.[1];
  return folder?.includes('..') === true ? undefined : folder?.replace(/\/+$/, '');
}

function server(tree: Tree, { dependencies, scripts, main }: NodeProject): NodeApp | undefined {
  const library = servers.find((each) => dependencies.has(each));
  const framework = library === undefined ? {} : { framework: names[library] ?? library };
  const start = scripts['start'];
  if (start !== undefined) return { kind: 'server', ...framework, ...command(start), because: 'Its start script says how it starts.' };
  if (dependencies.has('@sveltejs/adapter-node')) return { kind: 'server', framework: 'SvelteKit', command: 'exec node build', because: '@sveltejs/adapter-node is among its packages.', prune: true };
  const file = [main, 'server.js', 'index.js', 'app.js', 'main.js', 'server.mjs', 'index.mjs', 'src/index.js', 'src/server.js'].find((each) => each !== undefined && tree.has(each.replace(/^\.\//, '')));
  if (file === undefined) return undefined;
  return { kind: 'server', ...framework, command: `exec node ${shellWord(file)}`, because: `It has no start script, so ${file} is started.`, prune: true };
}

const names: Readonly<Record<string, string>> = { express: 'Express', fastify: 'Fastify', koa: 'Koa', hono: 'Hono', '@nestjs/core': 'NestJS', '@hapi/hapi': 'hapi', polka: 'Polka' };

/** A script that only calls node is called without npm, which would swallow its signals; development packages are then not needed. */
function command(script: string): { command: string; prune: boolean } {
  if (/^node (?:[\w./=@:-]+ ?)+$/.test(script)) return { command: `exec ${script}`, prune: true };
  return { command: 'exec npm start', prune: false };
}
