// Warns where an app keeps what should last in its own layer, which every new pod begins without.
import { posix } from 'node:path';
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { DeclaredVariable } from './declaration.ts';

const database = /^(?:sqlite(?:\+[a-z]{1,20})?:\/\/\/|file:)(\/?[^?\s]{1,300})/i;
const file = /(?:^|\/)[^/\s]{1,100}\.(?:db|sqlite3?|sqlite-journal)$/i;

/** One for each variable that names a file of SQLite outside of every volume. */
export function lastingFindings(
  env: readonly DeclaredVariable[],
  volumes: readonly { readonly path: string }[],
): Finding[] {
  return env.flatMap(({ name, value }) => {
    const path = pathIn(value);
    if (path === undefined || volumes.some((volume) => isBelow(path, volume.path))) return [];
    return [
      {
        rule: 'data/not-lasting',
        severity: 'warning',
        message: `${name} keeps a database in ${path.slice(0, 150)}, which is on no volume: it is lost whenever the app is restarted or a new commit comes.`,
        fix: 'Add a volume at its folder (run.volumes in moorage.yaml), or a database (services in moorage.yaml, like type: postgres).',
      },
    ];
  });
}

function pathIn(value: string): string | undefined {
  const path = database.exec(value)?.[1] ?? (file.test(value) && !/\s|:\/\//.test(value) ? value : undefined);
  return path === undefined || path.startsWith(':memory:') ? undefined : posix.normalize(path);
}

/** A relative path is below the working folder, which nobody knows: a volume that ends like its folder is taken for it. */
function isBelow(path: string, folder: string): boolean {
  if (path.startsWith('/')) return path.startsWith(`${folder}/`);
  const first = path.replace(/^\.\//, '').split('/')[0] ?? '';
  return path.includes('/') && folder.endsWith(`/${first}`);
}
