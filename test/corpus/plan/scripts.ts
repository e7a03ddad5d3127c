// What a command of a package manager runs: `npm start` says nothing, the script behind it says it.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const manifest = z.looseObject({
  main: z.string().optional(),
  scripts: z.record(z.string(), z.string()).optional(),
  workspaces: z.union([z.array(z.string()), z.looseObject({ packages: z.array(z.string()).optional() })]).optional(),
});

/** Words before which the name of a script may stand. */
const runner =
  /(?:^|[\s;&|'"(])(?:npm|pnpm|yarn|bun|npx|run-[ps]|run-script-os|npm-run-all|turbo|nx|lerna|concurrently)\b/;
const maximumDepth = 6;
const maximumCharacters = 50_000;

function scriptsOf(folder: string): Record<string, string> {
  const path = join(folder, 'package.json');
  if (!existsSync(path)) return {};
  const read = manifest.safeParse(parseJson(readFileSync(path, 'utf8')));
  if (!read.success) return {};
  const { scripts = {}, main } = read.data;
  return scripts['start'] === undefined && main !== undefined ? { ...scripts, start: `node ${main}` } : scripts;
}

/** A command and the folder that it runs in. */
interface Command {
  readonly text: string;
  readonly folder: string;
}

/** The command, and below it each script that it names, and those that they name. */
export function expand(command: string, root: string, folder: string): string {
  const said = new Map<string, Command>();
  let open: Command[] = [{ text: command, folder }];
  for (let depth = 0; depth < maximumDepth && open.length > 0; depth += 1) {
    for (const each of open) said.set(keyOf(each), each);
    open = open.flatMap((each) => scriptsIn(each, root)).filter((each) => !said.has(keyOf(each)));
  }
  const texts = new Set([...said.values()].map(({ text }) => text));
  return [...texts].join('\n').slice(0, maximumCharacters);
}

const keyOf = ({ text, folder }: Command): string => `${folder}\n${text}`;

/** Scripts that a command names, of its folder and of those that it goes to, as in `yarn --cwd web build`. */
function scriptsIn({ text, folder }: Command, root: string): Command[] {
  if (!runner.test(text)) return [];
  const words = new Set(text.split(/[\s;&|'"(),[\]]+/));
  const named = [...text.matchAll(/(?:--cwd|--prefix|--dir|-C|\bcd)[= ]+["']?([\w./-]{1,200})/g)];
  const folders = new Set([folder, ...named.map(([, path = '.']) => join(folder, path))]);
  return [...folders].flatMap((each) =>
    Object.entries(scriptsOf(join(root, each)))
      .filter(([name]) => words.has(name) || (name.startsWith('start:') && text.includes('run-script-os')))
      .map(([, script]) => ({ text: script, folder: each })),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
