// Finds the package of a Go module that is the app.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';

export interface MainPackage {
  /** Folder, "." for the top. */
  readonly folder: string;
  /** Others that could have been meant. */
  readonly others: readonly string[];
}

const maximumFiles = 400;
const aside =
  /(?:^|\/)(?:vendor|testdata|tests?|e2e|examples?|_examples|hack|scripts?|tools?|docs?|internal\/tools?|bench(?:mark)?s?|node_modules|\.[^/]+)(?:\/|$)/;
const likeServer = /^(?:server|web|api|app|main|httpd?|service|backend)$/;

/** The packages that have a main function; the one that is called like the module or like a server is taken. */
export function findMain(tree: Tree, module: string): MainPackage | undefined {
  const folders = [
    ...new Set(
      goFiles(tree)
        .filter((path) => isMain(tree.text(path, 64 * 1024) ?? ''))
        .map((path) => posix.dirname(path)),
    ),
  ];
  const name = posix.basename(module.replace(/\/v\d{1,3}$/, ''));
  const chosen =
    folders.find((each) => each === '.') ??
    folders.find((each) => posix.basename(each) === name) ??
    folders.find((each) => likeServer.test(posix.basename(each))) ??
    folders.find((each) => /server|web|api/.test(posix.basename(each))) ??
    folders[0];
  return chosen === undefined ? undefined : { folder: chosen, others: folders.filter((each) => each !== chosen) };
}

/** Go files of the app itself, the shallowest first. */
export function goFiles(tree: Tree): string[] {
  return tree.entries
    .filter(
      (each) =>
        each.kind === 'file' && each.path.endsWith('.go') && !each.path.endsWith('_test.go') && !aside.test(each.path),
    )
    .map((each) => each.path)
    .toSorted((one, other) => one.split('/').length - other.split('/').length || (one < other ? -1 : 1))
    .slice(0, maximumFiles);
}

function isMain(text: string): boolean {
  return /^package main\b/m.test(text) && /^func main\(\)/m.test(text) && !/^\/\/go:build ignore\b/m.test(text);
}
