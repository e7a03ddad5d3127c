// Finds the settings of a Django project, and the variable that lists the allowed host names.
import type { Tree } from '../../tree.ts';

const maximumFiles = 20;

/** Paths of settings.py, config/settings/base.py and the like. */
export function listSettingsFiles(tree: Tree): string[] {
  return tree.entries
    .filter((each) => each.kind === 'file' && /^(?:[^/]+\/){0,3}settings(?:\/[^/]+|[^/]*)\.py$/.test(each.path))
    .slice(0, maximumFiles)
    .map((each) => each.path);
}

const reads: readonly RegExp[] = [
  /^\s*ALLOWED_HOSTS\b[^\n]{0,80}(?:[Ee]nv|config|[Ss]ecret)[^\n]{0,40}["']([A-Z][A-Z0-9_]{0,40}HOSTS?)["']/m,
  // Read first, and put to use in a line of its own.
  /^[^#\n]{0,80}(?:[Ee]nv|config)[^#\n]{0,40}["']((?:[A-Z][A-Z0-9]{0,20}_)?ALLOWED_HOSTS)["']/m,
];

/**
 * Variables of the image; none where the settings read none. Any host name is allowed where nothing else is said: only the
 * gateway reaches an app, and only with that app's names.
 */
export function buildAllowedHosts(tree: Tree): Readonly<Record<string, string>> {
  for (const path of listSettingsFiles(tree)) {
    const text = tree.text(path) ?? '';
    const name = reads.map((each) => each.exec(text)?.[1]).find((each) => each !== undefined);
    if (name !== undefined) return { [name]: '*' };
  }
  return {};
}
