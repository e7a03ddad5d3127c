// Lists the functions of this repository that one action enters, by source file, from V8's precise coverage.
import { Session, type Profiler } from 'node:inspector/promises';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = join(import.meta.dirname, '..', '..', '..');

/** Functions entered, by source file. Files of test/ and node_modules/ are left out. */
export type EnteredFiles = ReadonlyMap<string, readonly string[]>;

/** Counts calls of functions in this process. Functions that V8 compiled before are counted too. */
export class CallCounter {
  readonly #session: Session;

  private constructor(session: Session) {
    this.#session = session;
  }

  static async start(): Promise<CallCounter> {
    const session = new Session();
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
    return new CallCounter(session);
  }

  async stop(): Promise<void> {
    await this.#session.post('Profiler.stopPreciseCoverage');
    this.#session.disconnect();
  }

  /**
   * Returns what one run of `act` enters, including what runs behind it for `settleMs`. Timers of the process run
   * meanwhile: only what every one of several runs enters is kept, without what as much time without a run always enters as
   * often.
   */
  async measure(act: () => Promise<void>, { settleMs, runs }: MeasureOptions): Promise<EnteredFiles> {
    const active: Calls[] = [];
    const idle: Calls[] = [];
    for (let run = 0; run < runs; run += 1) {
      await this.#take();
      const since = performance.now();
      await act();
      await sleep(settleMs);
      active.push(await this.#take());
      await sleep(performance.now() - since);
      idle.push(await this.#take());
    }
    const entered = [...(active[0]?.values() ?? [])]
      .map((call) => ({ ...call, count: countFewest(active, call.key) }))
      .filter(({ key, count }) => count > countFewest(idle, key));
    return listEntered(entered);
  }

  /** Returns the calls since the last time, and sets the counters back to zero. */
  async #take(): Promise<Calls> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    return toCallsByKey(result);
  }
}

/** Groups calls by source file. */
export function listEntered(entered: Iterable<Call>): EnteredFiles {
  return new Map(
    [...Map.groupBy(entered, ({ file }) => file)]
      .sort(([one], [other]) => one.localeCompare(other))
      .map(([file, all]) => [file, all.map(formatCall)]),
  );
}

export interface MeasureOptions {
  /** How long things may run behind the action, in milliseconds. */
  readonly settleMs: number;
  /** How often the action is measured. */
  readonly runs: number;
}

/** By function. */
export type Calls = ReadonlyMap<string, Call>;

export interface Call {
  readonly key: string;
  readonly file: string;
  readonly name: string;
  readonly count: number;
}

/** Calls of functions in the files of this repository. */
export function toCallsByKey(result: readonly Profiler.ScriptCoverage[]): Calls {
  return new Map(result.flatMap(toCalls).map((call) => [call.key, call]));
}

/** The calls without those that are as many in one of the others. */
export function subtractCalls(calls: Calls, others: readonly Calls[]): Call[] {
  return [...calls.values()].filter(({ key, count }) => others.every((other) => count > (other.get(key)?.count ?? 0)));
}

function toCalls({ url, functions }: Profiler.ScriptCoverage): Call[] {
  if (!url.startsWith('file:')) return [];
  const file = relative(root, fileURLToPath(url));
  if (/^(?:\.\.|node_modules|test)\//.test(file)) return [];
  return functions.flatMap(({ functionName, ranges: [range] }) => {
    if (range === undefined || range.count === 0) return [];
    const key = `${file}:${range.startOffset}`;
    // The first function of a file is its top level, which runs when it is imported for the first time.
    const name = range.startOffset === 0 ? '(import)' : functionName;
    return [{ key, file, name, count: range.count }];
  });
}

/** The fewest calls of a function in any of several periods. */
function countFewest(periods: readonly Calls[], key: string): number {
  return Math.min(...periods.map((calls) => calls.get(key)?.count ?? 0));
}

function formatCall({ name, count }: Call): string {
  return `${name === '' ? '(callback)' : name}${count > 1 ? ` ×${count}` : ''}`;
}
