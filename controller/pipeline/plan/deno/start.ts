// Finds how a Deno app is started: by a task, or by its main file.
import type { Tree } from '../../tree.ts';
import { field, keys, text } from '../../manifest.ts';
import { shellWord } from '../dockerfile-text.ts';
import { portOfCommand, portOfFile } from '../port-literal.ts';

export interface DenoStart {
  readonly command: string;
  readonly because: string;
  /** File whose dependencies are cached. */
  readonly entry: string | undefined;
  /** There is a task that builds. */
  readonly build: boolean;
  readonly port: number | undefined;
  readonly framework?: string;
}

export const mains = ['main', 'server', 'mod', 'app', 'index'].flatMap((name) => [
  `${name}.ts`,
  `${name}.tsx`,
  `${name}.js`,
]);
const folders = ['', 'src/', 'server/', 'backend/'];
/** Deno.serve without a port takes this one, whatever $PORT says. */
const denoPort = 8000;

export function findStart(tree: Tree, config: unknown): DenoStart | undefined {
  const task = findTask(config);
  const entry = findEntry(tree, task?.line ?? '');
  const rest = {
    entry,
    build: keys(config, 'tasks').includes('build'),
    ...(isFresh(tree, config) ? { framework: 'Fresh' } : {}),
  };
  const code = tree.text(entry ?? '') ?? '';
  if (task !== undefined) {
    const port = portOfCommand(task.line) ?? portOf(code);
    return { command: `exec deno task ${task.name}`, because: `Its task ${task.name} starts it.`, port, ...rest };
  }
  if (entry === undefined) return undefined;
  const word = shellWord(entry);
  const serves = /export default\s{0,9}\{[^}]{0,200}\bfetch\b/.test(code);
  const command = serves
    ? `exec deno serve --allow-all --host 0.0.0.0 --port $PORT ${word}`
    : `exec deno run --allow-all ${word}`;
  return { command, because: `${entry} is its main file.`, port: serves ? undefined : portOf(code), ...rest };
}

/** A watcher, or the development server, is no way to serve. */
function findTask(config: unknown): { name: string; line: string } | undefined {
  const names = keys(config, 'tasks');
  const name = ['start', 'serve', 'preview', 'prod', 'production'].find((each) => names.includes(each));
  if (name === undefined) return undefined;
  const line = text(config, 'tasks', name) ?? text(field(config, 'tasks', name), 'command') ?? '';
  return /--watch|\bdev\b/.test(line) ? undefined : { name, line };
}

function findEntry(tree: Tree, line: string): string | undefined {
  const named = /(?:^|\s)\.?\/?([\w./-]{1,120}\.(?:tsx?|jsx?|mjs))(?=\s|$)/.exec(line)?.[1];
  if (named !== undefined && tree.has(named)) return named;
  return folders.flatMap((folder) => mains.map((each) => folder + each)).find((each) => tree.has(each));
}

/** undefined where the environment has a say, or it cannot be seen. */
function portOf(code: string): number | undefined {
  const literal = portOfFile(code);
  if (literal !== undefined || /["']PORT["']|\bPORT\b/.test(code)) return literal;
  return /\bDeno\.serve\(|\.listen\(\s{0,9}\)|\bserve\(/.test(code) ? denoPort : undefined;
}

function isFresh(tree: Tree, config: unknown): boolean {
  const imports = keys(config, 'imports');
  return tree.has('fresh.gen.ts') || imports.some((name) => /^(?:\$?fresh\b|@fresh\/core$)/.test(name));
}
