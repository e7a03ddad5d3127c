// Alerts as Prometheus reads them: a file of rule groups, which is also the spec of a PrometheusRule.
import { stringify } from 'yaml';
import type { Alert, AlertGroup } from './alert.ts';

/** The rule file of these groups. */
export function renderRules(groups: readonly AlertGroup[]): string {
  const rules = { groups: groups.map(({ name, alerts }) => ({ name, rules: alerts.map(buildRule) })) };
  return stringify(rules, { lineWidth: 0 });
}

function buildRule({ name, expr, for: duration, severity, summary, meaning, runbook }: Alert): object {
  const steps = runbook.map((step, index) => `${index + 1}. ${step}`).join('\n');
  return {
    alert: name,
    expr,
    for: duration,
    labels: { severity },
    annotations: { summary, description: meaning, runbook: steps },
  };
}
