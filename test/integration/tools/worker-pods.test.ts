// Workers' pods that end, are replaced, or answer what they should not: calls are offered elsewhere before they start,
// and refused in words after that. The pods are processes of the program that runs in them.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { serialize } from 'node:v8';
import { afterEach, describe, test } from 'vitest';
import { z } from 'zod';
import type { CodeTask } from '../../../api/tools/builtin/run-code/outcome.ts';
import { createRunCodeTool } from '../../../api/tools/builtin/run-code/run-code.ts';
import { createWorkers } from '../../../api/tools/engine/workers/pool.ts';
import { createRemoteWorkers } from '../../../api/tools/engine/workers/remote/remote-workers.ts';
import { startWorkerServer, type WorkerServer } from '../../../api/tools/engine/workers/remote/worker-server.ts';
import { programFolder } from '../../../api/tools/engine/workers/worker-process.ts';
import type { WorkerCall, Workers } from '../../../api/tools/engine/workers/workers.ts';
import { silent } from '../../support/api/sample.ts';
import { findFreePort } from '../../support/free-port.ts';
import { waitUntil } from '../../support/kubernetes/until.ts';
import { call, isProblem, createServices } from '../../support/tools/call.ts';

const main = join(programFolder, 'api/tools/engine/workers/remote/server-main.ts');
const module = new URL('../../../api/tools/builtin/run-code/worker.ts', import.meta.url);
const ending: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(ending.splice(0).map((end) => end()));
});

