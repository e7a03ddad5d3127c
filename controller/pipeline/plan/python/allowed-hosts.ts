// The variable by which Django settings let the operator say which host names are answered. Only the gateway reaches an
// app, with the names of the app alone, so any is allowed where nothing else is said.
import type { Tree } from '../../tree.ts';
import { settingsFiles } from './settings.ts';

const read =
  /^\s*ALLOWED_HOSTS\b[^\n]{0,80}(?:[Ee]nv|config|[Ss]ecret)[^\n]{0,40}["']([A-Z][A-Z0-9_]{0,40}HOSTS?)["']/m;

/** Variables of the image; none where the settings read none. */
export function allowedHosts(tree: Tree): Readonly<Record<string, string>> {
  for (const path of settingsFiles(tree)) {
    const name = read.exec(tree.text(path) ?? '')?.[1];
    if (name !== undefined) return { [name]: '*' };
  }
  return {};
}
