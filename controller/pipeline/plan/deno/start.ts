// Finds how a Deno app starts: with a task, or with its main file.
import { parseJson, readField, readKeys, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { quoteShellWord } from '../recipe.ts';
import { findScriptPort } from '../node/port.ts';
import { findPortInCommand } from '../port-literal.ts';

export interface DenoStart {
  readonly command: string;
  readonly because: string;
  /** File whose dependencies are cached. */
  readonly entry: string | undefined;
  /** Whether there is a build task. */
  readonly build: boolean;
  readonly port: number | undefined;
  readonly byTask: boolean;
  readonly framework?: string;
}

export const mains = ['main', 'server', 'mod', 'app', 'index'].flatMap((name) => [
  `${name}.ts`,
  `${name}.tsx`,
  `${name}.js`,
]);
const folders = ['', 'src/', 'server/', 'backend/'];
/** Default port of Deno.serve, which ignores $PORT. */
const denoPort = 8000;

export function findStart(tree: Tree, config: unknown): DenoStart | undefined {
  const task = findTask(config);
  const entry = findEntry(tree, task?.line ?? '');
  const code = entry === undefined ? '' : (tree.readFile(entry) ?? '');
  const start = task === undefined ? toFileStart(entry, code) : toTaskStart(task, code);
  if (start === undefined) return undefined;
  const build = readKeys(config, 'tasks').includes('build');
  return {
    ...start,
    entry,
    build,
    byTask: task !== undefined,
    ...(isFresh(tree, config) ? { framework: 'Fresh' } : {}),
  };
}

type StartCommand = Pick<DenoStart, 'command' | 'because' | 'port'>;

function toTaskStart({ name, line }: Task, code: string): StartCommand {
  const port = findPortInCommand(line) ?? findPort(code);
  return { command: `exec deno task ${name}`, because: `Its task ${name} starts it.`, port };
}

function toFileStart(entry: string | undefined, code: string): StartCommand | undefined {
  if (entry === undefined) return undefined;
  const quotedEntry = quoteShellWord(entry);
  const because = `${entry} is its main file.`;
  return /export default\s{0,9}\{[^}]{0,200}\bfetch\b/.test(code)
    ? { command: `exec deno serve --allow-all --host 0.0.0.0 --port $PORT ${quotedEntry}`, because, port: undefined }
    : { command: `exec deno run --allow-all ${quotedEntry}`, because, port: findPort(code) };
}

interface Task {
  readonly name: string;
  readonly line: string;
}

/** Skips watch mode and development servers. */
function findTask(config: unknown): Task | undefined {
  const names = readKeys(config, 'tasks');
  const name = ['start', 'serve', 'preview', 'prod', 'production'].find((each) => names.includes(each));
  if (name === undefined) return undefined;
  const line = readText(config, 'tasks', name) ?? readText(readField(config, 'tasks', name), 'command') ?? '';
  return /--watch|\bdev\b/.test(line) ? undefined : { name, line };
}

function findEntry(tree: Tree, line: string): string | undefined {
  const named = /(?:^|\s)\.?\/?([\w./-]{1,120}\.(?:tsx?|jsx?|mjs))(?=\s|$)/.exec(line)?.[1];
  if (named !== undefined && tree.has(named)) return named;
  return folders.flatMap((folder) => mains.map((each) => folder + each)).find((each) => tree.has(each));
}

/** Returns undefined if the port depends on the environment or cannot be determined. */
function findPort(code: string): number | undefined {
  const literal = findScriptPort(code);
  if (literal !== undefined || /["']PORT["']|\bPORT\b/.test(code)) return literal;
  return /\bDeno\.serve\(|\.listen\(\s{0,9}\)|\bserve\(/.test(code) ? denoPort : undefined;
}

function isFresh(tree: Tree, config: unknown): boolean {
  const imports = readKeys(config, 'imports');
  return tree.has('fresh.gen.ts') || imports.some((name) => /^(?:\$?fresh\b|@fresh\/core$)/.test(name));
}

/** Returns undefined if absent or malformed. */
export function parseJsonc(text: string | undefined): unknown {
  if (text === undefined) return undefined;
  // Match strings first, so that text in them that looks like a comment stays.
  const plain = text.replace(
    /("(?:[^"\\\n]|\\.){0,5000}")|\/\/[^\n]*|\/\*[\s\S]*?\*\//g,
    (_, quoted: string | undefined) => quoted ?? '',
  );
  return parseJson(
    plain.replace(/("(?:[^"\\\n]|\\.){0,5000}")|,(?=\s{0,200}[}\]])/g, (_, quoted: string | undefined) => quoted ?? ''),
  );
}
