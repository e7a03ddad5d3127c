// Values for an installation that is watched by Prometheus.
import { z } from 'zod';
import { duration } from './value-kinds.ts';

export const monitoring = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Create PodMonitors and a PrometheusRule, for which the CRDs of the Prometheus Operator must be installed. Set network.metricsNamespaceLabels too.',
      ),
    labels: z
      .record(z.string(), z.string())
      .default({})
      .describe('Labels of them, by which a Prometheus selects them, such as release: kube-prometheus-stack.'),
    interval: duration.default('30s').describe('How often the processes are scraped.'),
    rules: z.boolean().default(true).describe('Create the PrometheusRule, the alerts.'),
  })
  .describe('Monitoring by Prometheus.');
