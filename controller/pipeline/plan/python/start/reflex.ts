// Starts a Reflex app: its pages are written in Python, compiled at build time, and served with their events on one
// port.
import type { Tree } from '../../../tree.ts';
import type { PythonStart } from './find.ts';
import { hasImport } from './sources.ts';

export const configFile = 'rxconfig.py';
/** The first version that serves its compiled pages itself, on the port of its events. */
export const firstReflex = '0.8.14';
const locks = ['uv.lock', 'poetry.lock', 'Pipfile.lock'];

/** Finds the app that rxconfig.py names; undefined if there is none. */
export function findReflexStart(tree: Tree, names: ReadonlySet<string>): PythonStart | undefined {
  const config = tree.text(configFile, 64 * 1024) ?? '';
  const name = /\bapp_name\s{0,9}=\s{0,9}["']([A-Za-z_]\w{0,60})["']/.exec(config)?.[1];
  if (name === undefined || !(names.has('reflex') || hasImport(config, 'reflex'))) return undefined;
  return {
    command: formatCommand(tree, readModuleName(config) ?? `${name}.${name}`),
    framework: 'Reflex',
    because: `${configFile} makes it the Reflex app ${name}.`,
    // A list without versions could otherwise get versions from its own time, which cannot serve the pages this way.
    needs: locks.some((each) => tree.has(each)) ? [] : [`'reflex>=${firstReflex}'`],
    environment: {
      REFLEX_ENV_MODE: 'prod',
      REFLEX_TELEMETRY_ENABLED: 'false',
      __REFLEX_SKIP_COMPILE: 'true',
      __REFLEX_MOUNT_FRONTEND_COMPILED_APP: 'true',
    },
    known: names.has('reflex'),
  };
}

/** Reads the module that rxconfig.py specifies instead of the default. */
function readModuleName(config: string): string | undefined {
  return /\bapp_module_import\s{0,9}=\s{0,9}["']([A-Za-z_][\w.]{0,200})["']/.exec(config)?.[1];
}

function formatCommand(tree: Tree, module: string): string {
  const migrate = tree.entry('alembic')?.kind === 'directory' ? '( reflex db migrate ) && ' : '';
  return `${migrate}exec granian --interface asgi --factory --host 0.0.0.0 --port $PORT ${module}:app`;
}
