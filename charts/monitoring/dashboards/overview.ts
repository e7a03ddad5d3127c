// The overview: whether the installation works, at a glance.
import type { Dashboard } from '../dashboard.ts';

export const overview: Dashboard = {
  name: 'overview',
  title: 'Moorage / Overview',
  about: 'Whether the installation works: apps, builds, the API, the ledger, the gateway and disks.',
  rows: [
    {
      title: 'Now',
      panels: [
        {
          title: 'Apps',
          description: 'Hosted apps by public status.',
          kind: 'number',
          unit: 'short',
          width: 8,
          queries: [{ expr: 'max by (status) (moorage_apps)', legend: '{{status}}' }],
        },
        {
          title: 'Leader',
          description: 'Replicas of the operator that lead. Anything but 1 needs a look.',
          kind: 'number',
          unit: 'short',
          width: 4,
          limit: { value: 1, worse: 'below' },
          queries: [{ expr: 'sum(moorage_leader)', legend: 'leaders' }],
        },
        {
          title: 'Database',
          description: '1 where every replica of the API reaches the database.',
          kind: 'number',
          unit: 'short',
          width: 4,
          limit: { value: 1, worse: 'below' },
          queries: [{ expr: 'min(moorage_database_up)', legend: 'up' }],
        },
        {
          title: 'Ledger faults',
          description: 'Faults that the last audit found. Anything but 0 needs a look at once.',
          kind: 'number',
          unit: 'short',
          width: 4,
          limit: { value: 1, worse: 'above' },
          queries: [{ expr: 'max(moorage_ledger_audit_faults)', legend: 'faults' }],
        },
        {
          title: 'Certificate',
          description: 'Time until the certificate of the gateway ends.',
          kind: 'number',
          unit: 's',
          width: 4,
          limit: { value: 14 * 86_400, worse: 'below' },
          queries: [
            {
              expr: 'min by (domain) (moorage_gateway_certificate_expiry_timestamp_seconds) - time()',
              legend: '{{domain}}',
            },
          ],
        },
      ],
    },
    {
      title: 'Use',
      panels: [
        {
          title: 'Requests to the API',
          description: 'Requests a second by class of status.',
          kind: 'bars',
          unit: 'reqps',
          width: 12,
          queries: [
            {
              expr: 'sum by (class) (label_replace(rate(moorage_http_request_duration_seconds_count[$__rate_interval]), "class", "${1}xx", "status", "(.).."))',
              legend: '{{class}}',
            },
          ],
        },
        {
          title: 'Calls',
          description: 'Calls a second of tools, models and apps.',
          kind: 'lines',
          unit: 'reqps',
          width: 12,
          queries: [
            { expr: 'sum(rate(moorage_tool_calls_total[$__rate_interval]))', legend: 'tools' },
            { expr: 'sum(rate(moorage_model_calls_total[$__rate_interval]))', legend: 'models' },
            { expr: 'sum(rate(moorage_app_calls_total[$__rate_interval]))', legend: 'apps' },
          ],
        },
      ],
    },
    {
      title: 'Room',
      panels: [
        {
          title: 'Free disk of nodes',
          description: 'Share of each file system that is free. Kubelets evict pods at about 10 %.',
          kind: 'lines',
          unit: 'percentunit',
          width: 12,
          limit: { value: 0.2, worse: 'below' },
          queries: [
            {
              expr: 'moorage_node_filesystem_avail_bytes / moorage_node_filesystem_size_bytes',
              legend: '{{node}} {{filesystem}}',
            },
            { expr: 'moorage_volume_avail_bytes / moorage_volume_size_bytes', legend: 'volume {{claim}}' },
          ],
        },
        {
          title: 'Memory of processes',
          description: 'Resident memory of operator, API, workers and registry proxy.',
          kind: 'lines',
          unit: 'bytes',
          width: 12,
          queries: [{ expr: 'max by (job) (process_resident_memory_bytes{job=~"moorage-.*"})', legend: '{{job}}' }],
        },
      ],
    },
  ],
};
