// JSON schemas of projects, and the problem that their endpoints return.
import { z } from 'zod';
import { listing } from '../../../crds/hosted-app.ts';
import type { ProblemType } from '../../../lib/problem.ts';
import { componentView, idleView } from '../../apps/index.ts';
import { benchmarkEntry } from '../bench/views.ts';
import { projectStates } from './records.ts';

export const categories = listing.shape.category.unwrap();

export const projectEntry = z.object({
  slug: z.string().describe('Name of the app.'),
  title: z.string(),
  title_zh: z.string().nullable().describe('Title in Chinese, if any.'),
  description: z.string(),
  description_zh: z.string().nullable().describe('Description in Chinese, if any.'),
  category: categories,
  repo: z.string().describe('URL of the original project: listing.upstream of the app, otherwise its repository.'),
  source: z.string().describe('URL of the repository that is built and run.'),
  private: z
    .literal(true)
    .optional()
    .describe('`source` is a private repository: nothing is shown of it but its address.'),
  stars: z.int().nullable().describe('Stars of `repo`, as reported by its forge; null if unknown.'),
  stars_at: z.string().nullable().describe('When the forge reported them, RFC 3339.'),
  stars_reason: z.string().nullable().describe('Why `stars` is null.'),
  license: z.string().nullable().describe('SPDX identifier of the licence of `repo`, as detected by its forge.'),
  license_reason: z.string().nullable().describe('Why `license` is null.'),
  state: z.enum(projectStates).describe('not_deployed: an app of the catalog that is not on this cluster.'),
  state_reason: z.string().nullable().describe('Why it is not live, in a sentence; null while it is.'),
  url: z.string().nullable().describe('URL of the app, while it is live.'),
  since: z.string().nullable().describe('Start of this state, RFC 3339.'),
  page: z.string().describe('URL of its HTML page.'),
  machine_readable: z.string().describe('URL of its detail as JSON.'),
  status_url: z.string().nullable().describe('URL of its status with stages and findings; null if it is not deployed.'),
});
export type ProjectEntry = z.output<typeof projectEntry>;

export const projectList = z.object({
  projects: z.array(projectEntry),
  total: z.int().describe('Number of projects on all pages.'),
  next: z.string().nullable().describe('URL of the next page; null on the last one.'),
});
export type ProjectList = z.output<typeof projectList>;

export const windows = ['24h', '7d', '30d'] as const;
export type Window = (typeof windows)[number];

const measured = z.number().nullable();
const counted = z.int().nullable();

export const telemetryWindow = z.object({
  requests: counted.describe(
    'Calls through /api/projects/{slug}/call and /mcp that the app answered without a server error.',
  ),
  callers: counted.describe('Number of distinct callers; counted about once a minute.'),
  latency_ms: z.object({ p50: counted, p95: counted }).describe('Of these calls.'),
  model_calls: counted.describe('Model calls by the app on /v1.'),
  model_cost_usd: measured.describe('Billed cost of these calls.'),
  model_costs_pending: counted.describe(
    'Number of these calls whose cost is not known yet and not included in the sum.',
  ),
  visits: counted.describe(
    'Uses by visitors through the gateway: requests without assets, health checks and failures. Like `error_rate` and `compute` from sums that are made every five minutes, from the beginning of the hour in which the window begins.',
  ),
  uptime: measured.describe(
    'Share of the time in which the app responded; null, because nothing probes it at regular intervals.',
  ),
  error_rate: measured.describe(
    'Share of the uses by visitors and of the calls that the app answered with a server error. One that got no status counts as neither.',
  ),
  compute: z
    .object({
      cpu_seconds: z.number().describe('Seconds of CPU.'),
      memory_gib_hours: z.number().describe('Memory use in GiB-hours; zero while the app sleeps.'),
    })
    .nullable()
    .describe('Resource use of the app and its backing services, as measured by the kubelets.'),
  unmeasured: z.record(z.string(), z.string()).describe('Why each field that is null is not measured.'),
});
export type TelemetryWindow = z.output<typeof telemetryWindow>;

export const telemetry = z.object({ '24h': telemetryWindow, '7d': telemetryWindow, '30d': telemetryWindow });
export type Telemetry = z.output<typeof telemetry>;

export const projectDetail = projectEntry.extend({
  commit: z.string().nullable().describe('Served commit; null if the app is not live.'),
  idle: idleView.nullable().describe('State of an app that rests when unused; null: it always runs.'),
  components: z
    .array(componentView)
    .optional()
    .describe('State of each component of the release that serves. Absent: the app is one process.'),
  telemetry,
  benchmark: benchmarkEntry.nullable().describe('Its entry in /api/bench: verdict, runs, models, tasks and data URLs.'),
  benchmark_reason: z.string().nullable().describe('Why `benchmark` is null.'),
});
export type ProjectDetail = z.output<typeof projectDetail>;

export const unknownProject: ProblemType = {
  slug: 'unknown-project',
  status: 404,
  title: 'No such app',
  description:
    'No catalog app and no submitted app has this slug. `nearest` lists similar slugs; /api/projects lists all apps.',
};
