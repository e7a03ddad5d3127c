// Submitted apps that never went live are deleted after a while, so that they do not take up room for good.
import { labels } from '../../crds/names.ts';
import { timestamp } from '../objects/timestamp.ts';
import type { Draft } from './outcome.ts';
import type { Snapshot } from './snapshot.ts';

/** How an app stands that has not gone live. */
export interface Expiry {
  /** Its time is up, and it was warned. */
  readonly isDue: boolean;
  /** When it is deleted; absent until it is warned. */
  readonly at?: Date;
  /** Look again after this many milliseconds. */
  readonly afterMs: number;
}

/** Type of the condition that warns. */
export const expiringCondition = 'Expiring';

const longestWarningMs = 86_400_000;

/** Whether and when the app expires; undefined for one that does not. */
export function expiryOf(snapshot: Snapshot, draft: Draft): Expiry | undefined {
  const { app, config, now } = snapshot;
  const { expireMs } = config;
  if (expireMs === undefined || !mayExpire(app, draft)) return undefined;
  const warningMs = Math.min(longestWarningMs, expireMs / 2);
  const end = Date.parse(app.metadata.creationTimestamp) + expireMs;
  if (now.getTime() < end - warningMs) return { isDue: false, afterMs: end - warningMs - now.getTime() };
  const warned = warnedAt(app);
  // Also an app that is long past its time, when this limit is new, gets its warning first.
  const at = Math.max(end, (warned ?? now.getTime()) + warningMs);
  const afterMs = Math.max(0, at - now.getTime());
  return { isDue: warned !== undefined && afterMs === 0, at: new Date(at), afterMs };
}

/**
 * Not one that has been live (its address stays in the status), is suspended, or was not submitted through the API:
 * what someone made with kubectl is theirs to delete.
 */
function mayExpire({ metadata, spec }: Snapshot['app'], { url }: Draft): boolean {
  const isPaused = spec.suspend || spec.run.replicas === 0;
  return metadata.labels?.[labels.caller] !== undefined && !isPaused && url === undefined;
}

function warnedAt({ status }: Snapshot['app']): number | undefined {
  const warning = status?.conditions?.find(({ type }) => type === expiringCondition);
  return warning === undefined ? undefined : Date.parse(warning.lastTransitionTime);
}

/** The warning, for people. */
export function expiryWarning(at: Date): string {
  return `The app has never been live. It is deleted at ${timestamp(at)} unless it goes live before; its repository can then be submitted anew.`;
}
