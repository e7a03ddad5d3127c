// Which apps are in use: requests in progress, the end of the last one, and what is held since an app was closed.
import type { ActivityReport, AppReport, CloseRequest } from '../../crds/reports.ts';

export interface Activity {
  /** Counts a request until the function that it gives is called. A look by the platform itself is no use. */
  begin(app: string, isLook: boolean): () => void;
  /** Records a wake, in milliseconds from the first request to the first connection. False: it was known. */
  woken(app: string, number: number, ms: number): boolean;
  /** Holds what comes from now on, if nothing did for a while. False: it is in use. */
  close(request: CloseRequest): boolean;
  open(app: string): void;
  /** Whether what comes is held until the rest that was announced is seen. @param number the last rest that was seen */
  isClosed(app: string, number: number): boolean;
  report(): ActivityReport;
  readonly inFlight: number;
}

interface Entry {
  inFlight: number;
  endedAt: number | undefined;
  closed: { readonly until: number; readonly number: number } | undefined;
  wakes: AppReport['wakes'];
}

/** An operator that says no more is not waited for longer. */
const closedMs = 10_000;
/** Wakes of which the operator may not have heard yet. */
const keptWakes = 5;

/** @param now monotonic milliseconds */
export function createActivity(now: () => number = () => performance.now()): Activity {
  const entries = new Map<string, Entry>();
  let total = 0;

  function entryOf(app: string): Entry {
    const known = entries.get(app);
    if (known !== undefined) return known;
    const made: Entry = { inFlight: 0, endedAt: undefined, closed: undefined, wakes: [] };
    entries.set(app, made);
    return made;
  }

  return {
    begin(app, isLook) {
      if (isLook) return () => undefined;
      const entry = entryOf(app);
      entry.inFlight += 1;
      total += 1;
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        entry.inFlight -= 1;
        total -= 1;
        entry.endedAt = now();
      };
    },
    woken(app, number, ms) {
      const entry = entryOf(app);
      if (entry.wakes.some((wake) => wake.number === number)) return false;
      entry.wakes = [...entry.wakes, { number, ms }].slice(-keptWakes);
      return true;
    },
    close({ app, number, idleMs }) {
      const entry = entryOf(app);
      const isUsed = entry.inFlight > 0 || (entry.endedAt !== undefined && now() - entry.endedAt < idleMs);
      if (!isUsed) entry.closed = { until: now() + closedMs, number };
      return !isUsed;
    },
    open(app) {
      entryOf(app).closed = undefined;
    },
    isClosed(app, number) {
      const closed = entries.get(app)?.closed;
      return closed !== undefined && now() < closed.until && number < closed.number;
    },
    report: () => ({
      apps: Object.fromEntries(
        [...entries].map(([app, { inFlight, endedAt, wakes }]) => [
          app,
          { inFlight, ...(endedAt === undefined ? {} : { idleMs: now() - endedAt }), wakes: [...wakes] },
        ]),
      ),
    }),
    get inFlight() {
      return total;
    },
  };
}
