// Counts of a run of tests: a reporter that takes nothing for passed but what passed.
import type { SerializedError } from 'vitest';
import type { Reporter, TestModule } from 'vitest/node';

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const nothing: Tally = { passed: 0, failed: 0, skipped: 0 };

export function sum(...tallies: readonly Tally[]): Tally {
  const total = (key: keyof Tally): number => tallies.reduce((all, tally) => all + tally[key], 0);
  return { passed: total('passed'), failed: total('failed'), skipped: total('skipped') };
}

/** `N passed, N failed`, and how many were skipped if any were. */
export function line({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

/**
 * A test without a result, as of a worker that crashed or hung, has failed; so has a suite or a file with an error of
 * its own, as from a hook, and a file without a test.
 */
function count(module: TestModule): Tally {
  const tests = [...module.children.allTests()].map((test) => test.result().state);
  const suites = [...module.children.allSuites()].filter((suite) => suite.errors().length > 0).length;
  const [passed, skipped] = ['passed', 'skipped'].map((state) => tests.filter((one) => one === state).length);
  const failedTests = tests.length - (passed ?? 0) - (skipped ?? 0);
  const itself =
    module.errors().length > 0 || tests.length === 0 || (!module.ok() && failedTests + suites === 0) ? 1 : 0;
  return { passed: passed ?? 0, failed: failedTests + suites + itself, skipped: skipped ?? 0 };
}

export function tallyOf(modules: readonly TestModule[]): Tally {
  return sum(...modules.map(count));
}

export class TallyReporter implements Reporter {
  #modules: readonly TestModule[] = [];
  #unhandled = 0;

  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    this.#modules = modules;
    this.#unhandled = unhandled.length;
  }

  get tally(): Tally {
    return sum(tallyOf(this.#modules), { ...nothing, failed: this.#unhandled });
  }
}
