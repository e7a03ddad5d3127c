// Starts Django with its WSGI or ASGI module, after migrating the database.
import { posix } from 'node:path';
import type { Tree } from '../../../tree.ts';
import { quoteShellWord } from '../../recipe.ts';
import type { PythonStart } from './find.ts';

/** Finds the folder with manage.py: the root, or one level below; undefined if there is none. */
export function findDjangoFolder(tree: Tree): string | undefined {
  const found = tree.entries.find((each) => each.kind === 'file' && /^(?:[\w-]{1,60}\/)?manage\.py$/.test(each.path));
  if (tree.has('manage.py')) return '.';
  return found === undefined || !/django/i.test(tree.text(found.path) ?? '') ? undefined : posix.dirname(found.path);
}

export function findDjangoStart(tree: Tree, names: ReadonlySet<string>): PythonStart | undefined {
  const folder = findDjangoFolder(tree);
  if (folder === undefined) return undefined;
  const below = tree.below(folder);
  const project = findSettingsFolder(below);
  const asgi = ['channels', 'daphne'].some((name) => names.has(name));
  const kinds = asgi ? (['asgi', 'wsgi'] as const) : (['wsgi', 'asgi'] as const);
  for (const kind of kinds) {
    const paths = below.entries
      .filter(
        (each) => each.kind === 'file' && new RegExp(String.raw`^(?:[A-Za-z_]\w*/){1,2}${kind}\.py$`).test(each.path),
      )
      .map((each) => each.path);
    const path = paths.find((each) => posix.dirname(each) === project) ?? paths[0];
    if (path !== undefined) return createDjangoStart(folder, path, kind, names, project);
  }
  return undefined;
}

/**
 * Returns the folder of the settings that manage.py names: shop for shop.settings, config for config.settings.local.
 */
function findSettingsFolder(tree: Tree): string | undefined {
  const named = /DJANGO_SETTINGS_MODULE["'],\s{0,9}["']([\w.]{1,100})["']/.exec(tree.text('manage.py') ?? '')?.[1];
  return named === undefined ? undefined : named.replace(/\.settings\b.*$/, '').replaceAll('.', '/');
}

function createDjangoStart(
  folder: string,
  path: string,
  kind: 'asgi' | 'wsgi',
  names: ReadonlySet<string>,
  project: string | undefined,
): PythonStart {
  // manage.py may add the project's folder to the path itself.
  const root =
    project !== undefined && path.endsWith(`/${project}/${kind}.py`) ? posix.dirname(posix.dirname(path)) : '.';
  const module = `${posix.relative(root, path).slice(0, -3).replaceAll('/', '.')}:application`;
  const onPath = root === '.' ? '' : `export PYTHONPATH=$PWD/${root}:$PYTHONPATH; `;
  const enter = `${folder === '.' ? '' : `cd ${quoteShellWord(folder)} && `}${onPath}`;
  const serve =
    kind === 'asgi'
      ? `uvicorn --host 0.0.0.0 --port $PORT ${module}`
      : `gunicorn --bind 0.0.0.0:$PORT --threads 8 ${module}`;
  const server = kind === 'asgi' ? ['uvicorn', 'websockets'] : ['gunicorn'];
  const [manage, file] = [posix.join(folder, 'manage.py'), posix.join(folder, path)];
  return {
    // Start even if the database is not ready yet: the app reports that itself.
    command: `${enter}{ python manage.py migrate --noinput || echo "The database could not be brought up to date." >&2; }; exec ${serve}`,
    framework: 'Django',
    because: `${manage} and ${file} make it a Django project.`,
    needs: server.filter((each) => !names.has(each)),
  };
}
