// Tools that take long, called by the clients of the protocol's makers: streams, tasks that last, and who may read them.
import assert from 'node:assert/strict';
import { TaskState, type StreamResponse, type TaskPushNotificationConfig } from '@a2a-js/sdk';
import type { Client } from '@a2a-js/sdk/client';
import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import { z } from 'zod';
import { startServer, type PublicServer } from '../../../../../api/http/server.ts';
import { GuardedFetcher } from '../../../../../api/tools/fetch/fetcher.ts';
import {
  assertTask,
  createClient,
  collect,
  formatEvent,
  request,
  formatState,
  versions,
} from '../../../../support/a2a/clients.ts';
import { digTool, Gate } from '../../../../support/a2a/tools.ts';
import { echoTool } from '../../../../support/discovery/sample.ts';
import { silent } from '../../../../support/api/sample.ts';
import { findFreePort } from '../../../../support/free-port.ts';
import { migratedDatabase } from '../../../../support/ledger/snapshot.ts';
import { sampleToolApp, type ToolSample } from '../../../../support/tools/sample.ts';

const gate = new Gate();
const ending = new AbortController();
let baseUrl: string;
let sample: ToolSample;
let server: PublicServer;

beforeAll(async () => {
  const port = await findFreePort();
  baseUrl = `http://127.0.0.1:${port}`;
  sample = await sampleToolApp({
    tools: [echoTool, digTool(gate.pass)],
    environment: { DATABASE_URL: migratedDatabase },
    jobTimes: { pollMs: 20 },
    fetcher: new GuardedFetcher({
      resolve: async (name) => {
        if (name === 'gone.example.com') throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' });
        return Promise.resolve([name === 'hook.example.com' ? '93.184.215.14' : '10.0.0.1']);
      },
    }),
    ending: ending.signal,
    baseUrl,
  });
  server = await startServer({ port, host: '127.0.0.1', listener: sample.app, log: silent });
});
afterAll(async () => {
  gate.open();
  await server.drain({ graceMs: 0, limitMs: 1_000, endStreams: () => undefined });
  await sample.stop();
});
beforeEach(() => {
  gate.close();
});

let calls = 0;
/** A call that no other test makes. */
function dig(more: object = {}): object {
  calls += 1;
  return { tool: 'dig', arguments: { where: `here ${calls}`, ...more } };
}
/** Jobs of all callers. */
async function countJobs(): Promise<number> {
  const [row] = await sample.models.ledger
    .get()
    .database.query(
      { name: 'test-jobs', text: 'select count(*)::int as jobs from tools.job', row: z.object({ jobs: z.int() }) },
      [],
    );
  return row?.jobs ?? assert.fail('no count');
}
const other: typeof fetch = (url, init) =>
  fetch(url, {
    ...init,
    headers: { ...Object.fromEntries(new Headers(init?.headers)), 'x-forwarded-for': '192.0.2.9' },
  });
const byCode =
  (code: number, says = /./) =>
  (error: unknown): boolean => {
    const { envelopeCode, message } = z.object({ envelopeCode: z.number(), message: z.string() }).parse(error);
    assert.equal(envelopeCode, code, message);
    assert.match(message, says);
    return true;
  };
const everything = {
  tenant: '',
  contextId: '',
  status: TaskState.TASK_STATE_UNSPECIFIED,
  pageToken: '',
  statusTimestampAfter: undefined,
};
const notFound = byCode(-32001, /You have no task with this id/);
const config = (taskId: string, more: Partial<TaskPushNotificationConfig> = {}): TaskPushNotificationConfig => ({
  tenant: '',
  id: '',
  taskId,
  url: 'https://hook.example.com/done',
  token: '',
  authentication: undefined,
  ...more,
});

