// No way to ask for a log keeps its slot: not HEAD, not leaving early, not an answer that fails.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Gauge, Registry } from 'prom-client';
import { afterEach, expect, test, vi } from 'vitest';
import type { PublicServer } from '../../../../../api/http/server.ts';
import { StreamSlots } from '../../../../../api/apps/submit/log-stream.ts';
import type { SubmitServices } from '../../../../../api/apps/submit/endpoints.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { open, receive, serve, stop } from '../../../../support/api/http-app.ts';
import { sampleApp, sampleApps, sampleServer, sampleServices } from '../../../../support/api/sample.ts';

const path = '/api/submit-status/octo/chat/log';
const request = (method: string): string => `${method} ${path} HTTP/1.1\r\nHost: moorage.test\r\n\r\n`;
let server: PublicServer | undefined;
afterEach(async () => {
  if (server !== undefined) await stop(server);
  server = undefined;
});

async function setUp(changes: Partial<SubmitServices> = {}): Promise<{
  readonly server: PublicServer;
  readonly taken: () => Promise<number | undefined>;
}> {
  const streams = new Gauge({ name: 'streams', help: '.', registers: [new Registry()] });
  const services = sampleServices({
    apps: sampleApps(sampleApp('chat', undefined, { phase: 'Cloning', since: '2026-01-01T00:00:05Z' })).apps,
    openLog: () => Promise.resolve({ state: 'waiting' }),
    logRetryMs: 20,
    keepaliveMs: 50,
    logStreams: 4,
    ...changes,
  });
  server = await serve(sampleServer({ ...services, metrics: { ...services.metrics, streams } }).app);
  return { server, taken: async () => (await streams.get()).values[0]?.value };
}

/** The only slot of this caller is free when a log can be read. */
async function slotIsFree(running: PublicServer): Promise<void> {
  await vi.waitFor(async () => {
    const socket = await open(running, request('GET'));
    const text = await receive(socket, /event: stage/);
    socket.destroy();
    expect(text).toMatch(/^HTTP\/1.1 200 .*event: stage/s);
  }, 5_000);
}

test('attack: many HEAD requests for a log on one connection keep no slot', async () => {
  const { server: running, taken } = await setUp();
  const socket = await open(running, request('HEAD').repeat(20));
  let answers = '';
  while (answers.split('HTTP/1.1 200').length <= 20) answers += await receive(socket, /200 OK/);
  assert.equal(await taken(), 0);
  await slotIsFree(running);
  socket.destroy();
});

test('attack: clients that leave before or during the response keep no slot', async () => {
  const { server: running, taken } = await setUp();
  for (const ms of [0, 0, 0, 1, 2, 5, 20, 100]) {
    const socket = await open(running, request('GET'));
    await sleep(ms);
    socket.resetAndDestroy();
  }
  await vi.waitFor(async () => {
    expect(await taken()).toBe(0);
  }, 5_000);
  await slotIsFree(running);
});

test('attack: many requests in one packet get no more slots than there are for a caller', async () => {
  const { server: running, taken } = await setUp();
  const socket = await open(running, request('GET').repeat(10));
  await receive(socket, /event: stage/);
  assert.equal(await taken(), 1);
  socket.destroy();
  await slotIsFree(running);
});

test('frees the slot of a log that fails while it is read', async () => {
  const { server: running, taken } = await setUp({
    apps: sampleApps(
      sampleApp('chat', undefined, {
        phase: 'Cloning',
        since: '2026-01-01T00:00:05Z',
        pipeline: { job: 'chat-1', pod: 'chat-1-x' },
      }),
    ).apps,
    openLog: () => Promise.reject(new Error('the cluster says no')),
  });
  for (let tries = 0; tries < 5; tries += 1) await receive(await open(running, request('GET')));
  assert.equal(await taken(), 0);
});

test('frees a slot only once', () => {
  const seen: number[] = [];
  const slots = new StreamSlots(4, (taken) => seen.push(taken));
  const giveBack = slots.take('one');
  assert.throws(() => slots.take('one'), Problem);
  const other = slots.take('other');
  giveBack();
  giveBack();
  slots.check('one');
  other();
  assert.deepEqual(seen, [1, 2, 1, 0]);
});
