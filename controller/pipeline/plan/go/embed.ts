// Finds folders that a Go program embeds and that nobody has committed: the pages that have to be built first.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { goFiles } from './main-package.ts';

/** Files that stand in for what a build makes. */
const placeholder = /^(?:\.git(?:keep|ignore)|\.keep|\.placeholder|README\.md|dist\.txt|empty.{0,20})$/i;

/** Folders below the top, such as web/dist, from `//go:embed` lines whose files are not there. */
export function missingEmbeds(tree: Tree): string[] {
  const found = goFiles(tree).flatMap((path) =>
    [...(tree.text(path, 64 * 1024) ?? '').matchAll(/^[ \t]{0,9}\/\/go:embed[ \t]{1,9}([^\n]{1,300})$/gm)]
      .flatMap((match) => (match[1] ?? '').split(/\s+/))
      .map((pattern) => folderOf(posix.dirname(path), pattern)),
  );
  const folders = [...new Set(found)].filter((folder) => folder !== undefined);
  return [...folders.filter((folder) => isMissing(tree, folder)), ...ignoredBelow(tree, folders)];
}

/** Folders within an embedded one that .gitignore keeps out of the repository. */
function ignoredBelow(tree: Tree, folders: readonly string[]): string[] {
  return (tree.text('.gitignore', 64 * 1024) ?? '')
    .split('\n')
    .map((line) => line.trim().replace(/^\/|\/\*{0,2}$/g, ''))
    .filter((line) => /^[\w./-]{3,200}$/.test(line) && folders.some((folder) => line.startsWith(`${folder}/`)))
    .filter((line) => tree.entry(line) === undefined && posix.extname(line) === '');
}

/** The part of a pattern before its first wildcard, as a folder of the tree. */
function folderOf(at: string, pattern: string): string | undefined {
  const fixed =
    pattern
      .replace(/^["'`]|["'`]$/g, '')
      .replace(/^all:/, '')
      .split('*')[0] ?? '';
  const folder = fixed.endsWith('/') ? fixed.slice(0, -1) : posix.extname(fixed) === '' ? fixed : posix.dirname(fixed);
  return folder === '' || folder === '.' ? undefined : posix.join(at, folder);
}

function isMissing(tree: Tree, folder: string): boolean {
  const inside = tree.below(folder).entries.filter((each) => each.kind === 'file');
  const built = /(?:^|\/)(?:dist|build|out|public|static)$/.test(folder);
  return inside.every((each) => placeholder.test(posix.basename(each.path))) || (built && onlyStandIn(tree, folder));
}

/** A page of a few bytes, so that the program compiles without the real one. */
function onlyStandIn(tree: Tree, folder: string): boolean {
  const inside = tree.below(folder).entries.filter((each) => each.kind === 'file' && !placeholder.test(each.path));
  const [only] = inside;
  return (
    inside.length === 1 &&
    only?.path === 'index.html' &&
    only.bytes < 600 &&
    !/<script/.test(tree.text(`${folder}/index.html`) ?? '')
  );
}
