// Starts Django with its WSGI or ASGI module, and finds its settings and allowed host names.
import { posix } from 'node:path';
import type { Tree } from '../../../tree.ts';
import { quoteShellWord } from '../../recipe.ts';
import type { PythonStart } from './find.ts';

/** Finds the folder with manage.py: the root, or one level below; undefined if there is none. */
export function findDjangoFolder(tree: Tree): string | undefined {
  const found = tree.entries.find((each) => each.kind === 'file' && /^(?:[\w-]{1,60}\/)?manage\.py$/.test(each.path));
  if (tree.has('manage.py')) return '.';
  return found === undefined || !/django/i.test(tree.readFile(found.path) ?? '')
    ? undefined
    : posix.dirname(found.path);
}

export function findDjangoStart(tree: Tree, names: ReadonlySet<string>): PythonStart | undefined {
  const folder = findDjangoFolder(tree);
  if (folder === undefined) return undefined;
  const below = tree.getSubtree(folder);
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
  const named = /DJANGO_SETTINGS_MODULE["'],\s{0,9}["']([\w.]{1,100})["']/.exec(tree.readFile('manage.py') ?? '')?.[1];
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
    command: `${enter}exec ${serve}`,
    framework: 'Django',
    because: `${manage} and ${file} make it a Django project.`,
    needs: server.filter((each) => !names.has(each)),
  };
}

const maximumFiles = 20;

/** Lists settings.py, config/settings/base.py and similar files. */
export function listSettingsFiles(tree: Tree): string[] {
  return tree.entries
    .filter((each) => each.kind === 'file' && /^(?:[^/]+\/){0,3}settings(?:\/[^/]+|[^/]*)\.py$/.test(each.path))
    .slice(0, maximumFiles)
    .map((each) => each.path);
}

const reads: readonly RegExp[] = [
  /^\s*ALLOWED_HOSTS\b[^\n]{0,80}(?:[Ee]nv|config|[Ss]ecret)[^\n]{0,40}["']([A-Z][A-Z0-9_]{0,40}HOSTS?)["']/m,
  // Read into a variable first, and used on a later line.
  /^[^#\n]{0,80}(?:[Ee]nv|config)[^#\n]{0,40}["']((?:[A-Z][A-Z0-9]{0,20}_)?ALLOWED_HOSTS)["']/m,
];

/**
 * Returns variables for the image; none if the settings read none. Without other settings, any host name is allowed:
 * only the gateway can reach an app, and only under the app's names.
 */
export function buildAllowedHosts(tree: Tree): Readonly<Record<string, string>> {
  for (const path of listSettingsFiles(tree)) {
    const text = tree.readFile(path) ?? '';
    const name = reads.map((each) => each.exec(text)?.[1]).find((each) => each !== undefined);
    if (name !== undefined) return { [name]: '*' };
  }
  return {};
}
