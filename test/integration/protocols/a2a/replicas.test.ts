// Tasks and push notifications of the agent on a real PostgreSQL: any replica answers, and what one that is killed
// leaves, another one delivers.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { StreamResponse, type Task } from '@a2a-js/sdk';
import { legacyPushNotificationToV1StreamResponse } from '@a2a-js/sdk/compat/v0_3';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { z } from 'zod';
import { openLedgerDatabase, type Database } from '../../../../api/billing/database/database.ts';
import { assertTask, createClient, formatEvent, request, formatState, versions } from '../../../support/a2a/clients.ts';
import { sharePostgres, type SharedPostgres } from '../../../support/ledger/postgres.ts';

interface Replica {
  readonly child: ChildProcess;
  readonly url: string;
}
interface Notification {
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

const folder = mkdtempSync(join(tmpdir(), 'moorage-a2a-'));
const gate = join(folder, 'open');
const received: Notification[] = [];
let postgres: SharedPostgres;
let database: Database;
let receiver: Server;
let hook: URL;
let start: () => Promise<Replica>;
let replicas: Replica[] = [];
/** How the receiver answers. */
let answer: (response: ServerResponse) => void;

beforeAll(async () => {
  postgres = await sharePostgres();
  const databaseUrl = await postgres.createDatabase('agent');
  database = await openLedgerDatabase(databaseUrl);
  receiver = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      received.push({ headers: incoming.headers, body: JSON.parse(Buffer.concat(chunks).toString()) as unknown });
      answer(response);
    });
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const address = receiver.address();
  hook = new URL(`http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/done`);
  start = async () => {
    const parameters = [databaseUrl, gate, hook.host];
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, '../../../support/a2a/agent-server.ts'), ...parameters],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    return { child, url: `http://127.0.0.1:${port}` };
  };
  replicas = await Promise.all([start(), start()]);
});
afterAll(async () => {
  for (const { child } of replicas) child.kill('SIGKILL');
  receiver.closeAllConnections();
  receiver.close();
  await database.close();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  rmSync(gate, { force: true });
  received.length = 0;
  answer = (response) => response.writeHead(204).end();
});

const at = (index: number): string => replicas[index]?.url ?? assert.fail('no such replica');
const open = (): void => {
  writeFileSync(gate, '');
};
let calls = 0;
function dig(): object {
  calls += 1;
  return { tool: 'dig', arguments: { where: `here ${calls}` } };
}
const push = (more: object = {}): { taskPushNotificationConfig: never } => ({
  taskPushNotificationConfig: {
    tenant: '',
    id: 'mine',
    taskId: '',
    url: hook.href,
    token: 'opaque',
    authentication: { scheme: 'Bearer', credentials: 'secret' },
    ...more,
  } as never,
});

async function until(what: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await what())) await sleep(20);
}

/** How a config stands, and its secrets. */
async function configOf(job: string): Promise<{ state: string; attempts: number; secrets: number }> {
  const [row] = await database.query(
    {
      name: 'config',
      text: 'select state, attempts::int, num_nonnulls(token, scheme, credentials) as secrets from agents.push_config where job = $1::uuid',
      row: z.object({ state: z.string(), attempts: z.int(), secrets: z.int() }),
    },
    [job],
  );
  return row ?? assert.fail('no config');
}

/** The task in a notification of this version. */
function taskIn({ body }: Notification, version: string): Task {
  const { payload } =
    version === '1.0' ? StreamResponse.fromJSON(body) : legacyPushNotificationToV1StreamResponse(body);
  assert.equal(payload?.$case, 'task');
  return payload.value;
}

