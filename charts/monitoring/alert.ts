// Defines what an alert is: a condition over metrics, for whom it matters, and what to do about it. Renders alerts as
// Prometheus reads them: a file of rule groups, which is also the spec of a PrometheusRule.
import { stringify } from 'yaml';

export interface Alert {
  /** Begins with Moorage, so that alerts of several products can stand side by side. */
  readonly name: string;
  /** PromQL; fires for each series that it returns. */
  readonly expr: string;
  /** How long it must hold, as Prometheus writes it: 5m. */
  readonly for: string;
  /** critical: look now; warning: look today. */
  readonly severity: 'critical' | 'warning';
  /** One line; may use Prometheus's templates. */
  readonly summary: string;
  /** What it means for callers, authors and visitors. */
  readonly meaning: string;
  /** What to do, step by step. */
  readonly runbook: readonly string[];
}

/** Alerts about one subject. */
export interface AlertGroup {
  /** Name of the group in Prometheus, in kebab-case. */
  readonly name: string;
  readonly title: string;
  readonly alerts: readonly Alert[];
}

/** True where no process of a component can be scraped. */
export function isAbsent(component: string): string {
  return `absent(process_start_time_seconds{job="moorage-${component}"})`;
}

/** The expression, but not while its cause has an alert of its own: one outage, one alert. */
export function suppressDuringCause(cause: string, expr: string): string {
  return `(${expr}) unless on () (${cause})`;
}

/** The database is away. */
export const isDatabaseAway = 'min(moorage_database_up) == 0';

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
