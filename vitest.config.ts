// Test projects: unit, integration, e2e, and teardown, which takes the cluster down.
import { defineConfig } from 'vitest/config';

const common = {
  /** Files are imported by Node itself: stack traces, import.meta and child processes are those of production. */
  experimental: { viteModuleRunner: false, nodeLoader: false },
  pool: 'forks' as const,
  sequence: { hooks: 'list' as const },
};

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...common,
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          ...common,
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          ...common,
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          exclude: ['test/e2e/last/**'],
          testTimeout: 1_200_000,
          hookTimeout: 1_200_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          ...common,
          name: 'teardown',
          include: ['test/e2e/last/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 300_000,
        },
      },
    ],
  },
});
