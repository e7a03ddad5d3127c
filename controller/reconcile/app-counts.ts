// Counts apps for metrics, out of the cache.
import { publicStatus } from '../../crds/public-status.ts';
import type { HostedAppObject } from '../objects/kinds.ts';
import type { AppCounts } from './metrics.ts';

/** Apps by public status, and those that are not Ready by reason. */
export function countApps(apps: readonly HostedAppObject[]): AppCounts {
  const statuses = { live: 0, in_pipeline: 0, rejected: 0 };
  const reasons = new Map<string, number>();
  for (const app of apps) {
    statuses[publicStatus(app).status] += 1;
    const ready = app.status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready === undefined || ready.status === 'True') continue;
    reasons.set(ready.reason, (reasons.get(ready.reason) ?? 0) + 1);
  }
  return { statuses, reasons };
}
