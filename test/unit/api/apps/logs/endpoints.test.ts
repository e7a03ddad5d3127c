// What an author reads of the log of an app: as JSON, text or a stream, and nobody else reads it.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { Registry } from 'prom-client';
import { z } from 'zod';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { createLogMetrics } from '../../../../../api/apps/logs/collector.ts';
import { LogStore } from '../../../../../api/apps/logs/log-store.ts';
import { createAuthorKey, hashAuthorKey } from '../../../../../lib/ownership-file.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const key = createAuthorKey();
let sample: AppsSample;
let store: LogStore;

beforeAll(async () => {
  sample = await sampleAppsServer({
    author: {
      createSecret: () => Promise.resolve(),
      maximumReplicas: 3,
      lookUpKeys: () => Promise.reject(new Error('nothing is changed here')),
      writeControl: () => Promise.reject(new Error('nothing is changed here')),
      logs: {
        client: {
          list: () => Promise.reject(new Error('there is no cluster')),
          watch: () => {
            throw new Error('there is no cluster');
          },
        },
        openLog: () => Promise.resolve({ state: 'gone' }),
        namespace: 'apps',
        key: undefined,
        streams: 8,
        metrics: createLogMetrics(new Registry()),
        times: { pollMs: 5 },
      },
    },
  });
  await sample.host(
    'mine',
    (_request, response) => response.end('ok'),
    (app): App => ({ ...app, status: { ...app.status, authorKeys: [hashAuthorKey(key, 'git.test/octo/mine')] } }),
  );
  store = new LogStore(() => sample.models.ledger.get().database);
  for (const [version, component] of ['web', 'worker'].entries())
    await append(component, 1, version * 10, version * 10 + 10);
  const crash = { pod: 'mine-1', component: 'worker', restarts: 2, exitCode: 137, signal: 9, reason: 'OOMKilled' };
  const lines = [10, 11, 12].map((second) => ({ at: toTime(second), line: `worker ${second}` }));
  await store.addCrash('uid-mine', { ...crash, instance: 'run', at: '2026-01-01T00:00:13.000Z', lines });
});
afterAll(() => sample.stop());

function toTime(second: number): string {
  return `2026-01-01T00:00:${String(second).padStart(2, '0')}.000000000Z`;
}

async function append(component: string, version: number, from: number, to: number): Promise<void> {
  const lines = Array.from({ length: to - from }, (_, index) => ({
    ...{ stream: 0, at: toTime(from + index), text: `${component} ${from + index}` },
  }));
  const at = toTime(to - 1);
  const stream = { podUid: 'pod', pod: 'mine-1', container: component, component, version };
  await store.append('uid-mine', [{ ...stream, position: { at, count: 1, maxAt: at } }], lines);
}

function ask(query: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Response> {
  return sample.request(`/api/apps/mine/${query}`, { method, headers: { authorization: `Bearer ${key}`, ...headers } });
}

const answer = z.looseObject({
  type: z.string().optional(),
  lines: z.array(z.object({ at: z.string(), component: z.string(), pod: z.string(), line: z.string() })).optional(),
  crash: z.looseObject({ exit_code: z.int() }).optional(),
});

async function readLines(query: string): Promise<string[] | undefined> {
  return answer.parse(await (await ask(query)).json()).lines?.map(({ line }) => line);
}

test('selects lines by number, component, time and text', async () => {
  assert.equal((await readLines('logs'))?.length, 20);
  assert.deepEqual(await readLines('logs?tail=2'), ['worker 18', 'worker 19']);
  assert.deepEqual(await readLines('logs?component=web&tail=1'), ['web 9']);
  assert.deepEqual(await readLines('logs?since=2026-01-01T00:00:17Z'), ['worker 17', 'worker 18', 'worker 19']);
  assert.deepEqual(await readLines('logs?since=10m'), []);
  assert.deepEqual(await readLines('logs?search=b%208'), ['web 8']);
});

test('rejects what cannot be selected', async () => {
  for (const query of [
    'tail=0',
    'tail=5001',
    'since=yesterday',
    `search=${'x'.repeat(201)}`,
    'follow=1',
    'follow=true&previous=true',
  ])
    assert.equal((await ask(`logs?${query}`)).status, 400, query);
});

test('shows the lines before the newest crash, and how it ended', async () => {
  const { lines, crash } = answer.parse(await (await ask('logs?previous=true&tail=1')).json());
  assert.deepEqual(
    lines?.map(({ line }) => line),
    ['worker 12'],
  );
  assert.deepEqual(crash, {
    ...{ at: '2026-01-01T00:00:13.000Z', component: 'worker', pod: 'mine-1', restarts: 2 },
    ...{ exit_code: 137, signal: 9, reason: 'OOMKilled' },
  });
  const none = await ask('logs?previous=true&component=web', { accept: 'text/plain' });
  assert.equal(await none.text(), '# No crash is recorded.\n');
  const { crashes } = z
    .object({ crashes: z.array(z.looseObject({ reason: z.string(), lines: z.array(z.unknown()) })) })
    .parse(await (await ask('crashes')).json());
  assert.deepEqual(
    crashes.map(({ reason, lines: before }) => [reason, before.length]),
    [['OOMKilled', 3]],
  );
});

/** Reads a stream until its text has this many of a pattern, then leaves. */
async function readUntil(response: Response, pattern: RegExp, count: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if ([...text.matchAll(pattern)].length >= count) break;
  }
  return text;
}

