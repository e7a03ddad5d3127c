// `npm run bench:swap`: an app with a volume under one request every 100 ms, while commits that start well and commits
// that do not start replace the one that serves: requests, failures and the longest wait.
import { appUrl, deleteApps, edit, waitFor, get, removeFiles, submit, writeFiles } from '../support/cluster.ts';
import { requestSteadily, volumeAppFiles } from '../support/steady-requests.ts';

const rounds = Number(process.argv[2] ?? 3);
const name = `bench-swap-${process.pid}`;
const folder = writeFiles(name, volumeAppFiles);

function change(version: number, isBroken: boolean): void {
  edit(
    folder,
    'app.py',
    (text) =>
      `${isBroken ? 'this is no python\n' : ''}${text.replace(/^this is no python\n/, '').replace(/version \d+/, `version ${version}`)}`,
  );
}

try {
  const first = await submit(folder);
  if (first.exitCode !== 0) throw new Error(first.all);
  await waitFor('a response', async () => ((await get(appUrl(name))).status === 200 ? true : undefined));
  process.stdout.write('commit      requests  failures  longest wait  responses\n');
  for (let round = 0; round < rounds; round += 1) {
    for (const kind of ['good', 'broken'] as const) {
      change(2 + 2 * round + (kind === 'broken' ? 1 : 0), kind === 'broken');
      const { count, failures, longestMs, bodies } = await requestSteadily(appUrl(name), submit(folder), 20_000);
      process.stdout.write(
        `${kind.padEnd(10)} ${String(count).padStart(9)} ${String(failures.length).padStart(9)} ${`${(longestMs / 1000).toFixed(2)} s`.padStart(13)}  ${[...bodies].join('; ')}\n`,
      );
      if (failures.length > 0) process.stdout.write(`  ${failures[0] ?? ''}\n  ${failures.at(-1) ?? ''}\n`);
    }
  }
} finally {
  await deleteApps(name);
  removeFiles(folder);
}
