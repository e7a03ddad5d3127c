// `npm run corpus -- run`: submits every repository to the running cluster, some at once, and keeps what came of it.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readInstallation } from '../../../cli/submit/installation.ts';
import type { RunEntry } from '../corpus.ts';
import { shorten, writeText } from '../table.ts';
import { ownVersion } from '../version.ts';
import { runOne, type OneOptions } from './one.ts';
import { runTable } from './report.ts';
import { judged } from './judged.ts';
import { openResults, type Results } from './results.ts';

export interface RunOptions {
  readonly mirror: string | undefined;
  readonly out: string;
  readonly parallel: number;
  /** Those that have a result too. */
  readonly again: boolean;
  /** Without their Dockerfiles, so that Moorage plans them. */
  readonly hide: boolean;
  /** With a licence file in repositories that have none. */
  readonly addLicense: boolean;
  readonly say: (line: string) => void;
}

export async function run(
  entries: readonly RunEntry[],
  { mirror, out, parallel, again, hide, addLicense, say }: RunOptions,
): Promise<void> {
  const installation = await readInstallation();
  const version = await ownVersion();
  const pictures = join(out, 'pictures');
  await mkdir(pictures, { recursive: true });
  const results = openResults(join(out, 'run.jsonl'));
  const open = entries.filter(({ repo, commit }) => again || results.find(repo, commit) === undefined);
  if (open.length < entries.length) say(`${entries.length - open.length} of ${entries.length} have a result`);
  const options: OneOptions = { installation, mirror, hide, addLicense, pictures, version };
  const queue = open.values();
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      // All workers take from one iterator.
      for (const entry of queue) await one(entry, { results, options, out, say });
    }),
  );
  await writeText(join(out, 'run.md'), runTable(judged(results.all)));
}

interface OneTools {
  readonly results: Results;
  readonly options: OneOptions;
  readonly out: string;
  readonly say: (line: string) => void;
}

/** A fault of this program or the cluster is said and not kept, so that the next run tries the repository again. */
async function one(entry: RunEntry, { results, options, out, say }: OneTools): Promise<void> {
  try {
    const result = await runOne(entry, options);
    await results.add(result);
    await writeText(join(out, 'run.md'), runTable(judged(results.all)));
    const seconds = result.seconds === undefined ? '' : ` in ${result.seconds} s`;
    say(`${entry.repo}: ${result.verdict}${seconds}${result.why === '' ? '' : `: ${shorten(result.why, 200)}`}`);
  } catch (error) {
    say(`${entry.repo}: could not be run: ${error instanceof Error ? error.message : String(error)}`);
  }
}
