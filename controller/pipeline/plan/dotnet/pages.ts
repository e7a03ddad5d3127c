// Finds pages of Node beside a .NET server that answers calls alone, which no project of it builds.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { readProject } from '../node/project.ts';
import type { Problem } from '../recipe.ts';
import type { DotnetProject } from './project.ts';

const frameworks = ['@angular/core', 'react-dom', 'vue', 'svelte', 'preact', 'solid-js'];
const manifest = /^(?:[^/]+\/){1,3}package\.json$/;
const aside = /(?:^|\/)(?:tests?|e2e|docs?|website|examples?|samples?|node_modules|\.[^/]+)\//i;

/** Half of an app is not served in silence. */
export function otherHalf(tree: Tree, server: DotnetProject): Problem | undefined {
  const folder = tree.entries
    .filter(({ kind, path }) => kind === 'file' && manifest.test(path) && !aside.test(path))
    .slice(0, 20)
    .map(({ path }) => posix.dirname(path))
    .find((each) => frameworks.some((name) => readProject(tree.below(each))?.dependencies.has(name) === true));
  if (folder === undefined) return undefined;
  return {
    problem: {
      rule: 'plan/half-app',
      severity: 'error',
      file: server.path,
      message: `${server.path} answers calls and has no pages; those in ${folder} are built by no project of .NET. Started alone, it is half of the app.`,
      fix: `Let the project build them when it is published (SpaRoot, or a reference to an .esproj), commit them in its wwwroot, or add a Dockerfile that does both.`,
    },
  };
}
