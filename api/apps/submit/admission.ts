// The limits on new apps: per caller and day, per network, and for the whole installation.
import { labels } from '../../../crds/names.ts';
import { Problem } from '../../../lib/problem.ts';
import { platformFull, tooManyApps, tooManySubmissions } from './problems.ts';
import type { App, AppIndex } from '../hosted-apps.ts';

/** Limits on apps. */
export interface Limits {
  /** New apps of one caller within 24 hours. */
  readonly perCallerAndDay: number;
  /** Apps in all. */
  readonly apps: number;
  /** Apps that were submitted from one network, however long ago. */
  readonly perNetwork: number;
}

/** Who submits: hashes of the caller and of the network. */
export interface Submitter {
  readonly caller: string;
  readonly network: string;
}

const dayMs = 86_400_000;

/**
 * Counts what the cache holds and what was created but is not in it yet.
 * @param now milliseconds since the epoch
 * @throws Problem (too-many-submissions with Retry-After, platform-full)
 */
export function checkRoom(
  apps: AppIndex,
  unseen: readonly App[],
  { caller, network }: Submitter,
  limits: Limits,
  now: number,
): void {
  if (apps.size + unseen.length >= limits.apps) {
    throw new Problem(
      platformFull,
      `This installation hosts ${limits.apps} apps, which is its limit. Ask the operator of this installation to raise it.`,
      { headers: { 'retry-after': '3600' } },
    );
  }
  const near = [
    ...apps.byNetwork(network),
    ...unseen.filter((app) => app.metadata.labels?.[labels.network] === network),
  ].length;
  if (near >= limits.perNetwork) {
    throw new Problem(
      tooManyApps,
      `Your network has ${near} apps here; the limit is ${limits.perNetwork}. An app that never goes live is deleted after a while, which makes room. Ask the operator of this installation to delete one that is no longer needed.`,
      { headers: { 'retry-after': '86400' }, members: { limit: limits.perNetwork, used: near } },
    );
  }
  const mine = [...apps.byCaller(caller), ...unseen.filter((app) => app.metadata.labels?.[labels.caller] === caller)];
  const times = mine
    .map((app) => Date.parse(app.metadata.creationTimestamp))
    .filter((time) => now - time < dayMs)
    .sort((a, b) => a - b);
  const blocking = times[times.length - limits.perCallerAndDay];
  if (times.length < limits.perCallerAndDay || blocking === undefined) return;
  const seconds = Math.max(1, Math.ceil((blocking + dayMs - now) / 1000));
  throw new Problem(
    tooManySubmissions,
    `You have submitted ${times.length} new repositories within 24 hours; the limit is ${limits.perCallerAndDay}. Submit this one in ${inWords(seconds)}.`,
    {
      headers: { 'retry-after': String(seconds) },
      members: {
        limit: limits.perCallerAndDay,
        used: times.length,
        retry_at: new Date(blocking + dayMs).toISOString(),
      },
    },
  );
}

function inWords(seconds: number): string {
  if (seconds < 120) return seconds === 1 ? '1 second' : `${seconds} seconds`;
  return seconds < 7200 ? `${Math.ceil(seconds / 60)} minutes` : `${Math.ceil(seconds / 3600)} hours`;
}
