// Detects whether a Node project is a static site or a server, and how the server starts.
import { plannedLanguages } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { readField, readKeys, parseJson, readText } from '../../manifest.ts';
import { quoteShellWord } from '../recipe.ts';
import {
  resolveFinalStart,
  type NodeApp,
  findPortOfStartedFile,
  findServerLibrary,
  resolveScriptStart,
  describeUnstartedServer,
} from './app.ts';
import { findFramework, hasPages } from './framework.ts';
import type { NodeProject } from './project.ts';
import { findDeclaredSite, findDeclaredStart } from '../platforms/start.ts';

/** Frameworks whose server sends pages. */
export function isPageServer(framework: string): boolean {
  return ['Next.js', 'Nuxt', 'SvelteKit', 'Astro'].includes(framework);
}

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
  { package: '@angular/cli', framework: 'Angular', folder: 'dist', fallback: true },
  { package: 'gatsby', framework: 'Gatsby', folder: 'public', fallback: false },
  { package: '@11ty/eleventy', framework: 'Eleventy', folder: '_site', fallback: false },
  { package: 'vite', framework: 'Vite', folder: 'dist', fallback: true },
  { package: 'parcel', framework: 'Parcel', folder: 'dist', fallback: true },
];
/** Start scripts that only preview a site for its developer. */
const previews =
  /^(?:npx |bunx |pnpm exec |yarn )?(?:cross-env )?(?:\w+=\S* )*(?:vite|astro|react-scripts|react-app-rewired|craco|vue-cli-service|docusaurus|vitepress|parcel|serve|http-server|ng|nx|gatsby|eleventy|webpack(?:-dev-server)?|rsbuild|farm|umi|max|snowpack|live-server|browser-sync)\b/;
/** Start scripts that open a window, run every package of a workspace, or start nothing that serves. */
const serveNobody =
  /\b(?:electron(?:-\w+)?|tauri|expo|react-native|turbo|lerna)\b|\bnx run-many\b|\bpnpm (?:-r|--recursive)\b|^echo\b/;

/** Procfile commands of apps in other languages, whatever package.json builds. */
const otherLanguage = new RegExp(
  String.raw`(?:^|[\s/;&|])(?:${plannedLanguages.flatMap(({ programs = [] }) => programs).join('|')})(?:\s|$)`,
);

/** Detects the app; undefined if nothing identifies one. */
export function findApp(tree: Tree, project: NodeProject): NodeApp | undefined {
  const declaredStart = findDeclaredStart(tree);
  if (
    declaredStart !== undefined &&
    declaredStart.framework === undefined &&
    !otherLanguage.test(declaredStart.command)
  )
    return {
      kind: 'server',
      command: declaredStart.command,
      because: declaredStart.because,
      prune: false,
      port: declaredStart.port,
    };
  const framework = findFramework(tree, project);
  if (framework !== undefined || (project.dependencies.has('next') && !hasPages(tree))) return framework;
  return detectBundledApp(tree, project) ?? detectServer(tree, project);
}

function detectBundledApp(tree: Tree, project: NodeProject): NodeApp | undefined {
  const bundler = bundlers.find((each) => project.dependencies.has(each.package));
  if (bundler === undefined || !isSite(tree, project, bundler.package)) return undefined;
  const site = findDeclaredSite(tree);
  const built =
    bundler.package === '@angular/cli' ? findAngularFolder(tree) : (findOutputFolder(tree) ?? bundler.folder);
  const folder = site?.folder ?? built;
  return {
    kind: 'files',
    framework: bundler.framework,
    folder,
    fallback: bundler.fallback || site?.fallback === true,
    because: `${bundler.package} is among its packages and no start script serves it, so what "build" leaves in ${folder} is served.`,
  };
}

/** Returns whether the project builds static files that none of its own programs serves. */
function isSite(tree: Tree, project: NodeProject, bundler: string): boolean {
  const start = resolveFinalStart(tree, project.scripts);
  if (project.scripts['build'] === undefined || (start !== undefined && !previews.test(start))) return false;
  // A server that no script starts is the other half of the app.
  if (describeUnstartedServer(tree, project) !== undefined) return false;
  return bundler !== 'vite' || hasPage(tree, project.isWorkspace);
}

/** Returns whether a script calls another one that only previews a site, or that does not serve anything. */
function isPreviewOnly(script: string | undefined, start: string | undefined): boolean {
  if (script === undefined || start === undefined) return false;
  return serveNobody.test(script) || /^(?:ng|nx) /.test(script) || (script !== start && previews.test(script));
}

/** Vite also builds libraries, which have no page. */
function hasPage(tree: Tree, isWorkspace: boolean): boolean {
  // In a workspace, one of the packages has the pages.
  if (isWorkspace) return tree.has('index.html');
  return tree.entries.some((each) => each.kind === 'file' && /^(?:[^/]{1,60}\/){0,3}index\.html$/.test(each.path));
}

