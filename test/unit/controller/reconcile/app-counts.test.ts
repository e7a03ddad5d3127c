// Apps by public status, and those that are not Ready by reason.
import assert from 'node:assert/strict';
import { Registry } from 'prom-client';
import { test } from 'vitest';
import type { HostedAppObject } from '../../../../controller/objects/kinds.ts';
import { countApps } from '../../../../controller/reconcile/app-counts.ts';
import { appMetrics } from '../../../../controller/reconcile/metrics.ts';

const app = (status: object): HostedAppObject => ({ spec: {}, status }) as unknown as HostedAppObject;
const ready = (status: string, reason: string): object => ({ conditions: [{ type: 'Ready', status, reason }] });
const served = { url: 'https://a.test', served: { image: 'i', commit: 'c', since: '2026-01-01T00:00:00Z' } };

const apps = [
  app({}),
  app({ ...served, ...ready('True', 'Live') }),
  app({ ...served, ...ready('False', 'ReviewRejected') }),
  app({ rejection: { rule: 'r', message: 'm', fix: 'f' }, ...ready('False', 'ReviewRejected') }),
];

test('an app without a status is on its way; one that serves is live, whatever became of its newest commit', () => {
  assert.deepEqual(countApps(apps), {
    statuses: { live: 2, in_pipeline: 1, rejected: 1 },
    reasons: new Map([['ReviewRejected', 2]]),
  });
});

test('a reason that is gone is not exported any longer, in the same scrape', async () => {
  const registry = new Registry();
  let now = apps;
  appMetrics(registry, () => countApps(now));
  assert.match(await registry.metrics(), /moorage_apps_not_ready\{reason="ReviewRejected"\} 2/);
  now = apps.slice(0, 2);
  const text = await registry.metrics();
  assert.match(text, /moorage_apps\{status="live"\} 1/);
  assert.doesNotMatch(text, /reason="ReviewRejected"/);
});
