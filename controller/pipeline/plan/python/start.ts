// Finds how a Python app is started: by its Procfile, its framework, or its main file.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';
import { shellWord } from '../dockerfile-text.ts';
import { portOfFile } from '../port-literal.ts';
import { declaredStart } from '../platforms/start.ts';

export interface PythonStart {
  /** Shell command, $PORT not yet expanded. */
  readonly command: string;
  readonly framework?: string;
  /** File and wording that led to it. */
  readonly because: string;
  /** Packages that the command needs and the author may not have named. */
  readonly needs: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Port that it listens on whatever $PORT says. */
  readonly port?: number | undefined;
}

interface Source {
  readonly path: string;
  readonly text: string;
}

const maximumSources = 60;
const preferred = [
  'main.py',
  'app.py',
  'server.py',
  'asgi.py',
  'wsgi.py',
  'api.py',
  'streamlit_app.py',
  'run.py',
  'web.py',
  'demo.py',
  'Home.py',
  '__init__.py',
];
const aside = /(?:^|\/)(?:tests?|docs?|examples?|scripts?|migrations|\.[^/]+|venv|node_modules)\//;
const sourceBytes = 200 * 1024;

/** How the app starts; undefined when nothing says so. Names are those of the wanted packages. */
export function findStart(tree: Tree, names: ReadonlySet<string>): PythonStart | undefined {
  const declared = declaredStart(tree);
  if (declared !== undefined) return declared;
  const sources = pythonSources(tree);
  return django(tree) ?? application(sources, names) ?? screen(sources, names) ?? plain(sources, tree);
}

function pythonSources(tree: Tree): Source[] {
  const files = tree.entries
    .filter(
      (each) =>
        each.kind === 'file' && each.path.endsWith('.py') && each.path.split('/').length <= 3 && !aside.test(each.path),
    )
    .map((each) => each.path);
  const weight = (path: string): number => {
    const index = preferred.indexOf(posix.basename(path));
    return path.split('/').length * 100 + (index < 0 ? preferred.length : index);
  };
  return files
    .toSorted((one, other) => weight(one) - weight(other))
    .slice(0, maximumSources)
    .map((path) => ({ path, text: tree.text(path, sourceBytes) ?? '' }));
}

function django(tree: Tree): PythonStart | undefined {
  if (!tree.has('manage.py')) return undefined;
  const wsgi = tree.entries.find(
    (each) => each.kind === 'file' && /^[A-Za-z_]\w*\/(?:wsgi)\.py$/.test(each.path),
  )?.path;
  if (wsgi === undefined) return undefined;
  const module = `${posix.dirname(wsgi)}.wsgi:application`;
  return {
    command: `exec gunicorn --bind 0.0.0.0:$PORT ${module}`,
    framework: 'Django',
    because: `manage.py and ${wsgi} make it a Django project.`,
    needs: ['gunicorn'],
  };
}

/** FastAPI, Starlette, Quart and Flask: a variable of a module holds the application. */
function application(sources: readonly Source[], names: ReadonlySet<string>): PythonStart | undefined {
  for (const [framework, server] of [
    ['FastAPI', 'uvicorn'],
    ['Starlette', 'uvicorn'],
    ['Quart', 'uvicorn'],
    ['Flask', 'gunicorn'],
  ] as const) {
    for (const source of sources) {
      const target = findTarget(source.text, framework);
      if (target !== undefined) return serve({ framework, server, source, sources, ...target, names });
    }
  }
  return undefined;
}