for (const version of versions) {
  test(`A2A ${version}: another replica follows a stream and its task that one replica started`, async () => {
    const [here, there] = await Promise.all([createClient(at(0), version), createClient(at(1), version)]);
    const begun = assertTask(await here.sendMessage(request(dig(), { returnImmediately: true })));
    const lines: string[] = [];
    for await (const event of there.resubscribeTask({ tenant: '', id: begun.id })) {
      lines.push(formatEvent(event));
      if (lines.at(-1)?.endsWith('step 1') === true) open();
    }
    assert.ok(lines.includes('status TASK_STATE_WORKING: step 1'), lines.join());
    assert.deepEqual(lines.slice(-2), ['artifact data+raw', 'status TASK_STATE_COMPLETED']);
    for (const client of [here, there])
      assert.equal(formatState(await client.getTask({ tenant: '', id: begun.id })), 'TASK_STATE_COMPLETED');
  });

  test(`A2A ${version}: another replica cancels a running task`, async () => {
    const [here, there] = await Promise.all([createClient(at(0), version), createClient(at(1), version)]);
    const begun = assertTask(await here.sendMessage(request(dig(), { returnImmediately: true })));
    const events: StreamResponse[] = [];
    const following = (async () => {
      for await (const event of here.resubscribeTask({ tenant: '', id: begun.id })) events.push(event);
    })();
    // A task that has ended cannot be followed.
    await until(() => events.length > 0);
    await until(async () => formatState(await there.getTask({ tenant: '', id: begun.id })) === 'TASK_STATE_WORKING');
    await there.cancelTask({ tenant: '', id: begun.id, metadata: undefined });
    await following;
    assert.match(formatEvent(events.at(-1) ?? assert.fail()), /^status TASK_STATE_CANCELED: The job was canceled/);
    open();
    await sleep(200);
    assert.equal(formatState(await here.getTask({ tenant: '', id: begun.id })), 'TASK_STATE_CANCELED');
  });

  test(`A2A ${version}: pushes the end of a task once, with its result, and deletes its secrets`, async () => {
    const client = await createClient(at(0), version);
    const { id } = assertTask(await client.sendMessage(request(dig(), { returnImmediately: true, ...push() })));
    await sleep(200);
    assert.deepEqual([received.length, (await configOf(id)).secrets], [0, 3]);
    open();
    await until(async () => (await configOf(id)).state === 'delivered');
    const [only = assert.fail(), ...more] = received;
    assert.deepEqual(more, []);
    const task = taskIn(only, version);
    assert.deepEqual([task.id, formatState(task)], [id, 'TASK_STATE_COMPLETED']);
    assert.equal(task.artifacts[0]?.parts[1]?.filename, 'found.txt');
    assert.deepEqual(
      [only.headers['x-a2a-notification-token'], only.headers.authorization, only.headers['content-type']],
      ['opaque', 'Bearer secret', version === '1.0' ? 'application/a2a+json' : 'application/json'],
    );
    assert.deepEqual(await configOf(id), { state: 'delivered', attempts: 1, secrets: 0 });
  });
}

test('notifies a config set after the end immediately, also for a canceled task', async () => {
  const client = await createClient(at(1), '1.0');
  const { id } = assertTask(await client.sendMessage(request(dig(), { returnImmediately: true })));
  await client.cancelTask({ tenant: '', id, metadata: undefined });
  await client.createTaskPushNotificationConfig({
    ...(push().taskPushNotificationConfig as object),
    taskId: id,
  } as never);
  await until(() => received.length > 0);
  assert.equal(formatState(taskIn(received[0] ?? assert.fail(), '1.0')), 'TASK_STATE_CANCELED');
});

test('retries a failing receiver with growing delays, and finally gives up', { timeout: 120_000 }, async () => {
  open();
  const client = await createClient(at(0), '1.0');
  answer = (response) => (received.length < 3 ? response.writeHead(500).end() : response.writeHead(200).end('thanks'));
  const late = assertTask(await client.sendMessage(request(dig(), push())));
  await until(async () => (await configOf(late.id)).state === 'delivered');
  assert.deepEqual([received.length, (await configOf(late.id)).attempts], [3, 3]);
  received.length = 0;
  // A redirect is no receipt, and is not followed.
  answer = (response) => response.writeHead(302, { location: hook.href }).end();
  const never = assertTask(await client.sendMessage(request(dig(), push())));
  await until(async () => (await configOf(never.id)).state === 'abandoned');
  assert.deepEqual(await configOf(never.id), { state: 'abandoned', attempts: 6, secrets: 0 });
  assert.equal(received.length, 6);
});

test('another process delivers a notification whose process was killed', { timeout: 120_000 }, async () => {
  open();
  const client = await createClient(at(0), '1.0');
  // Both replicas look for what is due: who holds this one is killed with the other.
  answer = () => undefined;
  const { id } = assertTask(await client.sendMessage(request(dig(), push())));
  await until(() => received.length > 0);
  for (const { child } of replicas) child.kill('SIGKILL');
  answer = (response) => response.writeHead(200).end();
  replicas = [await start()];
  await until(async () => (await configOf(id)).state === 'delivered');
  assert.ok(received.length >= 2 && received.every((one) => taskIn(one, '1.0').id === id));
  assert.ok((await configOf(id)).attempts >= 2);
});
