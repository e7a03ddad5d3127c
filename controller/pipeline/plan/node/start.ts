// Finds what a Node project is: a site that is built to files, or a server and how it starts.
import type { Tree } from '../../tree.ts';
import { shellWord } from '../dockerfile-text.ts';
import { portOfStarted, startScript, type NodeApp } from './app.ts';
import { findFramework, hasPages } from './framework.ts';
import type { NodeProject } from './project.ts';
import { declaredSite, declaredStart } from '../platforms/start.ts';

const bundlers: readonly {
  readonly package: string;
  readonly framework: string;
  readonly folder: string;
  readonly fallback: boolean;
}[] = [
  { package: 'astro', framework: 'Astro', folder: 'dist', fallback: false },
  { package: '@docusaurus/core', framework: 'Docusaurus', folder: 'build', fallback: false },
  { package: 'vitepress', framework: 'VitePress', folder: '.vitepress/dist', fallback: false },
  { package: 'react-scripts', framework: 'Create React App', folder: 'build', fallback: true },
  { package: '@vue/cli-service', framework: 'Vue CLI', folder: 'dist', fallback: true },
  { package: 'vite', framework: 'Vite', folder: 'dist', fallback: true },
  { package: 'parcel', framework: 'Parcel', folder: 'dist', fallback: true },
];
/** Start scripts that only show a built site to its developer. */
const previews =
  /^(?:npx )?(?:vite|astro|react-scripts|vue-cli-service|docusaurus|vitepress|parcel|serve|http-server)\b/;
const servers = ['express', 'fastify', 'koa', 'hono', '@nestjs/core', '@hapi/hapi', 'polka'];

/** What the project is; undefined when nothing says so. */
export function findApp(tree: Tree, project: NodeProject): NodeApp | undefined {
  const declared = declaredStart(tree);
  if (declared !== undefined && declared.framework === undefined)
    return { kind: 'server', command: declared.command, because: declared.because, prune: false, port: declared.port };
  const framework = findFramework(tree, project);
  if (framework !== undefined || (project.dependencies.has('next') && !hasPages(tree))) return framework;
  return bundled(tree, project) ?? server(tree, project);
}

function bundled(tree: Tree, { dependencies, scripts }: NodeProject): NodeApp | undefined {
  const start = scripts['start'];
  const serves = start !== undefined && !previews.test(start);
  const bundler = bundlers.find((each) => dependencies.has(each.package));
  if (bundler === undefined || scripts['build'] === undefined || serves) return undefined;
  const site = declaredSite(tree);
  const folder = site?.folder ?? outputFolder(tree) ?? bundler.folder;
  return {
    kind: 'files',
    framework: bundler.framework,
    folder,
    fallback: bundler.fallback || site?.fallback === true,
    because: `${bundler.package} is among its packages and no start script serves it, so what "build" leaves in ${folder} is served.`,
  };
}

function outputFolder(tree: Tree): string | undefined {
  const file = ['vite.config.ts', 'vite.config.js', 'vite.config.mjs', 'vite.config.mts'].find((each) =>
    tree.has(each),
  );
  const folder = /\boutDir\s{0,9}:\s{0,9}["']\.?\/?([A-Za-z0-9_][A-Za-z0-9_./-]{0,100})["']/.exec(
    tree.text(file ?? '') ?? '',
  )?.[1];
  return folder?.includes('..') === true ? undefined : folder?.replace(/\/+$/, '');
}

function server(tree: Tree, { dependencies, scripts, main }: NodeProject): NodeApp | undefined {
  const library = servers.find((each) => dependencies.has(each));
  const framework = library === undefined ? {} : { framework: names[library] ?? library };
  const start = scripts['start'];
  if (start !== undefined)
    return {
      kind: 'server',
      ...framework,
      ...startScript(tree, start),
      because: 'Its start script defines how it starts.',
    };
  const file = [
    main,
    'server.js',
    'index.js',
    'app.js',
    'main.js',
    'server.mjs',
    'index.mjs',
    'src/index.js',
    'src/server.js',
  ].find((each) => each !== undefined && tree.has(each.replace(/^\.\//, '')));
  if (file === undefined) return undefined;
  return {
    kind: 'server',
    ...framework,
    command: `exec node ${shellWord(file)}`,
    because: `It has no start script, so ${file} is run.`,
    prune: true,
    port: portOfStarted(tree, file),
  };
}

const names: Readonly<Record<string, string>> = {
  express: 'Express',
  fastify: 'Fastify',
  koa: 'Koa',
  hono: 'Hono',
  '@nestjs/core': 'NestJS',
  '@hapi/hapi': 'hapi',
  polka: 'Polka',
};
