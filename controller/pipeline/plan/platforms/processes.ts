// Turns the processes of a Procfile into components that share one image: web, workers, and what runs before a release.
import { type DeclaredComponent, maximumComponents } from '../../../../crds/components.ts';
import { omitUndefined } from '../../../../lib/values.ts';
import type { Tree } from '../../tree.ts';
import { findPortInCommand } from '../port-literal.ts';
import { toHostName } from './compose/services.ts';
import { createWarning, type Declaration } from './declaration.ts';
import { readProcesses } from './hosts.ts';
import { prefixExec } from './start.ts';

const file = 'Procfile';
/** The component whose image the others run. */
const main = 'web';
/** Processes that people start by hand. */
const byHand = /^(?:console|shell|repl|tests?|dev|development|debug|postdeploy|seed|setup|rake|migrate)$/i;
/** Languages whose planned image starts the command of `web` as it is written. */
const asWritten = ['requirements.txt', 'pyproject.toml', 'Pipfile', 'setup.py', 'Gemfile', 'package.json'];
const otherwise = ['composer.json', 'mix.exs', 'pom.xml', 'build.gradle', 'build.gradle.kts', 'go.mod', 'Cargo.toml'];
/** Ports of further processes that listen where $PORT says. */
const firstPort = 9001;

/**
 * Returns undefined if the file describes one process. A `release` command becomes a task only if the app has a database
 * server: a file of SQLite would be changed in another pod, and lost. It then runs before each start, as the plan of the
 * web process has it.
 */
export function declareProcesses(tree: Tree, hasDatabaseServer: boolean): Declaration | undefined {
  const processes = readProcesses(tree);
  const start = processes.get(main);
  // A Dockerfile may have none of the programs that a Procfile names.
  if (start === undefined || tree.has('Dockerfile')) return undefined;
  const isLiteral = asWritten.some((name) => tree.has(name)) && !otherwise.some((name) => tree.has(name));
  const release = hasDatabaseServer && isLiteral ? processes.get('release') : undefined;
  const names = [...processes.keys()].filter((name) => name !== main && name !== 'release');
  const others = names.filter((name) => !byHand.test(name));
  if (release === undefined && others.length === 0) return undefined;
  const components = [
    // The command replaces that of the plan, which would run `release` and migrations before each start as well.
    omitUndefined({
      name: main,
      command: release === undefined ? undefined : toShell(start),
      port: release === undefined ? undefined : findPortInCommand(start),
    }),
    ...others.map((name, index) => toWorker(name, processes.get(name) ?? '', index, release !== undefined)),
    ...(release === undefined
      ? []
      : [{ name: 'release', kind: 'task' as const, image: main, command: toShell(release) }]),
  ];
  if (components.length > maximumComponents) return rejectTooMany(components);
  return {
    file,
    components,
    findings: [
      explain(
        components,
        names.filter((name) => byHand.test(name)),
      ),
    ],
  };
}

function toWorker(name: string, command: string, index: number, isMigratedBefore: boolean): DeclaredComponent {
  return omitUndefined({
    name: toHostName(name),
    kind: 'worker' as const,
    image: main,
    command: toShell(command),
    port: /\$\{?PORT\b/.test(command) ? firstPort + index : undefined,
    // The start of web can migrate the database that a worker reads.
    dependsOn: isMigratedBefore ? undefined : [main],
  });
}

function toShell(command: string): string[] {
  return ['sh', '-c', prefixExec(command)];
}

function explain(components: readonly DeclaredComponent[], left: readonly string[]): ReturnType<typeof createWarning> {
  const workers = components.filter(({ kind }) => kind === 'worker').map(({ name }) => name);
  const sentences = [
    'web answers at /',
    ...(workers.length === 0
      ? []
      : [`${workers.join(', ')} ${workers.length === 1 ? 'runs' : 'run'} with the same image`]),
    ...(components.some(({ kind }) => kind === 'task') ? ['release runs once before each release serves'] : []),
    ...(left.length === 0 ? [] : [`not run: ${left.join(', ')}`]),
  ];
  return createWarning(
    'components/found',
    file,
    `The app has ${components.length} components: ${sentences.join('; ')}.`,
    'To run web alone, write in moorage.yaml: source: {path: .}',
  );
}

function rejectTooMany(components: readonly DeclaredComponent[]): Declaration {
  return {
    file,
    findings: [
      {
        rule: 'procfile/too-many-processes',
        severity: 'error',
        file,
        message: `This file has ${components.length} processes (${components.map(({ name }) => name).join(', ')}); an app here has at most ${maximumComponents} components.`,
        fix: 'List those that the app needs as components in moorage.yaml.',
      },
    ],
  };
}
