// The API and model calls: traffic, latency, problems, the router, tokens and cost.
import type { Dashboard } from '../dashboard.ts';

export const apiAndModels: Dashboard = {
  name: 'api-and-models',
  title: 'Moorage / API and models',
  about: 'Requests, latency and problems of the API; calls, failures, tokens and cost of models; calls of apps.',
  rows: [
    {
      title: 'API',
      panels: [
        {
          title: 'Errors',
          description: 'Share of the requests that were answered with a status of 5xx.',
          kind: 'lines',
          unit: 'percentunit',
          width: 8,
          limit: { value: 0.05, worse: 'above' },
          queries: [
            {
              expr: '(sum(rate(moorage_http_request_duration_seconds_count{status=~"5.."}[5m])) or vector(0)) / sum(rate(moorage_http_request_duration_seconds_count[5m]))',
              legend: '5xx',
            },
          ],
        },
        {
          title: 'Latency',
          description: 'Time until the answer began, over all routes but streams and model calls alike.',
          kind: 'lines',
          unit: 's',
          width: 8,
          queries: [
            {
              expr: 'histogram_quantile(0.5, sum by (le) (rate(moorage_http_request_duration_seconds_bucket[5m])))',
              legend: 'median',
            },
            {
              expr: 'histogram_quantile(0.95, sum by (le) (rate(moorage_http_request_duration_seconds_bucket[5m])))',
              legend: '95th percentile',
            },
          ],
        },
        {
          title: 'Requests in progress',
          description: 'Open streams included.',
          kind: 'lines',
          unit: 'short',
          width: 8,
          queries: [
            { expr: 'sum(moorage_http_open_requests)', legend: 'requests' },
            { expr: 'sum(moorage_log_streams)', legend: 'build logs' },
            { expr: 'sum(moorage_app_logs_followed)', legend: 'logs of apps that are collected' },
          ],
        },
        {
          title: 'Busiest routes',
          description: 'Requests a second.',
          kind: 'lines',
          unit: 'reqps',
          width: 12,
          queries: [
            {
              expr: 'topk(8, sum by (method, route) (rate(moorage_http_request_duration_seconds_count[5m])))',
              legend: '{{method}} {{route}}',
            },
          ],
        },
        {
          title: 'Problems',
          description: 'Problems answered in an hour by type; the types are in the reference.',
          kind: 'bars',
          unit: 'short',
          width: 12,
          queries: [{ expr: 'sum by (type) (increase(moorage_http_problems_total[1h]))', legend: '{{type}}' }],
        },
      ],
    },
    {
      title: 'Models',
      panels: [
        {
          title: 'Model calls',
          description: 'In an hour, by how they ended. answered is the good end.',
          kind: 'bars',
          unit: 'short',
          width: 12,
          queries: [{ expr: 'sum by (outcome) (increase(moorage_model_calls_total[1h]))', legend: '{{outcome}}' }],
        },
        {
          title: 'Duration of model calls, 95th percentile',
          description: 'Until the router completed its response, over half an hour.',
          kind: 'lines',
          unit: 's',
          width: 12,
          queries: [
            {
              expr: 'histogram_quantile(0.95, sum by (le, model) (rate(moorage_model_call_duration_seconds_bucket[30m])))',
              legend: '{{model}}',
            },
          ],
        },
        {
          title: 'Tokens',
          description: 'A second, as counted by the router.',
          kind: 'lines',
          unit: 'short',
          width: 12,
          queries: [
            {
              expr: 'sum by (direction) (rate(moorage_model_tokens_total[$__rate_interval]))',
              legend: '{{direction}}',
            },
          ],
        },
        {
          title: 'Cost of model calls',
          description: 'Billed by the router in an hour, by who pays. The ledger has the exact amounts.',
          kind: 'bars',
          unit: 'currencyUSD',
          width: 12,
          queries: [{ expr: 'sum by (caller) (increase(moorage_model_cost_usd_total[1h]))', legend: '{{caller}}' }],
        },
      ],
    },
    {
      title: 'Calls of apps',
      panels: [
        {
          title: 'Calls of apps',
          description: 'In an hour by outcome: answered, failed (the app said 5xx), or the problem.',
          kind: 'bars',
          unit: 'short',
          width: 12,
          queries: [{ expr: 'sum by (outcome) (increase(moorage_app_calls_total[1h]))', legend: '{{outcome}}' }],
        },
        {
          title: 'Latency of apps, 95th percentile',
          description: 'Until an app began to respond.',
          kind: 'lines',
          unit: 's',
          width: 12,
          queries: [
            {
              expr: 'histogram_quantile(0.95, sum by (le, via) (rate(moorage_app_call_duration_seconds_bucket[30m])))',
              legend: '{{via}}',
            },
          ],
        },
      ],
    },
  ],
};
