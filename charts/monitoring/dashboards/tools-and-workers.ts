// Tools and the workers behind them.
import type { Dashboard } from '../dashboard.ts';

export const toolsAndWorkers: Dashboard = {
  name: 'tools-and-workers',
  title: 'Moorage / Tools and workers',
  about: 'Calls, duration and cost of tools, and the workers that do the heavy part.',
  rows: [
    {
      title: 'Tools',
      panels: [
        {
          title: 'Calls by tool',
          description: 'In an hour.',
          kind: 'bars',
          unit: 'short',
          width: 12,
          queries: [{ expr: 'sum by (tool) (increase(moorage_tool_calls_total[1h]))', legend: '{{tool}}' }],
        },
        {
          title: 'Calls by outcome',
          description: 'In an hour: answered, the problem that was answered, or fault.',
          kind: 'bars',
          unit: 'short',
          width: 6,
          queries: [{ expr: 'sum by (outcome) (increase(moorage_tool_calls_total[1h]))', legend: '{{outcome}}' }],
        },
        {
          title: 'Calls by protocol',
          description: 'In an hour.',
          kind: 'bars',
          unit: 'short',
          width: 6,
          queries: [{ expr: 'sum by (via) (increase(moorage_tool_calls_total[1h]))', legend: '{{via}}' }],
        },
        {
          title: 'Duration by tool, 95th percentile',
          description: 'Over half an hour.',
          kind: 'lines',
          unit: 's',
          width: 12,
          queries: [
            {
              expr: 'histogram_quantile(0.95, sum by (le, tool) (rate(moorage_tool_call_duration_seconds_bucket[30m])))',
              legend: '{{tool}}',
            },
          ],
        },
        {
          title: 'Cost by tool',
          description: 'In an hour, model calls included. The ledger has the exact amounts.',
          kind: 'bars',
          unit: 'currencyUSD',
          width: 12,
          queries: [{ expr: 'sum by (tool) (increase(moorage_tool_cost_usd_total[1h]))', legend: '{{tool}}' }],
        },
      ],
    },
    {
      title: 'Workers',
      panels: [
        {
          title: 'Tasks of workers',
          description: 'Those that have a worker, and those that wait for one.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          queries: [{ expr: 'sum by (state) (moorage_worker_tasks)', legend: '{{state}}' }],
        },
        {
          title: 'Calls in progress',
          description: 'Of tools and of apps, and operations of apps that are offered as tools.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          queries: [
            { expr: 'sum(moorage_tools_running)', legend: 'tools' },
            { expr: 'sum(moorage_app_calls_running)', legend: 'apps' },
            { expr: 'max(moorage_app_operations)', legend: 'operations offered' },
          ],
        },
        {
          title: 'CPU',
          description: 'Cores in use by each component.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          queries: [
            {
              expr: 'sum by (job) (rate(process_cpu_seconds_total{job=~"moorage-.*"}[$__rate_interval]))',
              legend: '{{job}}',
            },
          ],
        },
        {
          title: 'Delay of event loops, 99th percentile',
          description: 'How long a process was busy with one thing. Above a tenth of a second callers notice.',
          kind: 'lines',
          unit: 's',
          width: 24,
          limit: { value: 0.1, worse: 'above' },
          queries: [{ expr: 'max by (job) (nodejs_eventloop_lag_p99_seconds{job=~"moorage-.*"})', legend: '{{job}}' }],
        },
      ],
    },
  ],
};
