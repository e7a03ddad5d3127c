// What Railpack says of a folder.
import { posix } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { z } from 'zod';
import { planOf, refusal, type Planned } from './planned.ts';
import { runPlanner } from './program.ts';

const command = z.looseObject({ cmd: z.string().optional(), path: z.string().optional() });
const layer = z.looseObject({ include: z.array(z.string()).optional() });
const answer = z.looseObject({
  steps: z
    .array(
      z.looseObject({
        name: z.string().optional(),
        commands: z.array(command).optional(),
        variables: z.record(z.string(), z.string()).optional(),
        assets: z.record(z.string(), z.string()).optional(),
      }),
    )
    .default([]),
  deploy: z.looseObject({ startCommand: z.string().optional(), inputs: z.array(layer).optional() }).optional(),
});
type Answer = z.output<typeof answer>;

const planner = 'railpack';

/** Its provider is not in the plan; what it installs and starts says it. */
const languages: readonly (readonly [string, RegExp])[] = [
  ['php', /\bfrankenphp\b|\bphp\b|composer install/],
  ['python', /\b(?:pip|uv sync|uv pip|poetry|pipenv|pdm|gunicorn|uvicorn|streamlit|python3?)\b/],
  // Ruby is compiled with a Rust compiler beside it.
  ['ruby', /\b(?:bundle|rails)\b/],
  ['go', /\bgo (?:build|mod)\b/],
  ['rust', /\bcargo\b/],
  ['java', /\b(?:mvnw?|gradlew?|java)\b/],
  ['elixir', /\bmix\b/],
  ['dotnet', /\bdotnet\b/],
  ['deno', /\bdeno\b/],
  ['bun', /\bbun\b/],
  ['node', /\b(?:npm|pnpm|yarn|node)\b/],
];

export async function railpack(program: string, root: string): Promise<Planned> {
  const { code, stdout, stderr } = await runPlanner(program, ['plan', root]);
  if (code !== 0) return refuse(extractMessage(`${stdout}\n${stderr}`));
  const read = answer.safeParse(JSON.parse(stdout));
  if (!read.success) return refusal(planner, `its plan cannot be read: ${z.prettifyError(read.error)}`);
  const made = planned(read.data, root);
  return made.refused ? refuse(await complaints(program, root)) : made;
}

/** Messages about a version that mise or Docker Hub did not return. */
const asking =
  /\bno version available for\b|\bfailed to (?:get latest|resolve) version\b|\bno such host\b|\bdns error\b/i;

export function refuse(words: string): Planned {
  const refused = refusal(planner, words);
  return asking.test(words) ? { ...refused, unreachable: true } : refused;
}

/** It prints a plan whatever it lacks; what it lacks is in its words for a person. */
async function complaints(program: string, root: string): Promise<string> {
  const { stdout } = await runPlanner(program, ['info', root]);
  const lines = stripVTControlCharacters(stdout).split('\n');
  return extractMessage(lines.filter((line) => /[✖⚠]/.test(line)).join('\n'));
}

export function planned(plan: Answer, root: string): Planned {
  const start = plan.deploy?.startCommand ?? '';
  if (start === '') return refusal(planner, 'no start command');
  const build = plan.steps.flatMap(({ commands = [] }) =>
    commands.flatMap(({ cmd }) => (cmd === undefined ? [] : [cmd])),
  );
  const text = `${start}\n${build.join('\n')}`;
  const serves = /^caddy\b/.test(start) ? servedBy(plan) : undefined;
  const strategy = languages.find(([, mark]) => mark.test(text))?.[0];
  return planOf(planner, root, { start, build, strategy, serves });
}

/** The root in its Caddyfile, or what the build leaves. */
function servedBy(plan: Answer): string {
  const caddyfile = plan.steps
    .flatMap(({ assets = {} }) => Object.values(assets))
    .find((text) => text.includes('file_server'));
  const root = /^\s{0,20}root \* (\S{1,200})/m.exec(caddyfile ?? '')?.[1];
  const kept = root ?? plan.deploy?.inputs?.flatMap(({ include = [] }) => include).at(-1) ?? '.';
  const path = posix.join('.', kept.replace(/^\/app\/?/, ''));
  return path === '' ? '.' : path;
}

/** Extracts the last lines, without colours. */
function extractMessage(output: string): string {
  const lines = stripVTControlCharacters(output)
    .split('\n')
    .map((line) => line.trim());
  const words = lines.filter((line) => line !== '').slice(-3);
  return words.join(' ').slice(0, 300) || 'refused without a word';
}
