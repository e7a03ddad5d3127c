// Chart values of benchmarks.
import { z } from 'zod';
import { allowEmpty, quantity } from './value-kinds.ts';

export const bench = z.strictObject({
  schedule: allowEmpty(z.string().regex(/^(\S+\s+){4}\S+$/))
    .default('')
    .describe(
      'When benchmarks run, in cron form and UTC, such as "0 3 * * *". If empty, none run. Model calls are charged to the app that is benchmarked, within its daily budget.',
    ),
  apps: z
    .array(z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/))
    .default([])
    .describe('Slugs of the apps, each with a folder in manifests/bench.'),
  models: z
    .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/))
    .default([])
    .describe('Models, as GET /api/models names them.'),
  runs: z.int().min(1).max(1_000).default(5).describe('Runs of each model on each task, each time.'),
  resources: z
    .strictObject({
      requests: z.strictObject({ cpu: quantity, memory: quantity }),
      limits: z.strictObject({ cpu: quantity, memory: quantity }),
    })
    .default({ requests: { cpu: '25m', memory: '128Mi' }, limits: { cpu: '1', memory: '512Mi' } })
    .describe('Resource requests and limits.'),
});