for (const version of versions)
  describe(`A2A ${version}`, () => {
    let client: Client;
    beforeAll(async () => {
      client = await createClient(baseUrl, version);
    });

    /** A task in progress. */
    async function working(): Promise<string> {
      const task = assertTask(await client.sendMessage(request(dig(), { returnImmediately: true })));
      assert.match(formatState(task), /SUBMITTED|WORKING/);
      return task.id;
    }

    test('a stream of a short tool is one message, of a refused call one rejected task', async () => {
      const call = { tool: 'echo', arguments: { text: 'ahoy' } };
      const [message, ...more] = await collect(client.sendMessageStream(request(call)));
      assert.deepEqual(more, []);
      assert.equal(message?.payload?.$case, 'message');
      assert.match(JSON.stringify(message), /"said":"?\[?"ahoy/);
      assert.deepEqual((await collect(client.sendMessageStream(request({ tool: 'ecko' })))).map(formatEvent), [
        'task TASK_STATE_REJECTED',
      ]);
    });

    test('a stream of a long tool is its task, its progress, its result and its end', async () => {
      const events: StreamResponse[] = [];
      const context = crypto.randomUUID();
      for await (const event of client.sendMessageStream(request(dig(), {}, { contextId: context }))) {
        events.push(event);
        if (formatEvent(event).endsWith('step 1')) gate.open();
      }
      const lines = events.map(formatEvent);
      assert.match(lines[0] ?? '', /^task TASK_STATE_(SUBMITTED|WORKING)$/);
      assert.equal(lines[1], 'status TASK_STATE_WORKING: step 1');
      assert.deepEqual(lines.slice(-2), ['artifact data+raw', 'status TASK_STATE_COMPLETED']);
      const ids = events.map(({ payload }) => {
        const { value } = payload ?? assert.fail();
        return [value.contextId, 'taskId' in value ? value.taskId : 'id' in value ? value.id : ''];
      });
      const [[, id = ''] = []] = ids;
      assert.deepEqual(new Set(ids.map(String)), new Set([`${context},${id}`]));
      // The same job, by the same caller, at /t.
      const { result } = z
        .looseObject({ result: z.object({ found: z.string() }) })
        .parse(await (await fetch(`${baseUrl}/t/dig?job=${id}`)).json());
      assert.match(result.found, /^here/);
      const task = await client.getTask({ tenant: '', id });
      assert.deepEqual([formatState(task), task.contextId], ['TASK_STATE_COMPLETED', context]);
      assert.equal(task.artifacts[0]?.parts[1]?.filename, 'found.txt');
      assert.match(JSON.stringify(task.artifacts[0].parts[0]?.content?.value), /"cost_usd":0\.0001/);
    });

    test('a job that fails ends its stream with the problem', async () => {
      gate.open();
      const events = await collect(client.sendMessageStream(request(dig({ rock: true }))));
      assert.equal(formatEvent(events.at(-1) ?? assert.fail()), 'status TASK_STATE_REJECTED: There is rock.');
      assert.match(JSON.stringify(events.at(-1)), /problems\/unprocessable/);
    });

    test('a client that goes away leaves its job; the task is subscribed to again until it ends', async () => {
      let id = '';
      for await (const { payload } of client.sendMessageStream(request(dig()))) {
        id = payload?.$case === 'task' ? payload.value.id : id;
        if (payload?.$case === 'statusUpdate') break;
      }
      const events: StreamResponse[] = [];
      for await (const event of client.resubscribeTask({ tenant: '', id })) {
        events.push(event);
        if (events.length === 2) gate.open();
      }
      assert.deepEqual(events.slice(0, 2).map(formatEvent), [
        'task TASK_STATE_WORKING',
        'status TASK_STATE_WORKING: step 1',
      ]);
      assert.deepEqual(events.slice(-2).map(formatEvent), ['artifact data+raw', 'status TASK_STATE_COMPLETED']);
      await assert.rejects(collect(client.resubscribeTask({ tenant: '', id })), byCode(-32004, /has ended/));
    });

    test('a message waits for its task, or not at all', async () => {
      const id = await working();
      gate.open();
      const ended = assertTask(await client.sendMessage(request(dig())));
      assert.equal(formatState(ended), 'TASK_STATE_COMPLETED');
      assert.deepEqual(
        ended.artifacts[0]?.parts.map(({ content }) => content?.$case),
        ['data', 'raw'],
      );
      while (formatState(await client.getTask({ tenant: '', id })) !== 'TASK_STATE_COMPLETED');
      await assert.rejects(
        client.sendMessage(request(dig(), {}, { taskId: id })),
        byCode(-32004, /takes no further messages/),
      );
    });

    test('a task is canceled once, and its job with it', async () => {
      const id = await working();
      const [canceled, again] = [
        await client.cancelTask({ tenant: '', id, metadata: undefined }),
        await client.cancelTask({ tenant: '', id, metadata: undefined }),
      ];
      assert.deepEqual([canceled, again].map(formatState), ['TASK_STATE_CANCELED', 'TASK_STATE_CANCELED']);
      const { type } = z
        .looseObject({ type: z.string() })
        .parse(await (await fetch(`${baseUrl}/t/dig?job=${id}`)).json());
      assert.match(type, /job-canceled$/);
      gate.open();
      const done = assertTask(await client.sendMessage(request(dig())));
      await assert.rejects(
        client.cancelTask({ tenant: '', id: done.id, metadata: undefined }),
        byCode(-32002, /has ended already/),
      );
    });

    test('a message that is sent again has the task or the message of the first, and is charged once', async () => {
      const again = request(dig(), { returnImmediately: true });
      const ids = [assertTask(await client.sendMessage(again)).id, assertTask(await client.sendMessage(again)).id];
      gate.open();
      const events = await collect(client.sendMessageStream(again));
      assert.deepEqual(ids, [ids[0], ids[0]]);
      assert.match(JSON.stringify(events), new RegExp(ids[0] ?? 'none'));
      assert.equal((await client.getTask({ tenant: '', id: ids[0] ?? '' })).id, ids[0]);
      const short = request({ tool: 'echo', arguments: { text: 'ahoy' } });
      const [first, second] = [await client.sendMessage(short), await client.sendMessage(short)];
      assert.deepEqual(second, first);
      // The same id with other words is no retry.
      const other = { ...again, message: { ...again.message, parts: request(dig()).message?.parts ?? [] } };
      await assert.rejects(client.sendMessage(other as typeof again), byCode(-32602, /different request/));
      // Many clients number their messages: such ids are not taken for a retry.
      const weak = (): Promise<unknown> =>
        client.sendMessage(
          request({ tool: 'echo', arguments: { text: String(Math.random()) } }, {}, { messageId: '1' }),
        );
      await weak();
      await weak();
    });

    test('a task without a key is there for whoever has its id, and listed for nobody else', async () => {
      const id = await working();
      const stranger = await createClient(baseUrl, version, other);
      assert.match(formatState(await stranger.getTask({ tenant: '', id })), /SUBMITTED|WORKING/);
      const neighbour = await createClient(baseUrl, '1.0');
      assert.deepEqual((await neighbour.listTasks(everything)).tasks, []);
      // The same call of a neighbour is another task: its id would be the permission to cancel this one.
      const call = dig();
      const [mine, theirs] = await Promise.all(
        [client, client].map(async (one) =>
          assertTask(await one.sendMessage(request(call, { returnImmediately: true }))),
        ),
      );
      assert.notEqual(mine?.id, theirs?.id);
      for (const one of [mine, theirs]) await client.cancelTask({ tenant: '', id: one?.id ?? '', metadata: undefined });
      for (const [who, task] of [
        [stranger, crypto.randomUUID()],
        [client, crypto.randomUUID()],
        [client, 'none'],
      ] as const) {
        await assert.rejects(who.getTask({ tenant: '', id: task }), notFound);
        await assert.rejects(who.cancelTask({ tenant: '', id: task, metadata: undefined }), notFound);
        await assert.rejects(collect(who.resubscribeTask({ tenant: '', id: task })), notFound);
        await assert.rejects(who.createTaskPushNotificationConfig(config(task)), notFound);
        await assert.rejects(who.getTaskPushNotificationConfig({ tenant: '', taskId: task, id: 'x' }), notFound);
        await assert.rejects(
          who.listTaskPushNotificationConfig({ tenant: '', taskId: task, pageSize: 0, pageToken: '' }),
          notFound,
        );
        await assert.rejects(who.deleteTaskPushNotificationConfig({ tenant: '', taskId: task, id: 'x' }), notFound);
      }
      await client.cancelTask({ tenant: '', id, metadata: undefined });
    });

    test('configs of push notifications are set, read, replaced, listed and deleted; five at most', async () => {
      const taskId = await working();
      const list = async (): Promise<readonly TaskPushNotificationConfig[]> =>
        (await client.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' })).configs;
      const authentication = { scheme: 'Bearer', credentials: 'secret' };
      const made = await client.createTaskPushNotificationConfig(config(taskId, { token: 't', authentication }));
      assert.match(made.id, /^[0-9a-f-]{36}$/);
      const read = await client.getTaskPushNotificationConfig({ tenant: '', taskId, id: made.id });
      assert.equal(read.url, made.url);
      // Token and credentials are written, and never read.
      const [listed] = await list();
      for (const one of [made, read, listed]) assert.doesNotMatch(JSON.stringify(one), /secret|"token":"t/);
      for (const id of ['a', 'b', 'c', 'd', 'd']) await client.createTaskPushNotificationConfig(config(taskId, { id }));
      await assert.rejects(
        client.createTaskPushNotificationConfig(config(taskId, { id: 'e' })),
        byCode(-32602, /has 5 push notification configs, which is the limit/),
      );
      await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: 'a' });
      await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: 'a' });
      assert.deepEqual(
        (await list()).map(({ id }) => id),
        [made.id, 'b', 'c', 'd'],
      );
      await assert.rejects(
        client.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'a' }),
        byCode(-32001, /no push notification config with the id "a"/),
      );
      await client.cancelTask({ tenant: '', id: taskId, metadata: undefined });
    });

    for (const [why, more, says] of [
      ['a private address', { url: 'https://127.0.0.1/' }, /not public/],
      ['a name that leads inside', { url: 'https://inner.example.com/' }, /not public/],
      ['a name that nobody has', { url: 'https://gone.example.com/' }, /cannot be used\..*cannot be resolved/],
      ['http', { url: 'http://hook.example.com/' }, /not https\. Send a public https URL/],
      ['a port of a service', { url: 'https://hook.example.com:6443/' }, /port 6443/],
      ['no address', { url: '' }, /url is missing/],
      ['a token that ends its header', { token: 'a\r\nhost: b' }, /token must be printable ASCII/],
      ['a scheme that is none', { authentication: { scheme: 'a b', credentials: 'c' } }, /scheme must be the name/],
    ] as const)
      test(`a push notification config is refused, and no job begun: ${why}`, async () => {
        const given = config('', more);
        const call = dig();
        const before = await countJobs();
        for (const refused of [
          client.sendMessage(request(call, { taskPushNotificationConfig: given })),
          collect(client.sendMessageStream(request(call, { taskPushNotificationConfig: given }))),
        ])
          await assert.rejects(refused, byCode(-32602, says));
        assert.equal(await countJobs(), before);
        gate.open();
        const task = assertTask(await client.sendMessage(request(call)));
        await assert.rejects(
          client.createTaskPushNotificationConfig({ ...given, taskId: task.id }),
          byCode(-32602, says),
        );
      });
  });

