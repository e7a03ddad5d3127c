// Reads which adapter SvelteKit and Astro build with, by evaluating the configuration as the build here would.
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Tree } from '../../tree.ts';
import type { Certainty } from '../recipe.ts';
import { readPath, resolveValues } from '../syntax/resolve.ts';
import {
  parseScript,
  readLiteralText,
  type ScriptCall,
  type ScriptModule,
  type ScriptValue,
} from '../syntax/javascript.ts';

/** What a configuration builds for. */
export interface Adapter {
  /**
   * `node`: a server; `files`: pages; `auto`: SvelteKit looks for a platform that it knows, and finds none here;
   * `foreign`: another platform; `none`: the configuration has no adapter.
   */
  readonly target: 'node' | 'files' | 'auto' | 'foreign' | 'none';
  /** Package of the adapter, or the file of the project that is one. */
  readonly package?: string;
  readonly file?: string;
  /** Folder that it writes to, if the configuration sets one. */
  readonly folder?: string;
  /** Whether @astrojs/node makes a handler for a server of the author's instead of a server. */
  readonly isMiddleware?: boolean;
  readonly certainty: Certainty;
  /** Adapters of the other branches of a condition that cannot be evaluated. */
  readonly others: readonly string[];
}

const configs = {
  svelte: ['svelte.config.js', 'svelte.config.ts', 'svelte.config.mjs'],
  astro: ['astro.config.mjs', 'astro.config.ts', 'astro.config.js', 'astro.config.cjs'],
} as const;

const known =
  /^(?:@sveltejs\/adapter-|@astrojs\/(?:node|vercel|netlify|cloudflare|deno)|(?:svelte|sveltekit|astro)-adapter-|svelte-kit-sst|@deno\/astro-adapter)/;

/** Detects the adapter of a SvelteKit project. Without a configuration file, only its packages show it. */
export function detectSvelteAdapter(tree: Tree, dependencies: ReadonlySet<string>): Adapter {
  const file = configs.svelte.find((each) => tree.has(each));
  if (file === undefined) return fromPackages(dependencies);
  return detectAdapter(tree, file, ['kit', 'adapter'], 'build');
}

/** Detects the adapter of an Astro project: without one, every page is prerendered. */
export function detectAstroAdapter(tree: Tree): Adapter {
  const file = configs.astro.find((each) => tree.has(each));
  const adapter = file === undefined ? undefined : detectAdapter(tree, file, ['adapter'], 'dist');
  if (adapter === undefined || adapter.target === 'none')
    return { target: 'files', certainty: 'likely', others: adapter?.others ?? [] };
  return adapter;
}

/** Reports an adapter whose output cannot run here. */
export function rejectAdapter({ target, package: name, file, isMiddleware }: Adapter): Finding | undefined {
  const isSvelte = file?.startsWith('svelte') === true;
  const place = file === undefined ? {} : { file };
  const fixes = {
    svelte: 'Use @sveltejs/adapter-node or @sveltejs/adapter-static there, and commit the lock file.',
    astro:
      'Use @astrojs/node with mode "standalone" there, or no adapter if every page can be prerendered, and commit the lock file.',
  };
  const finding = {
    rule: 'plan/adapter',
    severity: 'error',
    ...place,
    fix: isSvelte ? fixes.svelte : fixes.astro,
  } as const;
  if (isMiddleware === true)
    return {
      ...finding,
      message: `${name ?? ''} has the mode "middleware": the build makes a handler for another server, and no server.`,
    };
  if (target === 'foreign')
    return { ...finding, message: `${name ?? ''} builds for another platform, and its output cannot run here.` };
  return target === 'none' && isSvelte
    ? { ...finding, message: 'SvelteKit has no adapter in this file, so its build leaves nothing that can be started.' }
    : undefined;
}

function fromPackages(dependencies: ReadonlySet<string>): Adapter {
  const names = ['@sveltejs/adapter-node', '@sveltejs/adapter-static'].filter((name) => dependencies.has(name));
  const [name] = names;
  return name === undefined
    ? { target: 'auto', certainty: 'guessed', others: [] }
    : { target: toTarget(name), package: name, certainty: 'guessed', others: names.slice(1) };
}

function detectAdapter(tree: Tree, file: string, path: readonly string[], usualFolder: string): Adapter {
  const text = tree.readFile(file) ?? '';
  const module = parseScript(text);
  const found = readPath(module.exported, path, module).flatMap((value) => listAdapters(value, module));
  // Helpers of the project can make the configuration; the packages that the file imports still show its adapter.
  const imported = [...new Set(module.sources)].filter((name) => known.test(name));
  const isRead = found.length > 0;
  const uses = isRead ? found : imported.map((name): AdapterUse => ({ package: name }));
  const [use] = uses.toSorted((one, other) => rank(one) - rank(other));
  if (use === undefined) return { target: 'none', file, certainty: 'likely', others: [] };
  const others = [...new Set(uses.map((each) => each.package))].filter((name) => name !== use.package);
  const target = toTarget(use.package);
  const folder = readText(use.options, target === 'files' ? ['pages'] : ['out'], module) ?? usualFolder;
  return {
    target,
    package: use.package,
    file,
    folder:
      /^(?:\.\/)?[\w][\w./-]{0,100}$/.test(folder) && !folder.includes('..')
        ? folder.replace(/^\.\/|\/+$/g, '')
        : usualFolder,
    ...(use.package === '@astrojs/node' && readText(use.options, ['mode'], module) === 'middleware'
      ? { isMiddleware: true }
      : {}),
    certainty: isRead && others.length === 0 ? 'likely' : 'guessed',
    others,
  };
}

interface AdapterUse {
  readonly package: string;
  readonly options?: ScriptValue;
}

/** Of several readings, one that can run here comes first. */
function rank({ package: name }: AdapterUse): number {
  return ['node', 'files', 'auto', 'none', 'foreign'].indexOf(toTarget(name));
}

function toTarget(name: string): Adapter['target'] {
  if (name === '@sveltejs/adapter-node' || name === '@astrojs/node') return 'node';
  if (name === '@sveltejs/adapter-static') return 'files';
  return name === '@sveltejs/adapter-auto' ? 'auto' : 'foreign';
}

/** Lists the adapters that an expression may be: one, unless it depends on something unknown. */
function listAdapters(value: ScriptValue, module: ScriptModule): AdapterUse[] {
  return resolveValues(value, module).flatMap((each): AdapterUse[] => {
    if (each.kind !== 'call') return [];
    const source = findSource(each.call, module);
    return source === undefined ? [] : [{ package: stripPath(source), ...toOptions(each.call) }];
  });
}

function toOptions({ args: [options] }: ScriptCall): Pick<AdapterUse, 'options'> {
  return options === undefined ? {} : { options };
}

function findSource({ callee, source }: ScriptCall, { imports }: ScriptModule): string | undefined {
  return source ?? imports.get(callee.split('.')[0] ?? '');
}

/** "@astrojs/vercel/serverless" is of the package "@astrojs/vercel". */
function stripPath(source: string): string {
  return /^(?:@[\w.-]{1,100}\/)?[\w.-]{1,100}/.exec(source)?.[0] ?? source;
}

function readText(value: ScriptValue | undefined, path: readonly string[], module: ScriptModule): string | undefined {
  const [found] = readPath(value, path, module).flatMap((each) => resolveValues(each, module));
  return readLiteralText(found);
}
