// Counts of a run of tests: a reporter that takes nothing for passed but what passed.
import type { SerializedError } from 'vitest';
import type { Reporter, TestModule } from 'vitest/node';

export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** A name for each of those that failed: a command, or a file with its test. */
  readonly failures: readonly string[];
}

export const nothing: Tally = { passed: 0, failed: 0, skipped: 0, failures: [] };

export function sum(...tallies: readonly Tally[]): Tally {
  const total = (key: 'passed' | 'failed' | 'skipped'): number => tallies.reduce((all, tally) => all + tally[key], 0);
  return {
    passed: total('passed'),
    failed: total('failed'),
    skipped: total('skipped'),
    failures: tallies.flatMap(({ failures }) => failures),
  };
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
  const tests = [...module.children.allTests()];
  const [passed = [], skipped = []] = (['passed', 'skipped'] as const).map((state) =>
    tests.filter((test) => test.result().state === state),
  );
  const failed = [
    ...tests.filter((test) => !passed.includes(test) && !skipped.includes(test)),
    ...[...module.children.allSuites()].filter((suite) => suite.errors().length > 0),
  ].map(({ fullName }) => `${module.relativeModuleId} > ${fullName}`);
  const hasFailed = module.errors().length > 0 || tests.length === 0 || (!module.ok() && failed.length === 0);
  const failures = hasFailed ? [...failed, module.relativeModuleId] : failed;
  return { passed: passed.length, failed: failures.length, skipped: skipped.length, failures };
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
    const failures = Array.from({ length: this.#unhandled }, () => 'an error outside of any test');
    return sum(tallyOf(this.#modules), { ...nothing, failed: this.#unhandled, failures });
  }
}
