// Runs named steps in the order of their dependencies, in parallel where possible, and reports the result of each.

export interface Step {
  name: string;
  /** Names of steps that must be done first. */
  needs?: readonly string[];
  /** Steps in the same lane never run in parallel; they run in list order. */
  lane?: string;
  /** Does the work unless it is already done. The returned text is shown on the step's last line. */
  run: (report: Report) => Promise<string | undefined>;
}

/** Receives a short text about the step's current activity, such as `312 of 1204 packages`. */
export type Report = (progress: string) => void;

/** For work without progress output. */
export const ignoreReport: Report = () => undefined;

export interface Reporter {
  /** Called before the first step. */
  begin: (steps: readonly Step[]) => void;
  reportStart: (step: Step) => void;
  reportProgress: (step: Step, text: string) => void;
  reportDone: (step: Step, detail: string, milliseconds: number) => void;
  reportFailure: (step: Step, error: unknown, milliseconds: number) => void;
  /** Called after the last step, failed or not. */
  end: () => void;
}

export class StepError extends Error {
  override name = 'StepError';
  readonly step: string;
  constructor(step: string, cause: unknown) {
    super(`step "${step}" failed: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.step = step;
  }
}

/** Throws if a step needs one that does not exist, or if steps wait for each other in a cycle. */
export function checkSteps(steps: readonly Step[], earlierSteps: readonly Step[] = []): void {
  const earlier = earlierSteps.map(({ name }) => name);
  const names = new Set([...earlier, ...steps.map(({ name }) => name)]);
  if (names.size !== earlier.length + steps.length) throw new Error('two steps have the same name');
  for (const { name, needs = [] } of steps) {
    const missing = needs.find((need) => !names.has(need));
    if (missing !== undefined) throw new Error(`step "${name}" needs "${missing}", which does not exist`);
  }
  const ordered = new Set(earlier);
  let remainingSteps = [...steps];
  while (remainingSteps.length > 0) {
    const next = remainingSteps.filter(({ needs = [] }) => needs.every((need) => ordered.has(need)));
    if (next.length === 0)
      throw new Error(`steps wait for each other: ${remainingSteps.map(({ name }) => name).join(', ')}`);
    for (const { name } of next) ordered.add(name);
    remainingSteps = remainingSteps.filter(({ name }) => !ordered.has(name));
  }
}

async function runOne(step: Step, reporter: Reporter): Promise<void> {
  const start = Date.now();
  reporter.reportStart(step);
  try {
    const detail = await step.run((text) => {
      reporter.reportProgress(step, text);
    });
    reporter.reportDone(step, detail ?? '', Date.now() - start);
  } catch (error) {
    reporter.reportFailure(step, error, Date.now() - start);
    throw new StepError(step.name, error);
  }
}

/**
 * Runs all steps. After a failure no further step starts; those running are waited for, and the first failure is
 * thrown. `earlierSteps`: steps of an earlier run, on which these may depend.
 */
export async function runSteps(
  steps: readonly Step[],
  reporter: Reporter,
  earlierSteps: readonly Step[] = [],
): Promise<void> {
  checkSteps(steps, earlierSteps);
  const waiting = new Set(steps);
  const running = new Map<Step, Promise<void>>();
  const finished = new Set(earlierSteps.map(({ name }) => name));
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
  reporter.begin(steps);
  for (;;) {
    for (const step of failures.length === 0 ? [...waiting] : []) if (isReady(step)) start(step);
    if (running.size === 0) break;
    await Promise.race(running.values());
  }
  reporter.end();
  if (failures.length > 0) throw failures[0];
}
