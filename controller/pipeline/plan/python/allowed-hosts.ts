// The variable by which Django settings let the operator say which host names are answered. Only the gateway reaches an
// app, with the names of the app alone, so any is allowed where nothing else is said.
import type { Tree } from '../../tree.ts';
import { settingsFiles } from './settings.ts';

const reads: readonly RegExp[] = [
  /^\s*ALLOWED_HOSTS\b[^\n]{0,80}(?:[Ee]nv|config|[Ss]ecret)[^\n]{0,40}["']([A-Z][A-Z0-9_]{0,40}HOSTS?)["']/m,
  // Read first, and put to use in a line of its own.
  /^[^#\n]{0,80}(?:[Ee]nv|config)[^#\n]{0,40}["']((?:[A-Z][A-Z0-9]{0,20}_)?ALLOWED_HOSTS)["']/m,
];

/** Variables of the image; none where the settings read none. */
export function allowedHosts(tree: Tree): Readonly<Record<string, string>> {
  for (const path of settingsFiles(tree)) {
    const text = tree.text(path) ?? '';
    const name = reads.map((each) => each.exec(text)?.[1]).find((each) => each !== undefined);
    if (name !== undefined) return { [name]: '*' };
  }
  return {};
}