async function startPod(port: number): Promise<ChildProcess> {
  const internal = await findFreePort();
  const environment = {
    MOORAGE_PORT: String(port),
    MOORAGE_INTERNAL_PORT: String(internal),
    MOORAGE_DRAIN_SECONDS: '0',
  };
  const child = spawn(process.execPath, [main], { env: environment, stdio: ['ignore', 'ignore', 'inherit'] });
  ending.push(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  while (!(await fetch(`http://127.0.0.1:${internal}/readyz`).catch(() => undefined))?.ok) await sleep(50);
  return child;
}

function client(port: number, options = {}): Workers {
  const workers = createRemoteWorkers(`http://127.0.0.1:${port}`, options);
  ending.push(() => workers.close());
  return workers;
}

const by = (owner: string, more: Partial<WorkerCall> = {}): WorkerCall => ({ owner, ...more });
const code = (text: string): CodeTask => ({ code: text, input: undefined });
const endless = { module, input: code('for (;;);'), timeoutMs: 20_000, memoryMb: 192 };
/** Keeps a worker without using the processor. */
const idle = {
  ...endless,
  input: { ...code('await new Promise((resolve) => setTimeout(resolve, 50_000))'), limitMs: 60_000 },
};
/** Resolves `accepted` once a pod has taken the call, or none has. */
function watchAcceptance(): { accepted: Promise<undefined>; waiting: NonNullable<WorkerCall['waiting']> } {
  const { promise: accepted, resolve } = Promise.withResolvers<undefined>();
  const waiting: NonNullable<WorkerCall['waiting']> = (wait) =>
    wait.finally(() => {
      resolve(undefined);
    });
  return { accepted, waiting };
}
const short = { module, input: code('1 + 1'), memoryMb: 192 };

describe("a workers' pod", () => {
  test('runs a tool', async () => {
    const port = await findFreePort();
    await startPod(port);
    const { result } = await call(createRunCodeTool(createServices({ workers: client(port) })), { code: '6 * 7' });
    assert.match(JSON.stringify(result), /42/);
  });

  test('that is killed loses its running calls with an explanation, and new ones wait for the next pod', async () => {
    const port = await findFreePort();
    const pod = await startPod(port);
    const workers = client(port);
    const { accepted, waiting } = watchAcceptance();
    const lost = assert.rejects(
      workers.run(idle, by('one', { waiting })),
      isProblem('tool-busy', /The worker of this call was stopped\. Try again in 5 seconds\./),
    );
    await accepted;
    pod.kill('SIGKILL');
    await lost;
    const meanwhile = workers.run(short, by('other'));
    await startPod(port);
    await meanwhile;
  });

  test('that does not return is reported as such', async () => {
    const workers = client(await findFreePort(), { searchMs: 500 });
    await assert.rejects(workers.run(short, by('one')), isProblem('tool-busy', /No worker answers/));
  });

  test('that is asked to stop finishes running calls and returns waiting ones', async () => {
    const port = await findFreePort();
    const pod = await startPod(port);
    const workers = client(port);
    const { accepted, waiting } = watchAcceptance();
    const running = workers.run(
      { module, input: code('await new Promise((resolve) => setTimeout(resolve, 4_000)); "done"'), memoryMb: 192 },
      by('one', { waiting }),
    );
    await accepted;
    // The same caller, who has its share already: it waits.
    const queued = workers.run(short, by('one'));
    await sleep(500);
    const exited = once(pod, 'exit');
    pod.kill('SIGTERM');
    assert.match(JSON.stringify(await running), /done/);
    assert.deepEqual(await exited, [0, null]);
    await startPod(port);
    await queued;
  });

  test('stops the work of a call whose caller has disconnected', async () => {
    const port = await findFreePort();
    await startPod(port);
    const workers = client(port);
    const reason = new Error('gone');
    const gone = new AbortController();
    const calls = ['one', 'other'].map((owner) =>
      assert.rejects(workers.run(endless, by(owner, { signal: gone.signal })), reason),
    );
    await sleep(1_000);
    gone.abort(reason);
    await Promise.all(calls);
    const since = performance.now();
    await workers.run(short, by('third'));
    assert.ok(performance.now() - since < 10_000, 'no worker is held for them');
  });

  test('of another version, which lacks the module, is skipped with a hint', async () => {
    const port = await findFreePort();
    await startPod(port);
    const workers = client(port);
    for (const path of ['api/tools/builtin/none/worker.ts', '../../../etc/passwd', 'lib/problem.ts'])
      await assert.rejects(
        workers.run({ module: new URL(path, `file://${programFolder}/`), input: 1 }, by('one')),
        isProblem('tool-busy', /being updated/),
      );
  });
});

describe('several pods', () => {
  const pod = async (host: string, port: number): Promise<WorkerServer> => {
    const pool = createWorkers();
    const modules = pathToFileURL(`${programFolder}/`);
    const server = await startWorkerServer({ workers: pool, modules, log: silent, port, host });
    ending.push(() => pool.close());
    return server;
  };
  const running = (pods: readonly WorkerServer[]): number[] => pods.map((one) => one.tasks().running);

  test("share an API's tasks; one that does not respond is skipped, and tasks that one returns go to the other", async () => {
    const port = await findFreePort();
    const pods = [await pod('127.0.0.1', port), await pod('127.0.0.2', port)];
    const workers = client(port, { resolve: () => Promise.resolve(['127.0.0.3', '127.0.0.1', '127.0.0.2']) });
    const gone = new AbortController();
    const ends = (owner: string): Promise<void> =>
      assert.rejects(workers.run(idle, by(owner, { signal: gone.signal })));
    const calls = [ends('one'), ends('two')];
    await waitUntil(() => isDeepStrictEqual(running(pods), [1, 1]));
    calls.push(ends('three'), ends('four'));
    await waitUntil(() => isDeepStrictEqual(running(pods), [2, 2]));
    // The fifth waits at one of them, which is then asked to end.
    const fifth = workers.run(short, by('five'));
    await waitUntil(() => pods.some((one) => one.tasks().waiting === 1));
    const waits = pods.filter((one) => one.tasks().waiting === 1);
    assert.equal(waits.length, 1);
    const others = pods.filter((one) => !waits.includes(one));
    const drained = waits[0]?.drain();
    await waitUntil(() => others[0]?.tasks().waiting === 1);
    gone.abort();
    await Promise.all(calls);
    await drained;
    await fifth;
    await workers.close();
    await Promise.all(others.map((one) => one.drain()));
  });
});

describe('attack: a compromised pod', () => {
  const answers = async (body: () => Buffer | undefined): Promise<Workers> => {
    const server = createServer();
    server.on('checkContinue', (request, response) => {
      response.writeContinue();
      request.resume().once('end', () => {
        response.writeHead(200).end(body());
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    ending.push(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    return client((server.address() as AddressInfo).port);
  };

  test('controls no header, and invalid responses are rejected', async () => {
    const forged = (status: number): object => ({
      kind: 'refused',
      problem: {
        type: { slug: 'tool-busy', status, title: 'x', description: 'x' },
        detail: 'x',
        members: {},
        errors: [],
        headers: { 'set-cookie': 'a=b' },
      },
      spent: false,
    });
    const workers = await answers(() => serialize(forged(503)));
    await assert.rejects(workers.run(short, by('one')), (error) => {
      assert.deepEqual(z.object({ headers: z.unknown() }).parse(error).headers, { 'retry-after': '5' });
      return true;
    });
    for (const [bytes, slug, words] of [
      [serialize({ kind: 'other' }), 'tool-failed', /no valid answer/],
      [serialize(forged(302)), 'tool-failed', /no valid answer/],
      [Buffer.from('not serialized'), 'tool-busy', /was stopped/],
      [undefined, 'tool-busy', /was stopped/],
    ] as const)
      await assert.rejects((await answers(() => bytes)).run(short, by('one')), isProblem(slug, words));
  });

  test("cannot fill the API's memory", async () => {
    const workers = await answers(() => Buffer.alloc(65 * 1_048_576));
    await assert.rejects(workers.run(short, by('one')), isProblem('tool-limit', /larger than 64 MB/));
  });
});

test('rejects input that is too large before sending it', async () => {
  const port = await findFreePort();
  await startPod(port);
  const input = new Uint8Array(65 * 1_048_576);
  await assert.rejects(
    client(port).run({ ...short, input }, by('one')),
    isProblem('tool-limit', /The input of the call is larger than 64 MB/),
  );
});
