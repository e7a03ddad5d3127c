// Finds the folders below the top of a repository that look like apps.
import { posix } from 'node:path';
import type { Tree } from '../tree.ts';
import { isMarker } from './markers.ts';

const manifest =
  /^(?:Dockerfile|package\.json|requirements\.txt|pyproject\.toml|Pipfile|setup\.py|environment\.ya?ml)$/;
/** What stands beside an app, and is none. */
const aside =
  /(?:^|\/)(?:tests?|e2e|docs?|documentation|website|examples?|samples?|templates?|fixtures?|playgrounds?|scripts?|tools|benchmarks?|infra|(?:cloud-)?deploy(?:ment)?s?|db|database|postgres(?:ql)?|mysql|mongo(?:db)?|redis|nginx|traefik|caddy|docker|dockerfiles?|containers?|packaging|k8s|kubernetes|helm|storybook|landing(?:-page)?|(?:chrome-|browser-|vscode-)?extensions?|mobile|android|ios|desktop|electron|src-tauri|sdks?|cli|node_modules|vendor|third[_-]party|\.[^/]+)(?:\/|$)/i;

/** Folders with a manifest of their own, at most two levels down; none within another. */
export function appFolders(tree: Tree): string[] {
  const found = tree.entries.flatMap((each) => {
    const folder = posix.dirname(each.path);
    const name = posix.basename(each.path);
    const known = manifest.test(name) || isMarker(name);
    return each.kind === 'file' && known && folder !== '.' && folder.split('/').length <= 2 ? [folder] : [];
  });
  const folders = [...new Set(found)].filter((folder) => !aside.test(folder));
  return folders.filter((folder) => !folders.some((other) => folder.startsWith(`${other}/`)));
}
