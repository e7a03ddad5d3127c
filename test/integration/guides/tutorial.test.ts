// Follows docs/tutorial.md without a cluster: the app is planned and started as Moorage would, against a real PostgreSQL,
// and a crash is diagnosed by the operator's own code. test/e2e/tutorial.test.ts runs the same steps on a cluster.
import assert from 'node:assert/strict';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { planFolder } from '../../../cli/plan/plan-folder.ts';
import type { Status } from '../../../cli/submit/api-client.ts';
import { createOutput } from '../../../cli/submit/output.ts';
import { readManifest } from '../../../controller/pipeline/app-manifest.ts';
import { readDiskTree } from '../../../controller/pipeline/tree.ts';
import { diagnoseCrash } from '../../support/crash.ts';
import { findFreePort } from '../../support/free-port.ts';
import { startPostgres, type Postgres } from '../../support/ledger/postgres.ts';
import {
  assertOutput,
  createTutorialHome,
  isRejected,
  readTutorial,
  root,
  type TutorialStep,
} from '../../support/tutorial.ts';

const home = createTutorialHome();
const folder = join(home.folder, 'guestbook');
const url = 'https://guestbook.moorage-apps.localhost/';
let postgres: Postgres;
let databaseUrl: string;
let port: number;

interface App {
  readonly port: number;
  kill(): void;
  readonly ended: Promise<{ readonly log: string; readonly exitCode: number }>;
}
let serving: App | undefined;

beforeAll(async () => {
  postgres = await startPostgres({ durable: false });
  databaseUrl = await postgres.createEmptyDatabase('guestbook');
});
afterAll(async () => {
  await stop(serving);
  await postgres.stop();
  home.remove();
});

async function stop(app: App | undefined): Promise<void> {
  app?.kill();
  await app?.ended;
}

/** Starts the folder by the command that its planned image has, with the variables that its pod would have. */
async function start(): Promise<App> {
  const planned = planFolder(folder);
  assert.equal(planned.refused, false, JSON.stringify(planned.findings));
  const { settings } = readManifest(readDiskTree(folder, { skipped: new Set(['node_modules']) }));
  assert.ok(settings !== undefined);
  assert.deepEqual(
    settings.services?.map(({ name, type }) => [name, type]),
    [['db', 'postgres']],
  );
  const [, command = '[]'] = /^CMD (\[.*\])$/m.exec(planned.dockerfile ?? '') ?? [];
  const [program = '', ...args] = JSON.parse(command) as string[];
  const free = await findFreePort();
  const running = execa(program, args, {
    cwd: folder,
    all: true,
    reject: false,
    env: {
      ...Object.fromEntries((settings.run?.env ?? []).map(({ name, value }) => [name, value])),
      DATABASE_URL: databaseUrl,
      PORT: String(free),
    },
  });
  return {
    port: free,
    kill: () => void running.kill(),
    ended: running.then(({ all, exitCode = 0 }) => ({ log: all, exitCode })),
  };
}

/** Whether the app listens before it ends. */
async function listens({ port: own, ended }: App): Promise<boolean> {
  for (;;) {
    const answered = await Promise.race([
      ended.then(() => false),
      fetch(`http://127.0.0.1:${own}/`).then(
        () => true,
        () => undefined,
      ),
    ]);
    if (answered !== undefined) return answered;
    await sleep(50);
  }
}

/** What `npm run submit` would print: the folder is deployed here, and the release before serves on if it crashes. */
async function submit(created: boolean): Promise<string> {
  const lines: string[] = [];
  const output = createOutput((line) => lines.push(line));
  output.printLine(`pushed ${folder} to local/guestbook at 0000000, a snapshot of the folder`);
  output.printLine(`${created ? 'submitted' : 'submitted before'}: guestbook`);
  const app = await start();
  const { plan } = planFolder(folder);
  const status: Status = { status: 'live', message: '', slug: 'guestbook', url, status_url: '', log_url: '', plan };
  if (await listens(app)) {
    await stop(serving);
    serving = app;
    port = app.port;
    output.writeVerdict(status, undefined);
    return lines.join('\n');
  }
  const { log, exitCode } = await app.ended;
  output.writeVerdict(status, diagnoseCrash({ log: log.replaceAll(folder, '/app'), exitCode }));
  return lines.join('\n');
}

/** The gateway is the app's own port here. `npm run` could install packages, which other tests use now. */
function withoutCluster(command: string): string {
  return command
    .replaceAll(`--cacert .moorage/ca.crt ${url}`, `http://127.0.0.1:${port}/`)
    .replaceAll('npm run plan -- ', 'node cli/moorage/main.ts plan ');
}

async function follow(step: TutorialStep, submissions: number): Promise<boolean> {
  const lines = step.command.split('\n');
  const submits = lines.some((line) => line.startsWith('npm run submit'));
  const own = lines.filter((line) => !/^(?:npm run submit|\.moorage\/kubectl)/.test(line)).join('\n');
  const { exitCode, all } = await home.run(withoutCluster(own));
  assert.equal(exitCode, 0, `${own}\n${all}`);
  assertOutput(step, submits ? await submit(submissions === 0) : all);
  return submits;
}

test("the tutorial's app is planned, served, rejected and repaired as the page describes", async () => {
  let submissions = 0;
  const steps = readTutorial();
  for (const step of steps) {
    if (await follow(step, submissions)) submissions += 1;
    // The image installs the packages; here they are the project's own.
    if (step === steps[0]) symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  }
  assert.equal(submissions, 3);
  assert.equal(steps.filter(isRejected).length, 1);
});
