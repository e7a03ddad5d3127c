// Runs the enforcer on every change of a mirror or of the CNI records, and at intervals.
import { watch } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { toErrorMessage, type Logger } from '../../lib/kubernetes/index.ts';
import type { Applier } from './tables/apply.ts';
import type { Enforcer, Sources } from './enforcer.ts';

/** Settings. */
export interface RunOptions {
  enforcer: Enforcer;
  applier: Applier;
  sources: Sources;
  /** The CNI library's directory of records; created if it does not exist yet. */
  records: string;
  /** Whether rules from an earlier run are in the kernel. If not, nothing flows until the new ones are known. */
  hasRules: () => Promise<boolean>;
  /** Sets the kernel's switches; called now and with each full replacement. */
  prepareKernel: () => Promise<void>;
  /** Milliseconds between full replacements, in case the kernel's tables were flushed or its switches reset. */
  restoreMs: number;
  log: Logger;
}

/** Enforces until the signal aborts. Rules stay in the kernel afterwards. Rejects if the kernel cannot be prepared. */
export async function runEnforcer(options: RunOptions, signal: AbortSignal): Promise<void> {
  const { enforcer, applier, log } = options;
  const reflectors = [options.sources.pods, options.sources.namespaces, options.sources.policies];
  await options.prepareKernel();
  await mkdir(options.records, { recursive: true });
  if (!(await options.hasRules())) await enforcer.close();

  const running = Promise.all(reflectors.map(async (reflector) => reflector.run(signal)));
  const onError = (error: unknown): void => {
    log.error({ problem: toErrorMessage(error) }, 'rules could not be applied; those in the kernel stay in force');
  };
  const work = createTaskRunner(async () => enforcer.reconcile(), { pauseMs: 5, retryMs: 1000, onError }, signal);
  const restoreRules = async (): Promise<void> => {
    await options.prepareKernel();
    applier.invalidate();
    work.request();
  };
  const synced = await Promise.all(reflectors.map(async ({ store }) => store.waitUntilSynced(signal))).catch(
    () => undefined,
  );
  if (synced === undefined) {
    await running;
    return;
  }

  for (const { store } of reflectors)
    store.subscribe(() => {
      work.request();
    });
  const records = watch(options.records, () => {
    work.request();
  });
  const timer = setInterval(() => {
    restoreRules().catch(onError);
  }, options.restoreMs);
  work.request();
  await running;
  clearInterval(timer);
  records.close();
  await work.waitUntilIdle();
}

/** Requests runs of a task, one at a time; changes in quick succession cause only one run. Safe to call at any time. */
export interface TaskRunner {
  request(): void;
  /** Resolves when no run is in progress or requested. */
  waitUntilIdle(): Promise<void>;
}

/** Settings. */
export interface LatestOptions {
  /** Milliseconds to wait for further changes before a run. */
  pauseMs: number;
  /** Called after a failed run; the next run is requested after `retryMs`. */
  onError: (error: unknown) => void;
  retryMs: number;
}

/** Creates the queue. A request during a run causes another run. Stops permanently when the signal aborts. */
export function createTaskRunner(task: () => Promise<void>, options: LatestOptions, signal: AbortSignal): TaskRunner {
  let dirty = false;
  let running: Promise<void> | undefined;
  const pause = async (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const attempt = async (): Promise<void> => {
    try {
      await task();
    } catch (error) {
      options.onError(error);
      dirty = true;
      await pause(options.retryMs);
    }
  };
  const runLoop = async (): Promise<void> => {
    while (dirty && !signal.aborted) {
      await pause(options.pauseMs);
      dirty = false;
      await attempt();
    }
    running = undefined;
  };
  return {
    request() {
      dirty = true;
      if (!signal.aborted) running ??= runLoop();
    },
    async waitUntilIdle() {
      await running;
    },
  };
}
