// Test projects: unit, integration, e2e with e2e-quiet and e2e-alone after it, and teardown, which takes the cluster down.
import { join } from 'node:path';
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config';
import { LongestFirst } from './test/sequence.ts';
import { deepLimitMs, isDeep } from './test/support/repetitions.ts';

// Compiled code that is kept halves the time in which the processes of tests, and those that they start, come up. It has
// not the positions that coverage needs.
if (!process.argv.includes('--coverage'))
  process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, 'node_modules/.cache/moorage/compiled');

const list = (...names: readonly string[]): string[] => names.map((name) => `test/e2e/${name}.test.ts`);
/** Two send requests all the time, the third kills the workers of tools; they do not disturb each other. */
const quiet = list('rollout', 'swap', 'workers');
/** They stop, restart or crash what all the others use. */
const alone = list('absence', 'resilience');

const databaseSnapshot = 'test/support/ledger/snapshot.ts';

interface Project {
  readonly name: string;
  readonly include: readonly string[];
  readonly exclude?: readonly string[];
  readonly seconds: number;
  /** Files at once. */
  readonly maxWorkers: number;
  /** Those of a lower group come first; two projects of one group share workers. */
  readonly group: number;
  /** Whether each file has a process of its own. */
  readonly isolate?: boolean;
  /** Modules that run before the files, and after them. */
  readonly globalSetup?: readonly string[];
}

function project({
  name,
  include,
  exclude,
  seconds,
  maxWorkers,
  group,
  isolate = true,
  globalSetup = [],
}: Project): TestProjectInlineConfiguration {
  return {
    test: {
      name,
      include: [...include],
      ...(exclude === undefined ? {} : { exclude: [...exclude] }),
      testTimeout: isDeep ? deepLimitMs : seconds * 1000,
      hookTimeout: Math.max(seconds, 180) * 1000,
      pool: 'forks',
      isolate,
      maxWorkers,
      // In the order in which they are written, as a reader expects.
      sequence: { hooks: 'list', groupOrder: group },
      globalSetup: [...globalSetup],
      setupFiles: ['test/support/compile-cache.ts'],
      /** Node itself imports the files: stack traces, import.meta, workers and child processes are those of production. */
      experimental: { viteModuleRunner: false, nodeLoader: false },
    },
  };
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongestFirst },
    projects: [
      project({
        name: 'unit',
        include: ['test/unit/**/*.test.ts'],
        seconds: 60,
        maxWorkers: 3,
        group: 0,
        isolate: false,
        globalSetup: [databaseSnapshot],
      }),
      project({
        name: 'integration',
        include: ['test/integration/**/*.test.ts'],
        seconds: 600,
        maxWorkers: 3,
        group: 1,
        // A file that begins in a process that has run others finds the modules loaded, which takes two thirds of a second.
        isolate: false,
        globalSetup: [databaseSnapshot, 'test/support/servers/shared-servers.ts'],
      }),
      project({
        name: 'e2e',
        include: ['test/e2e/**/*.test.ts'],
        exclude: ['test/e2e/last/**', ...quiet, ...alone],
        seconds: 1200,
        // They wait for the cluster most of the time, so more than there are cores.
        maxWorkers: 5,
        group: 2,
      }),
      project({ name: 'e2e-quiet', include: quiet, seconds: 1200, maxWorkers: 3, group: 3 }),
      project({ name: 'e2e-alone', include: alone, seconds: 1200, maxWorkers: 1, group: 4 }),
      project({ name: 'teardown', include: ['test/e2e/last/**/*.test.ts'], seconds: 300, maxWorkers: 1, group: 5 }),
    ],
    coverage: {
      provider: 'v8',
      include: [
        'api/**/*.ts',
        'controller/**/*.ts',
        'crds/**/*.ts',
        'lib/**/*.ts',
        'cli/**/*.ts',
        'localnode/**/*.ts',
        'charts/**/*.ts',
      ],
      reporter: ['text-summary', 'html'],
    },
  },
});
