// `npm run corpus -- run`: submits every repository to the running cluster, some at once, and keeps what came of it.
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readInstallation } from '../../../cluster/submit/installation.ts';
import type { Entry } from '../corpus.ts';
import { writeText } from '../table.ts';
import { ownVersion } from '../version.ts';
import { runOne, type OneOptions } from './one.ts';
import { runTable } from './report.ts';
import { openResults } from './results.ts';

export interface RunOptions {
  readonly mirror: string | undefined;
  readonly out: string;
  readonly parallel: number;
  readonly say: (line: string) => void;
}

export async function run(entries: readonly Entry[], { mirror, out, parallel, say }: RunOptions): Promise<void> {
  const installation = await readInstallation();
  const version = await ownVersion();
  const pictures = join(out, 'pictures');
  await mkdir(pictures, { recursive: true });
  const results = openResults(join(out, 'run.jsonl'), version);
  const open = entries.filter(({ repo, commit }) => results.find(repo, commit) === undefined);
  if (open.length < entries.length) say(`${entries.length - open.length} of ${entries.length} are done at ${version}`);
  const options: OneOptions = { installation, mirror, pictures, version };
  const queue = open.values();
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      // All workers take from one iterator.
      for (const entry of queue) {
        const result = await runOne(entry, options);
        await results.add(result);
        await writeText(join(out, 'run.md'), runTable(results.all));
        const seconds = result.seconds === undefined ? '' : ` in ${result.seconds} s`;
        say(`${entry.repo}: ${result.verdict}${seconds}${result.why === '' ? '' : `: ${result.why.slice(0, 200)}`}`);
      }
    }),
  );
  await writeText(join(out, 'run.md'), runTable(results.all));
}