/** The variable that holds the application, or the function that makes it. */
function findTarget(text: string, framework: string): { target: string; factory: boolean } | undefined {
  if (!text.includes(`${framework}(`)) return undefined;
  const assigned = new RegExp(
    String.raw`^([A-Za-z_]\w{0,60})[ \t]{0,9}(?::[^=\n]{0,80})?=[ \t]{0,9}(?:[a-z]{1,20}\.)?${framework}\(`,
    'm',
  );
  const name = assigned.exec(text)?.[1];
  if (name !== undefined) return { target: name, factory: false };
  const maker = /^def (create_app|make_app|build_app)\(/m.exec(text)?.[1];
  return maker === undefined ? undefined : { target: maker, factory: true };
}

interface Served {
  readonly framework: string;
  readonly server: 'uvicorn' | 'gunicorn';
  readonly source: Source;
  readonly sources: readonly Source[];
  readonly target: string;
  readonly factory: boolean;
  readonly names: ReadonlySet<string>;
}

function serve({ framework, server, source, sources, target, factory, names }: Served): PythonStart {
  const { folder, module } = moduleOf(source, sources);
  const command =
    server === 'uvicorn'
      ? `exec uvicorn --host 0.0.0.0 --port $PORT${folder === '.' ? '' : ` --app-dir ${shellWord(folder)}`}${factory ? ' --factory' : ''} ${shellWord(`${module}:${target}`)}`
      : `exec gunicorn --bind 0.0.0.0:$PORT --threads 8${folder === '.' ? '' : ` --chdir ${shellWord(folder)}`} ${shellWord(`${module}:${target}${factory ? '()' : ''}`)}`;
  const because = `${source.path} ${factory ? `makes a ${framework} application in ${target}()` : `holds the ${framework} application "${target}"`}.`;
  return { command, framework, because, needs: names.has(server) ? [] : [server] };
}

/**
 * Module name of a file, and the folder that it is imported from: its own when it imports its neighbours by plain
 * names.
 */
function moduleOf(source: Source, sources: readonly Source[]): { folder: string; module: string } {
  const folder = posix.dirname(source.path);
  const isPackage = posix.basename(source.path) === '__init__.py';
  const name = posix.basename(source.path, '.py');
  if (folder === '.') return { folder, module: name };
  const neighbours = sources
    .filter((each) => posix.dirname(each.path) === folder && each.path !== source.path)
    .map((each) => posix.basename(each.path, '.py'));
  const imported = new Set(
    [...source.text.matchAll(/^(?:from|import)[ \t]+([A-Za-z_]\w{0,60})/gm)].map((match) => match[1]),
  );
  if (!isPackage && neighbours.some((each) => imported.has(each))) return { folder, module: name };
  const dotted = folder.replaceAll('/', '.');
  if (folder.startsWith('src/') || (folder === 'src' && !imported.has('src'))) {
    return { folder: 'src', module: [...folder.split('/').slice(1), ...(isPackage ? [] : [name])].join('.') };
  }
  return { folder: '.', module: isPackage ? dotted : `${dotted}.${name}` };
}

/** Streamlit and Gradio: a script that draws its own page. */
function screen(sources: readonly Source[], names: ReadonlySet<string>): PythonStart | undefined {
  const importing = (library: string): Source | undefined =>
    sources.find((each) => new RegExp(`^(?:import|from) ${library}\\b`, 'm').test(each.text));
  const streamlit = importing('streamlit');
  if (streamlit !== undefined) {
    return {
      command: `exec streamlit run ${shellWord(streamlit.path)} --server.port $PORT --server.address 0.0.0.0 --server.headless true --browser.gatherUsageStats false`,
      framework: 'Streamlit',
      because: `${streamlit.path} imports streamlit.`,
      needs: names.has('streamlit') ? [] : ['streamlit'],
    };
  }
  const gradio = importing('gradio');
  if (gradio === undefined) return undefined;
  return {
    command: `export GRADIO_SERVER_PORT=$PORT; exec python ${shellWord(gradio.path)}`,
    framework: 'Gradio',
    because: `${gradio.path} imports gradio.`,
    needs: names.has('gradio') ? [] : ['gradio'],
    environment: { GRADIO_SERVER_NAME: '0.0.0.0', GRADIO_ANALYTICS_ENABLED: 'False' },
    port: portOfFile(gradio.text),
  };
}

function plain(sources: readonly Source[], tree: Tree): PythonStart | undefined {
  const file =
    ['main.py', 'app.py', 'server.py', 'run.py', '__main__.py'].find((each) => tree.has(each)) ??
    sources.find((each) => !each.path.includes('/') && /^if __name__ ?== ?["']__main__["']/m.test(each.text))?.path;
  if (file === undefined) return undefined;
  return {
    command: `exec python ${shellWord(file)}`,
    because: `${file} is started by python.`,
    needs: [],
    port: portOfFile(tree.text(file)),
  };
}
