// Runs named steps in the order of what they need, side by side where they may, and shows how each went.

export interface Step {
  name: string;
  /** Names of steps that must be done before. */
  needs?: readonly string[];
  /** Steps of one lane never run at the same time; they go in the order of the list. */
  lane?: string;
  /** Does the work unless it is done already; the text it returns stands on the progress line. */
  run: () => Promise<string | undefined>;
}

export interface Reporter {
  /** Called once a step has run for longer than a few seconds. */
  slow: (step: Step) => void;
  done: (step: Step, detail: string, milliseconds: number) => void;
  failed: (step: Step, error: unknown, milliseconds: number) => void;
}

export class StepError extends Error {
  override name = 'StepError';
  readonly step: string;
  constructor(step: string, cause: unknown) {
    super(`step "${step}" failed: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.step = step;
  }
}

const slowAfterMs = 3000;

/** Throws when a step needs one that is not there, or when steps wait for each other in a ring. */
export function checkSteps(steps: readonly Step[]): void {
  const names = new Set(steps.map(({ name }) => name));
  if (names.size !== steps.length) throw new Error('two steps have the same name');
  for (const { name, needs = [] } of steps) {
    const missing = needs.find((need) => !names.has(need));
    if (missing !== undefined) throw new Error(`step "${name}" needs "${missing}", which does not exist`);
  }
  const settled = new Set<string>();
  let left = [...steps];
  while (left.length > 0) {
    const next = left.filter(({ needs = [] }) => needs.every((need) => settled.has(need)));
    if (next.length === 0) throw new Error(`steps wait for each other: ${left.map(({ name }) => name).join(', ')}`);
    for (const { name } of next) settled.add(name);
    left = left.filter(({ name }) => !settled.has(name));
  }
}

async function runOne(step: Step, reporter: Reporter): Promise<void> {
  const start = Date.now();
  const timer = setTimeout(() => {
    reporter.slow(step);
  }, slowAfterMs);
  try {
    const detail = await step.run();
    reporter.done(step, detail ?? '', Date.now() - start);
  } catch (error) {
    reporter.failed(step, error, Date.now() - start);
    throw new StepError(step.name, error);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Runs all steps. After a failure no further step starts; those running are waited for, and the first failure is
 * thrown.
 */
export async function runSteps(steps: readonly Step[], reporter: Reporter): Promise<void> {
  checkSteps(steps);
  const waiting = new Set(steps);
  const running = new Map<Step, Promise<void>>();
  const finished = new Set<string>();
  const failures: unknown[] = [];
  const isReady = (step: Step): boolean => {
    const laneTaken = step.lane !== undefined && [...running.keys()].some(({ lane }) => lane === step.lane);
    return !laneTaken && (step.needs ?? []).every((need) => finished.has(need));
  };
  const start = (step: Step): void => {
    waiting.delete(step);
    const ended = runOne(step, reporter).then(
      () => {
        finished.add(step.name);
      },
      (error: unknown) => {
        failures.push(error);
      },
    );
    running.set(
      step,
      ended.finally(() => running.delete(step)),
    );
  };
  for (;;) {
    for (const step of failures.length === 0 ? [...waiting] : []) if (isReady(step)) start(step);
    if (running.size === 0) break;
    await Promise.race(running.values());
  }
  if (failures.length > 0) throw failures[0];
}
