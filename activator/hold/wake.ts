// Waits for one app to take requests, on behalf of all requests that are held for it.
import type { Directory } from '../apps/directory.ts';
import type { AppView } from '../apps/view.ts';
import type { Activity } from '../control/activity.ts';
import { accepts } from './dial.ts';
import { Refusal } from './refusal.ts';

export interface WakeOptions {
  readonly directory: Directory;
  readonly activity: Activity;
  /** Has the rest of this number ended. Rejects when the word could not be left. */
  readonly ask: (app: string, number: number) => Promise<void>;
  /** Called after a wake, in milliseconds. */
  readonly measured: (app: string, state: 'sleep' | 'nap', ms: number) => void;
}

function stopped(app: AppView | undefined): Refusal {
  return app === undefined
    ? new Refusal('unknown', 'There is no app at this address.')
    : new Refusal('stopped', `${app.view.title} is suspended by the operator of this installation.`);
}

function throwFailure({ title, failure }: AppView['view']): void {
  if (failure === undefined) return;
  throw new Refusal('failed', `${title} does not start. ${failure.message} ${failure.fix}`, failedRetrySeconds);
}

/** A wake in progress. */
export interface Wake {
  /** Milliseconds, monotonic. */
  readonly startedAt: number;
  /** Settles when the app takes requests (true), has failed (rejects), or nobody waits any more (false). */
  readonly opened: Promise<boolean>;
  /** Looks at once: something has changed. */
  nudge(): void;
  /** Gives up. */
  end(): void;
}

const lookEveryMs = 20;
const askAgainMs = 500;
/** A pod that crashes is started again after longer and longer waits. */
const failedRetrySeconds = 30;

export function startWake(name: string, { directory, activity, ask, measured }: WakeOptions): Wake {
  const startedAt = performance.now();
  const state = { isOver: false, asked: -1, askedAt: 0, nudge: (): void => undefined };

  /** Each rest is ended once; a word that could not be left is left again. */
  function leaveWord({ idle }: AppView['view']): void {
    if (idle?.state !== 'Asleep') return;
    if (state.asked === idle.number || performance.now() - state.askedAt < askAgainMs) return;
    const { number } = idle;
    state.askedAt = performance.now();
    state.asked = number;
    ask(name, number).catch(() => {
      state.asked = -1;
    });
  }

  /** @throws Refusal when waiting is in vain */
  async function look(): Promise<boolean> {
    const app = directory.get(name);
    if (app === undefined || app.view.isStopped) throw stopped(app);
    const { view } = app;
    leaveWord(view);
    if (activity.isClosed(name, view.restNumber)) return false;
    for (const backend of directory.backends(name))
      if (await accepts(backend, backend.isReady ? undefined : view.healthPath)) return true;
    if (view.idle?.state !== 'Asleep') throwFailure(view);
    return false;
  }

  async function run(): Promise<boolean> {
    while (!state.isOver) {
      if (await look()) {
        const number = directory.get(name)?.view.restNumber ?? 0;
        const ms = performance.now() - startedAt;
        // Without a word that it asked for, it was no rest that kept the requests waiting.
        if (state.asked > 0) {
          activity.woken(name, Math.max(number, state.asked), ms);
          measured(name, 'sleep', ms);
        }
        return true;
      }
      await pause();
    }
    return false;
  }

  function pause(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, lookEveryMs);
      state.nudge = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  const opened = run();
  // Whoever waits hears of it; nobody may.
  opened.catch(() => undefined);
  return {
    startedAt,
    opened,
    nudge: () => {
      state.nudge();
    },
    end: () => {
      state.isOver = true;
      state.nudge();
    },
  };
}
