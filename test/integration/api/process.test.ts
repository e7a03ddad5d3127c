// The API as a process, and `npm run submit` against it: push, submit, follow, verdict; and an end that fails no
// request.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, test } from 'vitest';
import { createApiClient } from '../../../cli/submit/api-client.ts';
import { Fault, readInstallation, type Installation } from '../../../cli/submit/installation.ts';
import { createOutput } from '../../../cli/submit/output.ts';
import { submit } from '../../../cli/submit/submit.ts';
import type { ApiServer } from '../../support/kubernetes/api-server.ts';
import { setStatus, since, startAppsServer } from '../../support/api/apps-server.ts';
import { startReplica } from '../../support/api/replica.ts';
import { findFreePort } from '../../support/free-port.ts';

const root = new URL('../../..', import.meta.url).pathname;
let server: ApiServer;
let folder: string;
let stopGitServer = (): Promise<void> => Promise.resolve();
let gitUrl: string;

beforeAll(async () => {
  server = await startAppsServer();
  folder = await mkdtemp(join(tmpdir(), 'moorage-submit-test-'));
  await writeFile(join(folder, 'git-password'), 'secret\n');
  const port = await findFreePort();
  gitUrl = `http://127.0.0.1:${port}`;
  const gitServer = execa('node', ['localnode/git-server/server.ts'], {
    cwd: root,
    reject: false,
    env: {
      PORT: String(port),
      REPOSITORIES: join(folder, 'repositories'),
      PASSWORD_FILE: join(folder, 'git-password'),
    },
  });
  stopGitServer = async () => {
    gitServer.kill();
    await gitServer;
  };
  await answering(`${gitUrl}/healthz`);
});
afterAll(async () => {
  await stopGitServer();
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

async function answering(url: string): Promise<void> {
  while (
    !(await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    ))
  )
    await new Promise((resolve) => setTimeout(resolve, 50));
}

const head = async (name: string): Promise<string> =>
  (await execa('git', ['ls-remote', `${gitUrl}/local/${name}.git`, 'refs/heads/main'])).stdout.split('\t')[0] ?? '';

/** Runs the command; `act` plays the operator once a line matches. */
async function run(
  installation: Installation,
  what: string,
  act: Record<string, () => Promise<unknown>>,
): Promise<{ code: number; lines: string[] }> {
  const api = createApiClient(installation);
  const lines: string[] = [];
  const acting: Promise<unknown>[] = [];
  const output = createOutput((line) => {
    lines.push(line);
    for (const [pattern, run] of Object.entries(act)) if (line.includes(pattern)) acting.push(run());
  });
  try {
    return { code: await submit({ what }, { installation, api, output, lookMs: 20 }), lines };
  } finally {
    await Promise.all(acting);
    await api.close();
  }
}

test('a folder: live, live again after a change, unchanged, then rejected', async () => {
  const internalGitUrl = gitUrl.replace('127.0.0.1', 'localhost');
  const { host } = new URL(internalGitUrl);
  const api = await startReplica(server, { allowed: [host], insecure: [host], pollMs: 1 });
  try {
    const to = { baseUrl: api.url, gitUrl, internalGitUrl, authority: undefined, gitPassword: 'secret' };
    const app = join(folder, 'My App');
    await mkdir(app);
    await writeFile(join(app, 'index.html'), 'one');
    const goLive = async (): Promise<void> => {
      const commit = await head('my-app');
      await setStatus(server, 'my-app', {
        phase: 'Live',
        url: 'https://my-app.test',
        source: { commit },
        served: { image: 'i', commit, since },
        rejection: null,
      });
    };
    const first = await run(to, app, { 'submitted: my-app': goLive });
    assert.equal(first.code, 0);
    assert.equal(first.lines.at(-1), 'https://my-app.test');
    const unchanged = await run(to, app, {});
    assert.equal(unchanged.code, 0);
    await writeFile(join(app, 'index.html'), 'two');
    const second = await run(to, app, { 'submitted before': goLive });
    assert.equal(second.code, 0);
    await writeFile(join(app, 'key'), 'AKIA');
    const third = await run(to, app, {
      'submitted before': async () =>
        setStatus(server, 'my-app', {
          phase: 'Rejected',
          source: { commit: await head('my-app') },
          rejection: { rule: 'secrets/aws', file: 'key', line: 1, message: 'A key', fix: 'Take it out' },
        }),
    });
    assert.equal(third.code, 1);
    assert.deepEqual(
      third.lines.slice(-5).map((line) => line.replace(/^ *[\d.]+ s/, 'T')),
      [
        'T  rejected; the last good commit is still live',
        '  rule   secrets/aws',
        '  at     key:1',
        '  why    A key',
        '  fix    Take it out',
      ],
    );
  } finally {
    await api.stop();
  }
});

test('faults explain what to do', async () => {
  const refused = async (what: string, installation: Partial<Installation>, says: RegExp): Promise<void> => {
    const to = {
      baseUrl: 'http://127.0.0.1:1',
      gitUrl,
      internalGitUrl: gitUrl,
      authority: undefined,
      gitPassword: 'secret',
      ...installation,
    };
    await assert.rejects(run(to, what, {}), (error) => error instanceof Fault && says.test(error.message));
  };
  await refused('./nowhere', {}, /no folder \.\/nowhere/);
  await refused(join(folder, 'git-password'), {}, /is a file/);
  await refused('octo/chat', {}, /does not answer.*npm run up/);
  await refused(join(root, 'lib'), { gitPassword: 'wrong' }, /push to .* failed/);
  await refused(join(root, 'lib'), { gitPassword: undefined }, /no git server/);
  await assert.rejects(
    readInstallation(join(folder, 'none')),
    (error) => error instanceof Fault && error.message.includes('npm run up'),
  );
  const api = await startReplica(server);
  await refused('octo/chat/extra', { baseUrl: api.url }, /repo: .*\. Write it as owner\/name/);
  await api.stop();
});

test('the command: usage and exit code 2', async () => {
  const command = async (
    ...args: string[]
  ): Promise<{ exitCode: number | undefined; stderr: string; stdout: string }> => {
    const { exitCode, stderr, stdout } = await execa('node', ['cli/moorage/main.ts', 'submit', ...args], {
      cwd: root,
      reject: false,
    });
    return { exitCode, stderr, stdout };
  };
  const none = await command();
  assert.deepEqual([none.exitCode, none.stderr.includes('usage:')], [2, true]);
  assert.equal((await command('a/b', 'c/d')).exitCode, 2);
  assert.equal((await command('--nope')).exitCode, 2);
  const help = await command('--help');
  assert.deepEqual([help.exitCode, help.stdout.includes('usage:')], [0, true]);
});

test('the process: ready, serving, and on SIGTERM first unready while it keeps serving', async () => {
  const [port, internal, models] = [await findFreePort(), await findFreePort(), await findFreePort()];
  const env = {
    KUBECONFIG: server.kubeconfig,
    MOORAGE_BASE_DOMAIN: 'moorage.test',
    MOORAGE_GIT_ALLOWED_HOSTS: 'git.test',
    MOORAGE_CALLER_SALT: 'x'.repeat(64),
    MOORAGE_PORT: String(port),
    MOORAGE_INTERNAL_PORT: String(internal),
    MOORAGE_APPS_PORT: String(models),
    MOORAGE_DRAIN_SECONDS: '2',
  };
  const api = execa('node', ['api/main.ts'], { cwd: root, reject: false, env });
  try {
    await answering(`http://127.0.0.1:${internal}/readyz`);
    await answering(`http://127.0.0.1:${port}/`);
    assert.equal((await fetch(`http://127.0.0.1:${internal}/healthz`)).status, 200);
    assert.match(
      await (await fetch(`http://127.0.0.1:${internal}/metrics`)).text(),
      /moorage_http_request_duration_seconds_count\{method="GET",route="\/",status="200"\}/,
    );
    assert.equal((await fetch(`http://127.0.0.1:${port}/metrics`)).status, 404);
    // Without a router and a database all else serves; the port of apps has nothing but /v1.
    const asked = await fetch(`http://127.0.0.1:${port}/api/ask`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"prompt": "Hello"}',
    });
    assert.deepEqual([asked.status, (await asked.text()).includes('MOORAGE_ROUTER_URL')], [503, true]);
    assert.deepEqual(
      await Promise.all(
        ['/v1/models', '/api/models', '/'].map(
          async (path) => (await fetch(`http://127.0.0.1:${models}${path}`)).status,
        ),
      ),
      [503, 404, 404],
    );
    const submitted = await fetch(`http://127.0.0.1:${port}/api/submit`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"repo": "octo/process"}',
    });
    assert.equal(submitted.status, 200);
    const stream = await fetch(`http://127.0.0.1:${port}/api/submit-status/octo/process/log`);
    api.kill('SIGTERM');
    while ((await fetch(`http://127.0.0.1:${internal}/readyz`)).status === 200)
      await new Promise((resolve) => setTimeout(resolve, 10));
    const late = await fetch(`http://127.0.0.1:${port}/`);
    assert.deepEqual([late.status, late.headers.get('connection')], [200, 'close']);
    assert.doesNotMatch(await stream.text(), /event: end/);
    const ended = await api;
    assert.equal(ended.exitCode, 0, `${ended.shortMessage ?? ''} ${ended.stdout} ${ended.stderr}`);
    assert.doesNotMatch(ended.stdout, /127\.0\.0\.1/);
  } finally {
    api.kill('SIGKILL');
    await api;
  }
});
