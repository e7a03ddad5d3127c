// Records which apps have a busy worker, by what their containers use: such an app does not rest, since nothing else shows
// that its worker has something to do.
import { annotations, labels } from '../../crds/names.ts';
import { parsePodComponents } from '../../crds/routes.ts';
import { listContainers, type Pod } from '../objects/kinds.ts';
import { isTrial } from '../reconcile/snapshot.ts';
import type { WorkerUse } from '../steps/deploy/rest.ts';
import type { Use, UseLookup } from './usage.ts';

export interface WorkerRecord {
  /** Returns the apps of which a worker is busy now and none was before. */
  observe(pods: readonly Pod[], findUse: UseLookup, now: number): string[];
  find(app: string, now: number): WorkerUse;
}

/**
 * Thousandths of a core. A worker that waits for a queue, or asks it each second, uses a few of them, and one that
 * computes uses hundreds.
 */
export const busyMilli = 50;

interface AppRecord {
  /** At the last look. */
  readonly isBusy: boolean;
  readonly busyAt: number | undefined;
  readonly measuredAt: number;
}

/** Kept in memory: another leader has it again within a minute. @param freshMs how long a measurement counts */
export function createWorkerRecord(freshMs: number): WorkerRecord {
  let apps: ReadonlyMap<string, AppRecord> = new Map();
  let startedAt: number | undefined;
  return {
    observe(pods, findUse, now) {
      const before = apps;
      const none = { isBusy: false, busyAt: undefined, measuredAt: (startedAt ??= now) };
      const byApp = Map.groupBy(pods.flatMap(listWorkers), ({ app }) => app);
      apps = new Map(
        [...byApp].map(([app, workers]) => {
          const uses = workers.map(({ pod, container }) => findUse(pod, container));
          return [app, updateRecord(before.get(app) ?? none, uses)];
        }),
      );
      return [...apps].flatMap(([app, { isBusy }]) => (isBusy && before.get(app)?.isBusy !== true ? [app] : []));
    },
    find(app, now) {
      const { busyAt, measuredAt } = apps.get(app) ?? { busyAt: undefined, measuredAt: startedAt ?? now };
      return { busyAt, measuredAt, isKnown: apps.has(app) && now - measuredAt <= freshMs };
    },
  };
}

function updateRecord({ busyAt, measuredAt }: AppRecord, uses: readonly (Use | undefined)[]): AppRecord {
  const known = uses.filter((use) => use !== undefined);
  const busy = known.filter(({ cpuMilli }) => cpuMilli >= busyMilli).map(({ at }) => at);
  return {
    isBusy: busy.length > 0,
    busyAt: busy.length === 0 ? busyAt : Math.max(busyAt ?? 0, ...busy),
    // Of several, the one that was measured least recently decides.
    measuredAt: known.length < uses.length ? measuredAt : Math.max(measuredAt, Math.min(...known.map(({ at }) => at))),
  };
}

/** The containers of a pod that run as long as it does and that no request reaches. */
function listWorkers(pod: Pod): { readonly app: string; readonly pod: string; readonly container: string }[] {
  const app = pod.metadata.labels?.[labels.app];
  if (app === undefined || isTrial(pod)) return [];
  const workers = (parsePodComponents(pod.metadata.annotations?.[annotations.components]) ?? [])
    .filter(({ route }) => route === undefined)
    .map(({ name }) => name);
  return listContainers(pod)
    .filter(({ name }) => workers.includes(name))
    .map(({ name }) => ({ app, pod: pod.metadata.name, container: name }));
}
