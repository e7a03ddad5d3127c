// `npm run corpus -- publish`: puts the tables of a folder of results into docs/measured.
import { existsSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Fault } from '../../cli/submit/installation.ts';
import type { SetName } from './corpus.ts';
import { judged } from './run/judged.ts';
import { runTable } from './run/report.ts';
import { openResults } from './run/results.ts';
import { writeText } from './table.ts';

/**
 * The table of the run with what people have said of its rejections since, and the one of the plans as it is. The pages
 * of the halves of the second corpus have names of their own. Returns the files written.
 */
export async function publish(out: string, docs: string, set: SetName = 'first'): Promise<string[]> {
  await mkdir(docs, { recursive: true });
  const pages = join(docs, set === 'first' ? 'corpus' : `corpus-2-${set}`);
  const written = [
    ...(await fromRun(join(out, 'run.jsonl'), `${pages}-run.md`)),
    ...(await fromPlans(join(out, 'plan.md'), `${pages}-plans.md`)),
  ];
  if (written.length === 0)
    throw new Fault(`${out} has no results: run npm run corpus -- run --set ${set} --out ${out} first`);
  return written;
}

async function fromRun(results: string, page: string): Promise<string[]> {
  if (!existsSync(results)) return [];
  const all = judged(openResults(results).all);
  const parts = [
    { path: page, rows: all.filter(({ hidden }) => hidden !== true) },
    { path: page.replace(/\.md$/, '-hidden.md'), rows: all.filter(({ hidden }) => hidden === true) },
  ].filter(({ rows }) => rows.length > 0);
  for (const { path, rows } of parts) await writeText(path, runTable(rows));
  return parts.map(({ path }) => path);
}

async function fromPlans(table: string, page: string): Promise<string[]> {
  if (!existsSync(table)) return [];
  await writeText(page, await readFile(table, 'utf8'));
  return [page];
}
