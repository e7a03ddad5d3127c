// Finds the settings of a Django project.
import type { Tree } from '../../tree.ts';

const maximumFiles = 20;

/** Paths of settings.py, config/settings/base.py and the like. */
export function settingsFiles(tree: Tree): string[] {
  return tree.entries
    .filter((each) => each.kind === 'file' && /^(?:[^/]+\/){0,3}settings(?:\/[^/]+|[^/]*)\.py$/.test(each.path))
    .slice(0, maximumFiles)
    .map((each) => each.path);
}
