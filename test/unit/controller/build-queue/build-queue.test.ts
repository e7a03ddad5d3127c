// The queue as a scrape sees it: how many wait and run, and for how long the oldest one waits.
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { test } from 'vitest';
import { createBuildQueue } from '../../../../controller/build-queue/build-queue.ts';
import type { Job } from '../../../../controller/objects/kinds.ts';
import { annotations } from '../../../../crds/names.ts';
import { createStore, type Client } from '../../../../lib/kubernetes/index.ts';

const noon = Date.parse('2026-01-01T12:00:00Z');

function job(name: string, suspend: boolean, secondsAgo: number): Job {
  const at = new Date(noon - secondsAgo * 1_000).toISOString();
  const metadata = { name, namespace: 'builds', uid: name, resourceVersion: '1', creationTimestamp: at };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { ...metadata, annotations: { [annotations.queuedAt]: at } },
    spec: { suspend },
  };
}

async function scrape(jobs: readonly Job[]): Promise<string> {
  const registry = new Registry();
  const store = createStore<Job>();
  store.replace(jobs);
  createBuildQueue({
    client: {} as Client,
    namespace: 'builds',
    limits: { concurrency: 1, perSubmitter: 1 },
    schedulingMs: 60_000,
    jobs: store,
    listPods: () => [],
    log: pino({ level: 'silent' }),
    registry,
    now: () => noon,
  });
  return registry.metrics();
}

test('reports one build that has long been running and two that wait', async () => {
  const text = await scrape([job('runs', false, 900), job('second', true, 30), job('first', true, 90.5)]);
  assert.match(text, /^moorage_pipelines\{state="queued"\} 2$/m);
  assert.match(text, /^moorage_pipelines\{state="running"\} 1$/m);
  assert.match(text, /^moorage_pipelines_oldest_wait_seconds 90\.5$/m);
});

test('reports an empty queue', async () => {
  assert.match(await scrape([job('runs', false, 900)]), /^moorage_pipelines_oldest_wait_seconds 0$/m);
});