/** Returns the folder of the pages from angular.json; since version 17 they are in a subfolder. */
function findAngularFolder(tree: Tree): string {
  const projects = readField(parseJson(tree.readFile('angular.json')), 'projects');
  const [name = 'app'] = readKeys({ projects }, 'projects');
  const build = readField(projects, name, 'architect', 'build');
  const path =
    readText(build, 'options', 'outputPath') ?? readText(build, 'options', 'outputPath', 'base') ?? `dist/${name}`;
  const plain = /^[\w./-]{1,100}$/.test(path) && !path.includes('..') ? path.replace(/\/+$/, '') : 'dist';
  return /:application$/.test(readText(build, 'builder') ?? '') ? `${plain}/browser` : plain;
}

function findOutputFolder(tree: Tree): string | undefined {
  const file = ['vite.config.ts', 'vite.config.js', 'vite.config.mjs', 'vite.config.mts'].find((each) =>
    tree.has(each),
  );
  const folder = /\boutDir\s{0,9}:\s{0,9}["']\.?\/?([A-Za-z0-9_][A-Za-z0-9_./-]{0,100})["']/.exec(
    tree.readFile(file ?? '') ?? '',
  )?.[1];
  return folder?.includes('..') === true ? undefined : folder?.replace(/\/+$/, '');
}

/** Start scripts that compile first, for development. */
const compilesFirst = /^(?:nest start|nodemon|ts-node-dev|tsx watch)\b/;

/** Returns the name of the start script, or of the production one if the former compiles first. */
function chooseServingScript(scripts: NodeProject['scripts']): 'start' | 'start:prod' {
  const isSlow = compilesFirst.test(scripts['start'] ?? '');
  return isSlow && scripts['start:prod'] !== undefined ? 'start:prod' : 'start';
}

interface WatchedStart {
  readonly command: string;
  readonly file: string;
  /** It runs without its development packages. */
  readonly prune: boolean;
}

/** Programs of packages are next to the package or at the root of its workspace. */
export const findsPrograms = 'export PATH=$PWD/node_modules/.bin:/app/node_modules/.bin:$PATH';
/** A development script that starts one file, and starts it again whenever a source changes. */
const watched =
  /^(?:cross-env )?(?:\w{1,40}=\S{0,60} ){0,4}(?:(tsx) watch|node --watch|nodemon|bun (?:run )?--(?:watch|hot)) ((?:--?[\w-]{1,30}(?:=\S{1,60})? ){0,4}(?:--tsconfig \S{1,60} )?)(?:\.\/)?([\w./-]{1,100}\.[cm]?[jt]s)$/;

/** Finds the server that a development script starts, for a project without a start script. It runs without the watching. */
export function findWatchedStart(tree: Tree, project: NodeProject): WatchedStart | undefined {
  const { runtime, scripts } = project;
  const match = ['dev', 'start:dev', 'develop'].map((name) => watched.exec(scripts[name] ?? '')).find(Boolean);
  const [, tsx, options = '', file] = match ?? [];
  const text = file === undefined ? undefined : tree.readFile(file, 64 * 1024);
  if (file === undefined || text === undefined || scripts['start'] !== undefined) return undefined;
  const isServer = findServerLibrary(runtime) !== undefined || /\.listen\(|\bserve\(/.test(text);
  return isServer ? stopWatching(file, tsx === undefined ? undefined : options, project) : undefined;
}

/** Starts a file once; undefined if nothing that is installed can run its language. `options` are those of tsx. */
function stopWatching(
  file: string,
  options: string | undefined,
  { dependencies, manager }: NodeProject,
): WatchedStart | undefined {
  if (options !== undefined && dependencies.has('tsx')) {
    const [config = ''] = /--tsconfig[ =]\S+ /.exec(options) ?? [];
    return { command: `${findsPrograms}; exec tsx ${config}${file}`, file, prune: false };
  }
  const isBun = manager === 'bun';
  if (!isBun && !/\.[cm]?js$/.test(file)) return undefined;
  return { command: `exec ${isBun ? 'bun' : 'node'} ${file}`, file, prune: true };
}

function detectServer(tree: Tree, project: NodeProject): NodeApp | undefined {
  const { dependencies, scripts, main, manager } = project;
  const library = findServerLibrary(dependencies);
  const framework = library === undefined ? {} : { framework: names[library] ?? library };
  const name = chooseServingScript(scripts);
  const start = scripts[name];
  if (isPreviewOnly(resolveFinalStart(tree, scripts), start)) return undefined;
  if (start !== undefined)
    return {
      kind: 'server',
      ...framework,
      ...resolveScriptStart(tree, start, name),
      because: `Its ${name} script defines how it starts.`,
    };
  const watching = findWatchedStart(tree, project);
  if (watching !== undefined)
    return {
      kind: 'server',
      ...framework,
      command: watching.command,
      because: `It has no start script, so ${watching.file} is run, which its development script starts.`,
      prune: watching.prune,
      certainty: 'likely',
      port: findPortOfStartedFile(tree, watching.file),
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
    ...(manager === 'bun' ? ['index.ts', 'server.ts', 'src/index.ts', 'src/server.ts', 'src/main.ts'] : []),
  ].find((each) => each !== undefined && tree.has(each.replace(/^\.\//, '')));
  if (file === undefined) return undefined;
  return {
    kind: 'server',
    ...framework,
    command: `exec ${manager === 'bun' ? 'bun' : 'node'} ${quoteShellWord(file)}`,
    because: `It has no start script, so ${file} is run.`,
    prune: true,
    certainty: 'guessed',
    port: findPortOfStartedFile(tree, file),
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