test('tasks without a key are listed by a conversation that nobody guesses, by state and page by page', async () => {
  gate.open();
  const client = await createClient(baseUrl, '1.0', (url, init) =>
    fetch(url, {
      ...init,
      headers: { ...Object.fromEntries(new Headers(init?.headers)), 'x-forwarded-for': '192.0.2.77' },
    }),
  );
  const contextId = crypto.randomUUID();
  const ids: string[] = [];
  for (const rock of [false, true, false])
    ids.unshift(assertTask(await client.sendMessage(request(dig({ rock }), {}, { contextId }))).id);
  const list = async (more: object): ReturnType<Client['listTasks']> =>
    client.listTasks({ ...everything, contextId, ...more });
  const all = await list({});
  assert.deepEqual([all.tasks.map(({ id }) => id), all.totalSize, all.nextPageToken], [ids, 3, '']);
  assert.ok(all.tasks.every(({ artifacts }) => artifacts.length === 0));
  assert.deepEqual(
    (await list({ status: TaskState.TASK_STATE_REJECTED, includeArtifacts: true })).tasks.map(({ id }) => id),
    [ids[1]],
  );
  const first = await list({ pageSize: 2 });
  const second = await list({ pageSize: 2, pageToken: first.nextPageToken });
  assert.deepEqual(
    [...first.tasks, ...second.tasks].map(({ id }) => id),
    ids,
  );
  assert.deepEqual((await list({ contextId: '' })).tasks, []);
  const weak = assertTask(await client.sendMessage(request(dig(), {}, { contextId: 'chat-1' })));
  assert.equal(weak.contextId, 'chat-1');
  assert.deepEqual((await list({ contextId: 'chat-1' })).tasks, []);
  await assert.rejects(list({ pageToken: 'made up' }), byCode(-32602, /pageToken/));
  await assert.rejects(list({ pageSize: 101 }), byCode(-32602, /pageSize/));
  await assert.rejects(list({ historyLength: -1 }), byCode(-32602, /historyLength/));
  const history = async (historyLength?: number): Promise<unknown[]> =>
    (await client.getTask({ tenant: '', id: ids[0] ?? '', historyLength })).history.map(
      ({ parts }) => parts[0]?.content?.value as unknown,
    );
  assert.deepEqual(await history(0), []);
  assert.deepEqual(await history(), [{ tool: 'dig', arguments: { where: `here ${calls - 1}`, rock: false } }]);
  // Date would read this as some time.
  const answer = await fetch(`${baseUrl}/a2a`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ListTasks', params: { statusTimestampAfter: '-1' } }),
  });
  assert.match(await answer.text(), /-32602.*statusTimestampAfter must be a time/);
});

