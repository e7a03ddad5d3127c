// What all activators together have seen of each app. Kept in memory: another leader sees it again in seconds.
import type { ActivityReport, AppReport } from '../../crds/reports.ts';
import type { Activators, AppActivity, Gap } from '../steps/deploy/idle/rest.ts';

export interface ActivityRecord {
  /** Takes what each activator answered. Returns the apps of which something is to be written down. */
  take(reports: readonly (ActivityReport | undefined)[], now: number): string[];
  /** Undefined unless all activators have answered within `freshMs`. */
  of(app: string, now: number): AppActivity | undefined;
  activators(now: number): Activators;
}

type Seen = AppActivity;

/** A shorter time without use says nothing about resting. */
const leastGapSeconds = 30;
const keptGaps = 30;
/** Without an answer for this long there is no activator. */
const absentMs = 30_000;

/** @param freshMs how long an answer counts */
export function activityRecord(freshMs: number): ActivityRecord {
  const apps = new Map<string, Seen>();
  /** When all of them answered last, and any. */
  let completeAt = -Infinity;
  let presentAt = -Infinity;
  let firstAt: number | undefined;

  function takeApp(name: string, reports: readonly AppReport[], now: number): boolean {
    const before = apps.get(name);
    const next = merged(before, reports, now);
    apps.set(name, next);
    return lastNumber(next) !== lastNumber(before) || next.gaps.at(-1)?.at !== before?.gaps.at(-1)?.at;
  }

  return {
    take(reports, now) {
      firstAt ??= now;
      const answered = reports.filter((report) => report !== undefined);
      if (answered.length > 0) presentAt = now;
      if (answered.length > 0 && answered.length === reports.length) completeAt = now;
      const byApp = Map.groupBy(
        answered.flatMap((report) => Object.entries(report.apps)),
        ([name]) => name,
      );
      for (const [name, seen] of apps) if (!byApp.has(name)) apps.set(name, { ...seen, inFlight: 0 });
      return [...byApp]
        .filter(([name, entries]) =>
          takeApp(
            name,
            entries.map(([, report]) => report),
            now,
          ),
        )
        .map(([name]) => name);
    },
    of(app, now) {
      if (now - completeAt > freshMs) return undefined;
      return apps.get(app) ?? { inFlight: 0, lastUsedAt: undefined, gaps: [], wakes: [] };
    },
    activators(now) {
      if (now - presentAt <= absentMs) return 'present';
      return firstAt === undefined || now - firstAt <= absentMs ? 'unknown' : 'absent';
    },
  };
}

function merged(before: Seen | undefined, reports: readonly AppReport[], now: number): Seen {
  const inFlight = reports.reduce((sum, report) => sum + report.inFlight, 0);
  const ends = reports.flatMap(({ idleMs }) => (idleMs === undefined ? [] : [now - idleMs]));
  const { lastUsedAt: known, gaps } = before ?? { lastUsedAt: undefined, gaps: [] };
  const last = Math.max(known ?? 0, inFlight > 0 ? now : 0, ...ends);
  const gap = known === undefined ? undefined : gapBetween(known, last);
  return {
    inFlight,
    lastUsedAt: last === 0 ? undefined : last,
    gaps: gap === undefined ? gaps : [...gaps, gap].slice(-keptGaps),
    wakes: reports.flatMap(({ wakes }) => wakes),
  };
}

function lastNumber(seen: Seen | undefined): number {
  return Math.max(0, ...(seen?.wakes ?? []).map(({ number }) => number));
}

function gapBetween(before: number, after: number): Gap | undefined {
  const seconds = Math.round((after - before) / 1000);
  return seconds < leastGapSeconds ? undefined : { at: Math.floor(after / 1000) * 1000, seconds };
}
