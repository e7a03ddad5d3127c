// `npm run corpus -- plan`: asks the planners of every repository, and judges their plans.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { checkOut, hideDockerfiles, NotBroughtIn } from '../checkout.ts';
import { type Entry, verdicts } from '../corpus.ts';
import { appendLine, writeText } from '../table.ts';
import { ownVersion } from '../version.ts';
import { judge } from './judge.ts';
import { moorage } from './moorage.ts';
import { nixpacks } from './nixpacks.ts';
import { planned, type Planned } from './planned.ts';
import { findProgram, versionOf } from './program.ts';
import { railpack } from './railpack.ts';
import { planTable } from './report.ts';

export interface PlanOptions {
  readonly mirror: string | undefined;
  readonly out: string;
  readonly hide: boolean;
  /** A sentence for the page about how it was measured. */
  readonly note?: string | undefined;
  readonly say: (line: string) => void;
}

const row = z.object({
  repo: z.string(),
  commit: z.string(),
  stack: z.string(),
  planner: z.string(),
  version: z.string(),
  /** Its Dockerfiles were hidden. */
  hidden: z.boolean(),
  judgment: z.object({ verdict: z.enum(verdicts), reason: z.string() }),
  /** The port that a person expects, when the repository names one. */
  port: z.number().optional(),
  planned,
});
export type PlanRow = z.output<typeof row>;

interface Planner {
  readonly name: string;
  readonly version: string;
  readonly ask: (folder: string) => Planned | Promise<Planned>;
}

/**
 * Asks every planner about every repository. What the same version of a planner said earlier, as the folder of results
 * has it, is judged again and not asked again.
 */
export async function plan(entries: readonly Entry[], options: PlanOptions): Promise<PlanRow[]> {
  const { hide, out, note, say } = options;
  const planners = await findPlanners();
  const path = join(out, 'plan.jsonl');
  const earlier = await readRows(path);
  const rows = new Map(
    earlier.filter((each) => isCurrent(each, planners, hide)).map((each) => [formatKey(each), each]),
  );
  const missing: { repo: string; why: string }[] = [];
  for (const entry of entries) {
    try {
      const made = await planOne(entry, planners, options, [...rows.values()]);
      for (const each of made) {
        rows.set(formatKey(each), each);
        await appendLine(path, each);
      }
      say(`${entry.repo}: ${made.map(({ planner, judgment }) => `${planner} ${judgment.verdict}`).join(', ')}`);
    } catch (error) {
      if (!(error instanceof NotBroughtIn)) throw error;
      missing.push({ repo: entry.repo, why: error.message });
      say(`${entry.repo}: not brought in: ${error.message}`);
    }
  }
  // What was read from the folder came first.
  const ordered = planners.flatMap(({ name }) => [...rows.values()].filter(({ planner }) => planner === name));
  await writeText(join(out, 'plan.md'), planTable(ordered, missing, { hidden: hide, note }));
  return ordered;
}

const formatKey = ({ repo, planner }: PlanRow): string => `${planner} ${repo}`;

async function readRows(path: string): Promise<PlanRow[]> {
  if (!existsSync(path)) return [];
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '');
  return lines.map((line) => row.parse(JSON.parse(line)));
}

/** A changed work tree has no version that a plan could be kept for. */
function isCurrent({ planner, version, hidden }: PlanRow, planners: readonly Planner[], hide: boolean): boolean {
  const isSame = planners.some((each) => each.name === planner && each.version === version);
  return isSame && hidden === hide && !version.endsWith('-changed');
}

async function planOne(
  entry: Entry,
  planners: readonly Planner[],
  { mirror, hide }: PlanOptions,
  earlier: readonly PlanRow[],
): Promise<PlanRow[]> {
  const { repo, commit, stack } = entry;
  const known = new Map(
    earlier.filter((each) => each.repo === repo && each.commit === commit).map((each) => [each.planner, each.planned]),
  );
  const asked = planners.filter(({ name }) => !known.has(name));
  const answers = asked.length === 0 ? known : new Map([...known, ...(await askPlanners(entry, asked, mirror, hide))]);
  return planners.flatMap(({ name, version }) => {
    const answer = answers.get(name);
    if (answer === undefined) return [];
    const judgment = judge(entry, answer, version);
    return [
      { repo, commit, stack, planner: name, version, hidden: hide, judgment, port: portOf(entry), planned: answer },
    ];
  });
}

async function askPlanners(
  entry: Entry,
  planners: readonly Planner[],
  mirror: string | undefined,
  hide: boolean,
): Promise<Map<string, Planned>> {
  const source = await checkOut(entry, mirror);
  try {
    if (hide) await hideDockerfiles(source.folder);
    const answers = new Map<string, Planned>();
    for (const { name, ask } of planners) answers.set(name, await ask(source.folder));
    return answers;
  } finally {
    await source.remove();
  }
}

function portOf({ expected }: Entry): number | undefined {
  return 'refuse' in expected ? undefined : expected.port;
}

/** Ours, and the others whose programs are there. */
async function findPlanners(): Promise<Planner[]> {
  const others = [
    ['railpack', railpack],
    ['nixpacks', nixpacks],
  ] as const;
  const found = others.flatMap(([name, ask]) => {
    const program = findProgram(name);
    return program === undefined ? [] : [{ name, program, ask }];
  });
  const version = await ownVersion();
  return [
    { name: 'moorage', version, ask: moorage },
    ...(await Promise.all(
      found.map(async ({ name, program, ask }) => ({
        name,
        version: await versionOf(program),
        ask: (folder: string): Promise<Planned> => ask(program, folder),
      })),
    )),
  ];
}