test('follows the log as text and as events, and resumes after the last event', async () => {
  const text = readUntil(await ask('logs?follow=true&tail=1&component=web'), /\n/g, 3);
  const events = readUntil(await ask('logs?follow=true&tail=1', { accept: 'text/event-stream' }), /^event: log$/gm, 3);
  await append('web', 2, 20, 22);
  assert.equal(await text, [9, 20, 21].map((second) => `${toTime(second)} web web ${second}\n`).join(''));
  const frames = (await events).split('\n\n').filter((frame) => frame.startsWith('event: log'));
  assert.deepEqual(
    frames.map(
      (frame) => z.looseObject({ line: z.string() }).parse(JSON.parse(/data: (.*)/.exec(frame)?.[1] ?? '')).line,
    ),
    ['worker 19', 'web 20', 'web 21'],
  );
  const [, second = ''] = frames.map((frame) => /^id: (.*)$/m.exec(frame)?.[1]);
  const resumed = await ask('logs?follow=true', { accept: 'text/event-stream', 'last-event-id': second });
  assert.match(await readUntil(resumed, /^event: log$/gm, 1), /"line":"web 21"/);
});

test('a stream ends when its key is revoked, and HEAD opens none', async () => {
  const [app] = sample.store.list();
  assert.ok(app !== undefined);
  const head = await ask('logs?follow=true', { accept: 'text/event-stream' }, 'HEAD');
  assert.deepEqual([head.status, head.headers.get('content-type')], [200, 'text/event-stream']);
  const stream = await ask('logs?follow=true&tail=1');
  const text = stream.text();
  sample.store.set({
    ...app,
    metadata: { ...app.metadata, resourceVersion: '2' },
    status: { ...app.status, authorKeys: [] },
  });
  assert.match(await text, /\n# Your key does not open this app any more, or the app was deleted[.]\n$/);
  sample.store.set({ ...app, metadata: { ...app.metadata, resourceVersion: '3' } });
});

test('limits the streams of a caller', async () => {
  const streams = [await ask('logs?follow=true&tail=1'), await ask('logs?follow=true&tail=1')];
  const reading = streams.map((response) => response.body?.getReader());
  for (const reader of reading) await reader?.read();
  const refused = await ask('logs?follow=true');
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '10']);
  for (const reader of reading) await reader?.cancel();
});

test('attack: nobody without a key of the author reads a line', async () => {
  for (const path of ['logs', 'logs?follow=true', 'crashes', 'logs?previous=true'])
    for (const [authorization, status] of [
      ['', 401],
      [`Bearer ${createAuthorKey()}`, 404],
    ] as const) {
      const headers = {
        'x-forwarded-for': `203.0.${status - 300}.1`,
        ...(authorization === '' ? {} : { authorization }),
      };
      const response = await sample.request(`/api/apps/mine/${path}`, { headers });
      assert.equal(response.status, status, path);
      assert.doesNotMatch(await response.text(), /web \d|worker \d/);
    }
});
