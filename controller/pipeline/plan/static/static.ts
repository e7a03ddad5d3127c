// Plans a site of plain files, and checks whether a browser can load it without a build.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { defaultPort, renderDockerfile, type Planner, type PlanInput, type Problem, type Recipe } from '../recipe.ts';
import { serveFiles } from './server.ts';

const folders = ['.', 'public', 'dist', 'site', '_site', 'docs', 'www', 'html', 'build'] as const;
const ignore = ['.git', '**/node_modules', '**/.DS_Store'];

export const staticSite: Planner = {
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const isAsked = input.build.strategy === 'static';
    const siteFolders = folders.filter((each) => tree.has(getIndexPath(each)));
    const folder = siteFolders.find((each) => isAsked || findMissingAsset(tree.getSubtree(each)) === undefined);
    if (folder === undefined)
      return siteFolders.includes('.')
        ? createUnbuiltProblem(getIndexPath('.'), findMissingAsset(tree) ?? '')
        : undefined;
    const port = input.port ?? defaultPort;
    const site = tree.getSubtree(folder);
    const pages = site.entries.filter((each) => each.kind === 'file' && /\.html?$/i.test(each.path)).length;
    const reason = `${getIndexPath(folder)} makes this a static site; ${folder === '.' ? 'its files are' : `the folder ${folder} is`} served as ${folder === '.' ? 'they are' : 'it is'}.`;
    return {
      plan: { strategy: 'static', reason, port },
      // A single page renders all its views itself, so every path must return it.
      dockerfile: renderDockerfile(
        reason,
        serveFiles({ port, from: folder, fallback: pages === 1, notFoundPage: site.has('404.html') }),
      ),
      ignore,
      filesOnly: true,
      findings: [],
    };
  },
};

/** A page that loads missing files would be served but stay empty. */
function createUnbuiltProblem(file: string, missing: string): Problem {
  return {
    problem: {
      rule: 'plan/unbuilt',
      severity: 'error',
      file,
      message: `This page loads ${missing.slice(0, 100)}, which is not in the repository as a browser can read it.`,
      fix: 'Commit the file, add a package.json with a "build" script that makes it, or set build.strategy: static in moorage.yaml to serve the files as they are.',
    },
  };
}

function getIndexPath(folder: string): string {
  return folder === '.' ? 'index.html' : `${folder}/index.html`;
}

const pageBytes = 256 * 1024;
const tags = /<(?:script|link)\b[^>]{0,500}?\b(?:src|href)\s{0,3}=\s{0,3}["']?([^"'\s>]{1,300})/gi;
/** Source files that browsers cannot load. */
const unbuiltSource = /\.(?:tsx?|jsx|vue|svelte|scss|sass|less|styl|coffee|elm)$/i;
const assetExtension = /\.(?:m?js|css|tsx?|jsx|vue|svelte|scss|sass|less|styl|coffee|elm)$/i;

/** Returns whether every local script and style of index.html exists and can be loaded by a browser. */
export function hasAllAssets(tree: Tree, page = 'index.html'): boolean {
  return findMissingAsset(tree, page) === undefined;
}

/** Finds a script or style of a page that does not exist or must be built first; undefined if there is none. */
export function findMissingAsset(tree: Tree, page = 'index.html'): string | undefined {
  const text = tree.readFile(page, pageBytes) ?? '';
  const importMap = /type\s{0,3}=\s{0,3}["']importmap["']/i.test(text);
  return [...text.matchAll(tags)]
    .map((match) => (match[1] ?? '').replace(/[?#].*$/, ''))
    .filter((path) => assetExtension.test(path) && !/^(?:[a-z][a-z0-9+.-]{0,20}:|\/\/)|[{}%<]/i.test(path))
    .slice(0, 100)
    .find((path) => isMissing(tree, posix.dirname(page), path, importMap));
}

function isMissing(tree: Tree, folder: string, path: string, importMap: boolean): boolean {
  if (unbuiltSource.test(path)) return true;
  const file = posix.normalize(path.startsWith('/') ? path.slice(1) : posix.join(folder, path));
  // A site under a subpath refers to its files with that prefix.
  const found = [file, file.split('/').slice(1).join('/')].find((each) => tree.has(each));
  if (found === undefined) return true;
  return (
    !importMap &&
    /\.m?js$/.test(found) &&
    /^\s{0,9}import\b[^\n'"]{0,200}["'][@\w]/m.test(tree.readFile(found, pageBytes) ?? '')
  );
}
