// Finds out whether what is built names a folder: in the Dockerfile, or as a package of its own.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';

/** Manifests that can name a package in a folder. */
const manifests =
  /^(?:requirements[\w.-]{0,40}\.(?:txt|in)|pyproject\.toml|setup\.(?:py|cfg)|Pipfile|package\.json|pnpm-workspace\.yaml|Cargo\.toml|go\.(?:mod|work)|CMakeLists\.txt|[\w.-]{1,80}\.csproj)$/;

/**
 * Which file of the app names the folder `path` (of the repository), as the end of a sentence: "is copied by line 3 of
 * Dockerfile". With a Dockerfile that alone decides.
 */
export function usesOf(app: Tree, appPath: string, dockerfile: string | undefined, path: string): string | undefined {
  const folder = posix.relative(appPath, path);
  if (folder.startsWith('..')) return undefined;
  const files =
    dockerfile === undefined
      ? app.entries.map((each) => each.path).filter((each) => manifests.test(each))
      : [dockerfile];
  for (const file of files) {
    const line = lineNaming(app.text(file) ?? '', folder);
    if (line !== undefined) return `is named in line ${line} of ${file}`;
  }
  return undefined;
}

/** Number of the first line, comments left out, in which the folder or something in it stands as a path. */
function lineNaming(text: string, folder: string): number | undefined {
  const found = text
    .split('\n')
    .findIndex((line) => !/^\s*(?:#|\/\/)/.test(line) && standsIn(line.slice(0, 4_000), folder));
  return found < 0 ? undefined : found + 1;
}

function standsIn(line: string, folder: string): boolean {
  for (let at = line.indexOf(folder); at >= 0; at = line.indexOf(folder, at + 1)) {
    const before = line.slice(0, at);
    const after = line.charAt(at + folder.length);
    if (/(?:^|[\s"'=:,[(])(?:\.\/)?$/.test(before.slice(-3)) && /^(?:$|[\s"'/\\,\])*])/.test(after)) return true;
  }
  return false;
}
