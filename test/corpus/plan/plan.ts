// `npm run corpus -- plan`: asks the planners of every repository, and judges their plans.
import { join } from 'node:path';
import { checkOut, hideDockerfiles, NotBroughtIn } from '../checkout.ts';
import type { Entry } from '../corpus.ts';
import { writeText } from '../table.ts';
import { ownVersion } from '../version.ts';
import { judge, type Judgment } from './judge.ts';
import { moorage } from './moorage.ts';
import { nixpacks } from './nixpacks.ts';
import type { Planned } from './planned.ts';
import { findProgram, versionOf } from './program.ts';
import { railpack } from './railpack.ts';
import { planTable } from './report.ts';

export interface PlanOptions {
  readonly mirror: string | undefined;
  readonly out: string;
  readonly hide: boolean;
  readonly say: (line: string) => void;
}

export interface PlanRow {
  readonly repo: string;
  readonly commit: string;
  readonly stack: string;
  readonly planner: string;
  readonly version: string;
  readonly judgment: Judgment;
  /** The port that a person expects, when the repository names one. */
  readonly port: number | undefined;
  readonly planned: Planned;
}

interface Planner {
  readonly name: string;
  readonly version: string;
  readonly ask: (folder: string) => Planned | Promise<Planned>;
}

export async function plan(entries: readonly Entry[], options: PlanOptions): Promise<PlanRow[]> {
  const planners = await findPlanners();
  const rows: PlanRow[] = [];
  const missing: { repo: string; why: string }[] = [];
  for (const entry of entries) {
    try {
      const made = await planOne(entry, planners, options);
      rows.push(...made);
      options.say(`${entry.repo}: ${made.map(({ planner, judgment }) => `${planner} ${judgment.verdict}`).join(', ')}`);
    } catch (error) {
      if (!(error instanceof NotBroughtIn)) throw error;
      missing.push({ repo: entry.repo, why: error.message });
      options.say(`${entry.repo}: not brought in: ${error.message}`);
    }
  }
  await writeText(join(options.out, 'plan.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  await writeText(join(options.out, 'plan.md'), planTable(rows, missing, options.hide));
  return rows;
}

async function planOne(entry: Entry, planners: readonly Planner[], { mirror, hide }: PlanOptions): Promise<PlanRow[]> {
  const source = await checkOut(entry, mirror);
  const { folder } = source;
  try {
    if (hide) await hideDockerfiles(folder);
    const rows: PlanRow[] = [];
    for (const { name, version, ask } of planners) {
      const planned = await ask(folder);
      const { repo, commit, stack } = entry;
      rows.push({
        repo,
        commit,
        stack,
        planner: name,
        version,
        judgment: judge(entry, planned, version),
        port: portOf(entry),
        planned,
      });
    }
    return rows;
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
