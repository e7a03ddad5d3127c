// Builds and apps: the queue, how builds end and how long they take, what the registry keeps of them, and the operator that
// drives them.
import type { Dashboard } from '../dashboard.ts';

const buildQuantileQuery = (share: number): string =>
  `histogram_quantile(${share}, sum by (le, stage) (rate(moorage_pipeline_stage_duration_seconds_bucket[1h])))`;

/** Of each app, by kind; while another replica begins to lead, both may have it. */
const stored = 'max by (app, kind) (moorage_registry_stored_bytes)';

export const buildsAndApps: Dashboard = {
  name: 'builds-and-apps',
  title: 'Moorage / Builds and apps',
  about:
    'The build queue, how builds end and how long they take, the registry, apps that are not ready, and the operator.',
  rows: [
    {
      title: 'Builds',
      panels: [
        {
          title: 'Builds that ended, in an hour',
          description: 'By result. faulted: by a fault of the platform; the others are the doing of authors.',
          kind: 'bars',
          unit: 'short',
          width: 12,
          queries: [{ expr: 'sum by (result) (increase(moorage_builds_total[1h]))', legend: '{{result}}' }],
        },
        {
          title: 'Queue',
          description: 'Pipelines that wait, that run, and for which no node has room.',
          kind: 'lines',
          unit: 'short',
          width: 6,
          queries: [{ expr: 'max by (state) (moorage_pipelines)', legend: '{{state}}' }],
        },
        {
          title: 'Oldest wait',
          description: 'For how long the oldest pipeline waits in the queue.',
          kind: 'lines',
          unit: 's',
          width: 6,
          limit: { value: 3_600, worse: 'above' },
          queries: [{ expr: 'max(moorage_pipelines_oldest_wait_seconds)', legend: 'oldest' }],
        },
        {
          title: 'Stages, median',
          description:
            'Seconds of each stage over the last hour: in the queue, clone, review and build, which overlap.',
          kind: 'lines',
          unit: 's',
          width: 12,
          queries: [{ expr: buildQuantileQuery(0.5), legend: '{{stage}}' }],
        },
        {
          title: 'Stages, 90th percentile',
          description: 'What nine of ten pipelines stay below.',
          kind: 'lines',
          unit: 's',
          width: 12,
          queries: [{ expr: buildQuantileQuery(0.9), legend: '{{stage}}' }],
        },
      ],
    },
    {
      title: 'Space',
      panels: [
        {
          title: 'Kept in the registry',
          description:
            'Images and layer caches of all apps, when each was last looked at. Layers that apps share count in each, so the disk has less.',
          kind: 'bars',
          unit: 'bytes',
          width: 12,
          queries: [{ expr: `sum by (kind) (${stored})`, legend: '{{kind}}' }],
        },
        {
          title: 'Apps that keep most in the registry',
          description: 'The ten largest. `builds.imageLimit` and `builds.cacheLimit` say how much of an app is kept.',
          kind: 'lines',
          unit: 'bytes',
          width: 12,
          queries: [{ expr: `topk(10, sum by (app) (${stored}))`, legend: '{{app}}' }],
        },
        {
          title: 'Removed from the registry, in an hour',
          description: 'Images and caches that are kept no longer.',
          kind: 'bars',
          unit: 'short',
          width: 12,
          queries: [{ expr: 'sum(increase(moorage_registry_removed_total[1h]))', legend: 'removed' }],
        },
        {
          title: 'Disks that could not be read or freed, in an hour',
          description:
            'node: disks of nodes that could not be read, so that builds may fill them. registry: apps whose images could not be removed. Normal: 0.',
          kind: 'lines',
          unit: 'short',
          width: 12,
          limit: { value: 1, worse: 'above' },
          queries: [{ expr: 'sum by (of) (increase(moorage_space_failures_total[1h]))', legend: '{{of}}' }],
        },
      ],
    },
    {
      title: 'Apps',
      panels: [
        {
          title: 'Apps by public status',
          description: 'live, in_pipeline or rejected.',
          kind: 'bars',
          unit: 'short',
          width: 12,
          queries: [{ expr: 'max by (status) (moorage_apps)', legend: '{{status}}' }],
        },
        {
          title: 'Apps that are not ready',
          description: 'By the reason of the condition Ready; the reasons are in the reference.',
          kind: 'bars',
          unit: 'short',
          width: 12,
          queries: [
            {
              expr: 'max by (reason) (moorage_apps_not_ready)',
              legend: '{{reason}}',
            },
          ],
        },
        {
          title: 'Submissions',
          description: 'Submissions in an hour by result: created, known, or the problem that was answered.',
          kind: 'bars',
          unit: 'short',
          width: 12,
          queries: [{ expr: 'sum by (result) (increase(moorage_submissions_total[1h]))', legend: '{{result}}' }],
        },
        {
          title: 'Lines that apps print',
          description:
            'Lines a second. Those of apps that print more than their rate are dropped, and their log says so.',
          kind: 'lines',
          unit: 'short',
          width: 12,
          queries: [{ expr: 'sum by (result) (rate(moorage_app_log_lines_total[5m]))', legend: '{{result}}' }],
        },
        {
          title: 'Pods fitted to their use',
          description: 'Pods whose requests were changed, and what could not be read or changed, in an hour.',
          kind: 'lines',
          unit: 'short',
          width: 12,
          queries: [
            { expr: 'sum(increase(moorage_usage_resizes_total[1h]))', legend: 'resized' },
            { expr: 'sum(increase(moorage_usage_failures_total[1h]))', legend: 'failed' },
          ],
        },
      ],
    },
    {
      title: 'Operator',
      panels: [
        {
          title: 'Reconciles',
          description: 'Reconciles a second by controller and result. Errors are tried again.',
          kind: 'lines',
          unit: 'reqps',
          width: 12,
          queries: [
            {
              expr: 'sum by (controller, result) (rate(moorage_reconcile_total[$__rate_interval]))',
              legend: '{{controller}} {{result}}',
            },
          ],
        },
        {
          title: 'Duration of reconciles, 99th percentile',
          description: 'Over five minutes.',
          kind: 'lines',
          unit: 's',
          width: 6,
          queries: [
            {
              expr: 'histogram_quantile(0.99, sum by (le, controller) (rate(moorage_reconcile_duration_seconds_bucket[5m])))',
              legend: '{{controller}}',
            },
          ],
        },
        {
          title: 'Objects in caches',
          description: 'What the operator mirrors of the cluster.',
          kind: 'lines',
          unit: 'short',
          width: 6,
          queries: [
            { expr: 'max by (resource) (moorage_cached_objects{job="moorage-operator"})', legend: '{{resource}}' },
          ],
        },
      ],
    },
  ],
};
