// Plans a site of plain files.
import type { Tree } from '../../tree.ts';
import { dockerfileText } from '../dockerfile-text.ts';
import type { Language, PlanInput, Problem, Recipe } from '../recipe.ts';
import { missingAsset } from './assets.ts';
import { defaultPort } from '../recipe.ts';
import { serveFiles } from './server.ts';

const folders = ['.', 'public', 'dist', 'site', '_site', 'docs', 'www', 'html', 'build'] as const;
const ignore = ['.git', '**/node_modules', '**/.DS_Store'];

export const staticSite: Language = {
  name: 'static',
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined {
    const isAsked = input.build.strategy === 'static';
    const found = folders.filter((each) => tree.has(index(each)));
    const folder = found.find((each) => isAsked || missingAsset(tree.below(each)) === undefined);
    if (folder === undefined) return found.includes('.') ? unbuilt(index('.'), missingAsset(tree) ?? '') : undefined;
    const port = input.port ?? defaultPort;
    const site = tree.below(folder);
    const pages = site.entries.filter((each) => each.kind === 'file' && /\.html?$/i.test(each.path)).length;
    const reason = `${index(folder)} makes this a static site; ${folder === '.' ? 'its files are' : `the folder ${folder} is`} served as ${folder === '.' ? 'they are' : 'it is'}.`;
    return {
      plan: { strategy: 'static', reason, port },
      // A single page draws all its views itself, so any path must lead to it.
      dockerfile: dockerfileText(
        reason,
        serveFiles({ port, from: folder, fallback: pages === 1, notFoundPage: site.has('404.html') }),
      ),
      ignore,
      filesOnly: true,
      findings: [],
    };
  },
};

/** A page that loads what is not there would be served, and stay empty. */
function unbuilt(file: string, missing: string): Problem {
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

function index(folder: string): string {
  return folder === '.' ? 'index.html' : `${folder}/index.html`;
}
