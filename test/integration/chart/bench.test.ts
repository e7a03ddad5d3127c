// Benchmarks by schedule, as the chart renders them: off by default, one CronJob an app, nothing but what it needs.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { readArguments } from '../../../api/catalog/bench/run/command-line.ts';
import { loadBenchmarks } from '../../../api/catalog/bench/tasks/task.ts';
import { findNamed, selectKind, render, required } from '../../support/chart.ts';

const scheduled = {
  ...required,
  postgres: { enabled: true },
  gateway: { ...required.gateway, probeUrl: 'https://gateway.gateway.svc.cluster.local' },
  models: { listConfigMap: 'models', router: { baseUrl: 'https://router.example.org', keySecret: 'router' } },
  bench: {
    schedule: '0 3 * * *',
    apps: loadBenchmarks().map(({ app }) => app),
    models: ['beta-K3', 'gamma5.2'],
    runs: 3,
  },
};

const cronJob = z.looseObject({
  spec: z.looseObject({
    schedule: z.string(),
    concurrencyPolicy: z.literal('Forbid'),
    jobTemplate: z.looseObject({
      spec: z.looseObject({
        template: z.looseObject({
          spec: z.looseObject({
            containers: z.array(
              z.looseObject({
                args: z.array(z.string()),
                command: z.array(z.string()),
                env: z.array(z.looseObject({ name: z.string() })),
              }),
            ),
          }),
        }),
      }),
    }),
  }),
});

test('runs no benchmark without a schedule, and rejects one without apps', async () => {
  const plain = await render({ ...required, postgres: { enabled: true } });
  assert.deepEqual(
    [selectKind(plain, 'CronJob'), plain.filter(({ metadata }) => metadata.name === 'moorage-bench')],
    [[], []],
  );
  await assert.rejects(
    render({ ...scheduled, bench: { schedule: '0 3 * * *' } }),
    /set bench\.apps and bench\.models too/,
  );
});

test("gives each app a CronJob with arguments that the program accepts, without the router's key", async () => {
  const objects = await render(scheduled);
  const jobs = selectKind(objects, 'CronJob');
  assert.equal(jobs.length, scheduled.bench.apps.length);
  for (const app of scheduled.bench.apps) {
    const { schedule, jobTemplate } = cronJob.parse(findNamed(objects, 'CronJob', `moorage-bench-${app}`)).spec;
    const [container] = jobTemplate.spec.template.spec.containers;
    assert.equal(schedule, '0 3 * * *');
    assert.deepEqual(container?.command, ['node', 'api/catalog/bench/run/main.ts']);
    assert.deepEqual(readArguments(container.args), {
      app,
      models: ['beta-K3', 'gamma5.2'],
      runs: 3,
      visits: 5,
      seed: undefined,
      url: undefined,
      gateway: 'https://gateway.gateway.svc.cluster.local',
    });
    assert.deepEqual(container.env.map(({ name }) => name).sort(), [
      'DATABASE_URL',
      'HOME',
      'LOG_LEVEL',
      'MOORAGE_APPS_NAMESPACE',
      'MOORAGE_MODELS_FILE',
      'MOORAGE_ROUTER_KIND',
      'MOORAGE_ROUTER_URL',
    ]);
  }
});

test('lets them reach the database', async () => {
  const objects = await render(scheduled);
  const policy = (name: string): string => JSON.stringify(findNamed(objects, 'NetworkPolicy', name));
  assert.match(policy('moorage-postgres'), /"app\.kubernetes\.io\/component":"bench"/);
  assert.match(policy('moorage-bench'), /"port":5432/);
  assert.match(policy('moorage-bench'), /"kubernetes\.io\/metadata\.name":"gateway"/);
});
