// Runs test projects of vitest.config.ts, and counts what came of them.
import { setTimeout as sleep } from 'node:timers/promises';
import { createVitest, type InlineConfig, type Reporter } from 'vitest/node';
import { nothing, sum, TallyReporter, tallyOf, type Tally } from './tally.ts';

export interface ProjectsRun {
  /** Only the files that import, directly or not, what changed since the last commit. */
  readonly onlyRelated?: boolean;
  readonly projects: readonly string[];
  /** Only the files whose path has one of these in it; without any, all. */
  readonly patterns: readonly string[];
  /** A test that never gives its thread back can only be ended from outside. */
  readonly limitMs: number;
  readonly options?: InlineConfig;
  /** In addition to vitest's own and the one that counts. */
  readonly reporters?: readonly Reporter[];
}

const stopMs = 10_000;

/** A run that does not end within its limit has failed, and so has each of its tests that has no result by then. */
export async function runProjects({
  projects,
  patterns,
  onlyRelated = false,
  limitMs,
  options = {},
  reporters = [],
}: ProjectsRun): Promise<Tally> {
  const reporter = new TallyReporter();
  const vitest = await createVitest({
    project: [...projects],
    watch: false,
    ...(onlyRelated ? { changed: true } : {}),
    reporters: ['default', reporter, ...reporters],
    ...options,
  });
  if ((await vitest.getRelevantTestSpecifications([...patterns])).length === 0) {
    await vitest.close();
    return nothing;
  }
  const limit = Promise.withResolvers<'late'>();
  const timer = setTimeout(limit.resolve, limitMs, 'late');
  const ended = await Promise.race([vitest.start([...patterns]), limit.promise]);
  clearTimeout(timer);
  const late = `${projects.join(', ')}: did not end within ${limitMs / 1000} s`;
  const tally =
    ended === 'late'
      ? sum(tallyOf(vitest.state.getTestModules()), { ...nothing, failed: 1, failures: [late] })
      : reporter.tally;
  if (ended === 'late') process.stdout.write(`${late}\n`);
  await Promise.race([vitest.close(), sleep(stopMs)]);
  return tally;
}
