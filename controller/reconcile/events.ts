// Chooses the Events of a status change: one a transition of a condition, with the condition's own reason.
import type { Condition, HostedAppStatus } from '../../crds/hosted-app.ts';
import { isFailingReason, warnedReason } from './outcome.ts';
import type { EventNote } from '../../lib/kubernetes/index.ts';

/** Ready and its company repeat what the step's condition says, but for the good end, and a URL that fails. */
const mirrors = new Set(['Ready', 'Reconciling', 'Stalled']);

/** The Events of going from one status to the next; a changed message alone is none. */
export function transitions(before: HostedAppStatus | undefined, after: HostedAppStatus): EventNote[] {
  const known = new Map((before?.conditions ?? []).map((condition) => [condition.type, condition]));
  return (after.conditions ?? [])
    .filter((condition) => isNews(known.get(condition.type), condition))
    .map(({ status, reason, message }) => ({
      type: status === 'False' || reason === warnedReason ? 'Warning' : 'Normal',
      reason,
      message,
    }));
}

function isNews(before: Condition | undefined, after: Condition): boolean {
  if (before?.status === after.status && before.reason === after.reason) return false;
  if (mirrors.has(after.type))
    return after.type === 'Ready' && (after.status === 'True' || isFailingReason(after.reason));
  return after.reason !== 'NotReached';
}
