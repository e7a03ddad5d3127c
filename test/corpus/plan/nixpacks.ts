// What Nixpacks says of a folder.
import { z } from 'zod';
import { planOf, refusal, type Planned } from './planned.ts';
import { runPlanner } from './program.ts';

const phase = z.looseObject({ cmds: z.array(z.string()).nullish(), nixPkgs: z.array(z.string()).nullish() });
const answer = z.looseObject({
  providers: z.array(z.string()).nullish(),
  phases: z.record(z.string(), phase).nullish(),
  start: z.looseObject({ cmd: z.string().nullish() }).nullish(),
});

const planner = 'nixpacks';

export async function nixpacks(program: string, root: string): Promise<Planned> {
  const { code, stdout, stderr } = await runPlanner(program, ['plan', root, '--format', 'json']);
  if (code !== 0) return refusal(planner, extractMessage(stderr || stdout));
  const read = answer.safeParse(JSON.parse(stdout));
  if (!read.success) return refusal(planner, `its plan cannot be read: ${z.prettifyError(read.error)}`);
  return planned(read.data, root);
}

/** Extracts the message that precedes the stack trace. */
export function extractMessage(output: string): string {
  const [words = ''] = output.split(/^\s*Stack backtrace:/m);
  return words.trim().slice(-300) || 'refused without a word';
}

export function planned(plan: z.output<typeof answer>, root: string): Planned {
  const start = plan.start?.cmd ?? '';
  if (start === '') return refusal(planner, 'no start command');
  const build = Object.values(plan.phases ?? {}).flatMap(({ cmds }) => cmds ?? []);
  return planOf(planner, root, { start, build, strategy: languageOf(plan), serves: servedBy(start) });
}

/** Its static provider starts nginx at the top or in the folder named by Staticfile; its page builds, Caddy. */
function servedBy(start: string): string | undefined {
  const folder = /^(?:npx )?(?:serve|http-server) (?:-s )?(\S{1,200})/.exec(start)?.[1];
  if (folder !== undefined) return folder;
  if (/\bcaddy run\b/.test(start)) return 'dist';
  return /\bnginx\b/.test(start) && !start.includes('php-fpm') ? '.' : undefined;
}

/** The first of the packages that is a language; a plan names its providers only when it was asked for them. */
function languageOf({ phases }: z.output<typeof answer>): string | undefined {
  const packages = Object.values(phases ?? {})
    .flatMap(({ nixPkgs }) => nixPkgs ?? [])
    .join(' ');
  const commands = Object.values(phases ?? {})
    .flatMap(({ cmds }) => cmds ?? [])
    .join('\n');
  return names.find(([, mark]) => mark.test(`${packages}\n${commands}`))?.[0];
}

const names: readonly (readonly [string, RegExp])[] = [
  ['php', /\bphp\d{0,3}\b|phpWithExtensions|composer/],
  ['python', /\bpython\d{0,3}\b|\bpip\b|poetry/],
  ['go', /\bgo(?:_\d{1,2}_\d{1,3})?\b|\bgo build/],
  ['rust', /rust-bin|cargo/],
  ['java', /\bjdk\d{0,3}\b|maven|gradle/],
  ['ruby', /\bruby\b|bundle install/],
  ['elixir', /\belixir\b|mix /],
  ['dotnet', /dotnet/],
  ['deno', /\bdeno\b/],
  ['bun', /\bbun\b/],
  ['node', /\bnodejs|\bnpm\b|\byarn\b|pnpm/],
];
