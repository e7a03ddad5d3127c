// Finds the folders below the top of a repository that look like apps.
import type { Tree } from '../tree.ts';

const manifest = /^((?:[^/]+\/){1,2})(?:Dockerfile|package\.json|requirements\.txt|pyproject\.toml)$/;
/** What stands beside an app, and is none. */
const aside =
  /(?:^|\/)(?:tests?|e2e|docs?|documentation|website|examples?|samples?|templates?|scripts?|tools|benchmarks?|infra|deploy|node_modules|\.[^/]+)(?:\/|$)/i;

/** Folders with a manifest of their own, at most two levels down; none within another. */
export function appFolders(tree: Tree): string[] {
  const found = tree.entries.flatMap((each) =>
    each.kind === 'file' ? (manifest.exec(each.path)?.[1]?.slice(0, -1) ?? []) : [],
  );
  const folders = [...new Set(found)].filter((folder) => !aside.test(folder));
  return folders.filter((folder) => !folders.some((other) => folder.startsWith(`${other}/`)));
}