test('of too many streams of one caller, the last ones say how the task stands and end', async () => {
  const client = await createClient(baseUrl, '1.0');
  const { id } = assertTask(await client.sendMessage(request(dig(), { returnImmediately: true })));
  while (formatState(await client.getTask({ tenant: '', id })) !== 'TASK_STATE_WORKING');
  const open = Array.from({ length: 20 }, () => client.resubscribeTask({ tenant: '', id }));
  for (const stream of open) await stream.next();
  // The second event shows that a stream is followed.
  await Promise.all(open.map((stream) => stream.next()));
  assert.deepEqual((await collect(client.resubscribeTask({ tenant: '', id }))).map(formatEvent), [
    'task TASK_STATE_WORKING',
  ]);
  gate.open();
  for (const stream of open)
    assert.equal(formatEvent((await collect(stream)).at(-1) ?? assert.fail()), 'status TASK_STATE_COMPLETED');
  const events = await collect(client.sendMessageStream(request(dig())));
  assert.equal(formatEvent(events.at(-1) ?? assert.fail()), 'status TASK_STATE_COMPLETED');
});

test('the streams of a process that ends are closed, and their jobs go on', async () => {
  const client = await createClient(baseUrl, '1.0');
  const lines: string[] = [];
  for await (const event of client.sendMessageStream(request(dig()))) {
    lines.push(formatEvent(event));
    if (lines.length === 2) ending.abort();
  }
  assert.deepEqual(lines.slice(1), ['status TASK_STATE_WORKING: step 1']);
});
