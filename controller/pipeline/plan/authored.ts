// Decides whether the author's own Dockerfile is built.
import type { Tree } from '../tree.ts';
import type { PlanInput } from './recipe.ts';

/** True when the author asks for it, or gives one and asks for nothing else. The tree is that of source.path. */
export function authoredDockerfile(tree: Tree, build: PlanInput['build']): boolean {
  if (build.strategy === 'dockerfile') return true;
  return build.strategy === 'auto' && (tree.entry(build.dockerfile) !== undefined || build.dockerfile !== 'Dockerfile');
}
