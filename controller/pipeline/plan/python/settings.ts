// Finds a Django project's settings, and the variable that lists the allowed host names.
import type { Tree } from '../../tree.ts';

const maximumFiles = 20;

/** Lists settings.py, config/settings/base.py and similar files. */
export function listSettingsFiles(tree: Tree): string[] {
  return tree.entries
    .filter((each) => each.kind === 'file' && /^(?:[^/]+\/){0,3}settings(?:\/[^/]+|[^/]*)\.py$/.test(each.path))
    .slice(0, maximumFiles)
    .map((each) => each.path);
}

const reads: readonly RegExp[] = [
  /^\s*ALLOWED_HOSTS\b[^\n]{0,80}(?:[Ee]nv|config|[Ss]ecret)[^\n]{0,40}["']([A-Z][A-Z0-9_]{0,40}HOSTS?)["']/m,
  // Read into a variable first, and used on a later line.
  /^[^#\n]{0,80}(?:[Ee]nv|config)[^#\n]{0,40}["']((?:[A-Z][A-Z0-9]{0,20}_)?ALLOWED_HOSTS)["']/m,
];

/**
 * Returns variables for the image; none if the settings read none. Without other settings, any host name is allowed:
 * only the gateway can reach an app, and only under the app's names.
 */
export function buildAllowedHosts(tree: Tree): Readonly<Record<string, string>> {
  for (const path of listSettingsFiles(tree)) {
    const text = tree.text(path) ?? '';
    const name = reads.map((each) => each.exec(text)?.[1]).find((each) => each !== undefined);
    if (name !== undefined) return { [name]: '*' };
  }
  return {};
}
