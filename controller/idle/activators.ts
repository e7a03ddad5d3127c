// Polls the activators while this replica leads: which apps are in use, and whether they can hold requests for one.
import { z } from 'zod';
import { activator } from '../../crds/names.ts';
import {
  activityReport,
  closeAnswer,
  type ActivityReport,
  type AppReport,
  type CloseRequest,
} from '../../crds/reports.ts';
import { toErrorMessage, sleep, systemClock, type Client, type Logger } from '../../lib/kubernetes/index.ts';
import { createTimeLimit } from '../../lib/values.ts';
import { endpointSlices } from '../objects/kinds.ts';
import type { Activators, AppActivity, Gap } from '../steps/deploy/rest.ts';

export interface ActivityTaskOptions {
  readonly pool: Pick<ActivatorPool, 'readReports'>;
  readonly record: ActivityRecord;
  readonly intervalMs: number;
  /** Called with the name of an app whose status has to change. */
  readonly onChange: (app: string) => void;
  /** Called when the activators have gone or are back, which changes the routes of all apps. */
  readonly onStateChange: () => void;
  readonly log: Logger;
}

/** Runs until the signal is aborted. */
export function createActivityTask(options: ActivityTaskOptions): (signal: AbortSignal) => Promise<void> {
  const { pool, record, onChange, onStateChange, log } = options;
  return async (signal) => {
    let activatorState = record.getActivatorState(Date.now());
    while (!signal.aborted) {
      try {
        record.take(await pool.readReports(signal), Date.now()).forEach(onChange);
      } catch (error) {
        log.warn({ error: toErrorMessage(error) }, 'the activators did not respond: no app goes to rest');
      }
      const activators = record.getActivatorState(Date.now());
      if (activators !== activatorState) onStateChange();
      activatorState = activators;
      await sleep(systemClock, options.intervalMs, signal);
    }
  };
}

export interface ActivatorPool {
  /** The report of each activator; undefined for one that does not answer. Empty: there is none. */
  readReports(signal: AbortSignal): Promise<readonly (ActivityReport | undefined)[]>;
  /** True when all of them hold requests for the app from now on. Never rejects. */
  close(request: CloseRequest): Promise<boolean>;
}

const limitMs = 2_000;

/** Asks the pods behind the Service of the activator's control port, including pods that are terminating. */
export function createActivatorPool(client: Client, namespace: string): ActivatorPool {
  /** Listed for each call: a pod that is missing here could have a request in progress that would go unnoticed. */
  async function listOrigins(signal?: AbortSignal): Promise<string[]> {
    const labelSelector = `kubernetes.io/service-name=${activator.name}-control`;
    const origins: string[] = [];
    for await (const slice of client.listAll(endpointSlices, { namespace, labelSelector, signal })) {
      const port = slice.ports?.find(({ name }) => name === 'control')?.port ?? activator.controlPort;
      for (const { addresses } of slice.endpoints ?? [])
        origins.push(
          ...addresses.map((address) => `http://${address.includes(':') ? `[${address}]` : address}:${port}`),
        );
    }
    return [...new Set(origins)];
  }

  async function closeAll(request: CloseRequest): Promise<boolean> {
    const addresses = await listOrigins(createTimeLimit(limitMs));
    const answers = await Promise.all(
      addresses.map(async (origin) => {
        const answer = await requestActivator(`${origin}/close`, closeAnswer, request).catch(() => undefined);
        return answer?.closed === true;
      }),
    );
    if (answers.length > 0 && answers.every(Boolean)) return true;
    // Otherwise those that agreed would keep holding requests for some seconds.
    await Promise.allSettled(
      addresses.map((origin) => requestActivator(`${origin}/open`, z.unknown(), { app: request.app })),
    );
    return false;
  }

  return {
    async readReports(signal) {
      const addresses = await listOrigins(signal);
      return Promise.all(
        addresses.map((origin) =>
          requestActivator(`${origin}/activity`, activityReport, undefined, signal).catch(() => undefined),
        ),
      );
    },
    close: (request) => closeAll(request).catch(() => false),
  };
}

async function requestActivator<T>(url: string, answer: z.ZodType<T>, body?: object, signal?: AbortSignal): Promise<T> {
  const limit = createTimeLimit(limitMs);
  const response = await fetch(url, {
    signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return answer.parse(await response.json());
}

export interface ActivityRecord {
  /** Merges the reports of all activators. Returns the apps whose status has to change. */
  take(reports: readonly (ActivityReport | undefined)[], now: number): string[];
  /** Undefined unless all activators have answered within `freshMs`. */
  find(app: string, now: number): AppActivity | undefined;
  getActivatorState(now: number): Activators;
}

/** A shorter gap says nothing about whether the app should rest. */
const leastGapSeconds = 30;
const keptGaps = 30;
/** If no activator has answered for this long, there is none. */
const absentMs = 30_000;

/** Kept in memory: another leader has it again within seconds. @param freshMs how long a report counts */
export function createActivityRecord(freshMs: number): ActivityRecord {
  const apps = new Map<string, AppActivity>();
  /** When all of them last answered, and when any did. */
  let completeAt = -Infinity;
  let presentAt = -Infinity;
  let firstAt: number | undefined;

  function takeApp(name: string, reports: readonly AppReport[], now: number): boolean {
    const before = apps.get(name);
    const next = mergeReports(before, reports, now);
    apps.set(name, next);
    return findLastNumber(next) !== findLastNumber(before) || next.gaps.at(-1)?.at !== before?.gaps.at(-1)?.at;
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
    find(app, now) {
      if (now - completeAt > freshMs) return undefined;
      return apps.get(app) ?? { inFlight: 0, lastUsedAt: undefined, gaps: [], wakes: [] };
    },
    getActivatorState(now) {
      if (now - presentAt <= absentMs) return 'present';
      return firstAt === undefined || now - firstAt <= absentMs ? 'unknown' : 'absent';
    },
  };
}

function mergeReports(before: AppActivity | undefined, reports: readonly AppReport[], now: number): AppActivity {
  const inFlight = reports.reduce((sum, report) => sum + report.inFlight, 0);
  const ends = reports.flatMap(({ idleMs }) => (idleMs === undefined ? [] : [now - idleMs]));
  const { lastUsedAt: known, gaps } = before ?? { lastUsedAt: undefined, gaps: [] };
  const last = Math.max(known ?? 0, inFlight > 0 ? now : 0, ...ends);
  const gap = known === undefined ? undefined : measureGap(known, last);
  return {
    inFlight,
    lastUsedAt: last === 0 ? undefined : last,
    gaps: gap === undefined ? gaps : [...gaps, gap].slice(-keptGaps),
    wakes: reports.flatMap(({ wakes }) => wakes),
  };
}

function findLastNumber(seen: AppActivity | undefined): number {
  return Math.max(0, ...(seen?.wakes ?? []).map(({ number }) => number));
}

function measureGap(before: number, after: number): Gap | undefined {
  const seconds = Math.round((after - before) / 1000);
  return seconds < leastGapSeconds ? undefined : { at: Math.floor(after / 1000) * 1000, seconds };
}
