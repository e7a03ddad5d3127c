// Says whether a browser can load the page as it stands in the repository, or whether something has to be built first.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';

const pageBytes = 256 * 1024;
const tags = /<(?:script|link)\b[^>]{0,500}?\b(?:src|href)\s{0,3}=\s{0,3}["']?([^"'\s>]{1,300})/gi;
/** What no browser reads. */
const unbuilt = /\.(?:tsx?|jsx|vue|svelte|scss|sass|less|styl|coffee|elm)$/i;
const wanted = /\.(?:m?js|css|tsx?|jsx|vue|svelte|scss|sass|less|styl|coffee|elm)$/i;

/** All scripts and styles that index.html loads from here are here, and are what a browser reads. */
export function loadsAsIs(tree: Tree, page = 'index.html'): boolean {
  return missingAsset(tree, page) === undefined;
}

/** A script or style of a page that is not there, or that has to be built first; undefined when there is none. */
export function missingAsset(tree: Tree, page = 'index.html'): string | undefined {
  const text = tree.text(page, pageBytes) ?? '';
  const importMap = /type\s{0,3}=\s{0,3}["']importmap["']/i.test(text);
  return [...text.matchAll(tags)]
    .map((match) => (match[1] ?? '').replace(/[?#].*$/, ''))
    .filter((path) => wanted.test(path) && !/^(?:[a-z][a-z0-9+.-]{0,20}:|\/\/)|[{}%<]/i.test(path))
    .slice(0, 100)
    .find((path) => isMissing(tree, posix.dirname(page), path, importMap));
}

function isMissing(tree: Tree, folder: string, path: string, importMap: boolean): boolean {
  if (unbuilt.test(path)) return true;
  const file = posix.normalize(path.startsWith('/') ? path.slice(1) : posix.join(folder, path));
  // A site below a path of its own names its files from there.
  const found = [file, file.split('/').slice(1).join('/')].find((each) => tree.has(each));
  if (found === undefined) return true;
  return (
    !importMap &&
    /\.m?js$/.test(found) &&
    /^\s{0,9}import\b[^\n'"]{0,200}["'][@\w]/m.test(tree.text(found, pageBytes) ?? '')
  );
}
