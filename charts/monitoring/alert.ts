// What an alert is: a condition over metrics, for whom it matters, and what to do about it.

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
