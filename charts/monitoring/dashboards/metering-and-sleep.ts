// Metering and sleep: whether every use is counted, what apps take, and how they wake.
import type { Dashboard } from '../dashboard.ts';

export const meteringAndSleep: Dashboard = {
  name: 'metering-and-sleep',
  title: 'Moorage / Metering and sleep',
  about: 'Uses counted from access logs, shippers, CPU and memory of apps, and wakes.',
  rows: [
    {
      title: 'Access logs of gateways',
      panels: [
        {
          title: 'Records',
          description: 'Requests to apps by class, as the rule of classes has them; only use is paid for.',
          kind: 'bars',
          unit: 'reqps',
          width: 12,
          queries: [
            { expr: 'sum by (class) (rate(moorage_metering_records_total[$__rate_interval]))', legend: '{{class}}' },
          ],
        },
        {
          title: 'Unaccounted',
          description:
            'Requests that gateways counted and that are no events: missing, lost, or a difference, which must be 0.',
          kind: 'lines',
          unit: 'short',
          width: 12,
          queries: [{ expr: 'max by (state) (moorage_metering_requests_unaccounted)', legend: '{{state}}' }],
        },
        {
          title: 'Answers of the receiver',
          description: 'Batches by status. 503: its sender is asked to come again, and nothing is lost.',
          kind: 'bars',
          unit: 'reqps',
          width: 8,
          queries: [
            {
              expr: 'sum by (status) (rate(moorage_metering_requests_total[$__rate_interval]))',
              legend: '{{status}}',
            },
          ],
        },
        {
          title: 'Time to keep a batch',
          description: 'From its arrival to its acknowledgement. Normal: well below a second.',
          kind: 'lines',
          unit: 's',
          width: 8,
          queries: [0.5, 0.95].map((q) => ({
            expr: `histogram_quantile(${q}, sum by (le) (rate(moorage_metering_batch_seconds_bucket[$__rate_interval])))`,
            legend: `p${q * 100}`,
          })),
        },
        {
          title: 'Not counted, or again',
          description:
            'Records that came twice, that were refused (by reason), and losses that were withdrawn since the record came after all; new runs of gateways.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          queries: [
            { expr: 'sum(increase(moorage_metering_duplicates_total[$__rate_interval]))', legend: 'twice' },
            {
              expr: 'sum by (reason) (increase(moorage_metering_refused_total[$__rate_interval]))',
              legend: '{{reason}}',
            },
            { expr: 'sum(increase(moorage_metering_losses_withdrawn_total[$__rate_interval]))', legend: 'withdrawn' },
            { expr: 'sum(increase(moorage_metering_gateway_runs_total[$__rate_interval]))', legend: 'new runs' },
          ],
        },
      ],
    },
    {
      title: 'Shippers',
      panels: [
        {
          title: 'Records sent',
          description: 'Records a second that were acknowledged.',
          kind: 'lines',
          unit: 'reqps',
          width: 8,
          queries: [{ expr: 'sum(rate(moorage_shipper_records_total[$__rate_interval]))', legend: 'records' }],
        },
        {
          title: 'Waiting',
          description: 'Bytes of access logs that are not sent yet. Grows while the receiver or its database is away.',
          kind: 'lines',
          unit: 'bytes',
          width: 8,
          queries: [{ expr: 'max(moorage_shipper_waiting_bytes)', legend: 'waiting' }],
        },
        {
          title: 'Dropped and unreadable',
          description:
            'Records that were dropped because too many waited, and lines that are none. Anything but 0 is a loss.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          queries: [
            { expr: 'sum(increase(moorage_shipper_dropped_total[$__rate_interval]))', legend: 'dropped' },
            { expr: 'sum(increase(moorage_shipper_unreadable_total[$__rate_interval]))', legend: 'unreadable' },
          ],
        },
      ],
    },
    {
      title: 'Compute',
      panels: [
        {
          title: 'CPU of apps',
          description: 'Cores that all apps and their backing services use.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          queries: [{ expr: 'sum(rate(moorage_compute_cpu_seconds_total[$__rate_interval]))', legend: 'cores' }],
        },
        {
          title: 'Memory of apps',
          description: 'Memory that all apps and their backing services hold. Those asleep hold none.',
          kind: 'lines',
          unit: 'bytes',
          width: 8,
          queries: [
            { expr: 'sum(rate(moorage_compute_memory_byte_seconds_total[$__rate_interval]))', legend: 'memory' },
          ],
        },
        {
          title: 'Samples',
          description:
            'Looks at containers by result, reports that failed and are sent again, and pods whose use was measured last.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          queries: [
            {
              expr: 'sum by (result) (increase(moorage_compute_samples_total[$__rate_interval]))',
              legend: '{{result}}',
            },
            {
              expr: 'sum(increase(moorage_compute_report_failures_total[$__rate_interval]))',
              legend: 'failed reports',
            },
            { expr: 'max(moorage_usage_apps)', legend: 'pods' },
          ],
        },
      ],
    },
    {
      title: 'Sleep',
      panels: [
        {
          title: 'Time to wake',
          description: 'From the first request until the app takes it, 95 % within, by depth of the rest.',
          kind: 'lines',
          unit: 's',
          width: 8,
          queries: [
            {
              expr: 'histogram_quantile(0.95, sum by (le, depth) (rate(moorage_wake_duration_seconds_bucket[$__rate_interval])))',
              legend: '{{depth}}',
            },
          ],
        },
        {
          title: 'Wakes',
          description: 'Apps that were woken, by depth of their rest.',
          kind: 'bars',
          unit: 'short',
          width: 8,
          queries: [
            {
              expr: 'sum by (depth) (increase(moorage_wake_duration_seconds_count[$__rate_interval]))',
              legend: '{{depth}}',
            },
          ],
        },
        {
          title: 'Requests at the activators',
          description: 'Requests and connections in progress, and those of them that are held until their app wakes.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          queries: [
            { expr: 'sum(moorage_activator_open_requests)', legend: 'in progress' },
            { expr: 'sum(moorage_activator_held_requests)', legend: 'held' },
          ],
        },
      ],
    },
  ],
};
