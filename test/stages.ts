// The stages of `npm run check` and `npm test`, in order.

export type Stage =
  | {
      readonly kind: 'tools';
      readonly name: string;
      /** Commands that run side by side; each counts as one check. */
      readonly commands: readonly (readonly string[])[];
      readonly gate: boolean;
    }
  | {
      readonly kind: 'tests';
      readonly name: string;
      /** Of vitest.config.ts. */
      readonly project: string;
      readonly limitMs: number;
      /** A failure here makes the later stages pointless. */
      readonly gate: boolean;
    };

const typesAndLint: Stage = {
  kind: 'tools',
  name: 'types and lint',
  commands: [
    ['tsc', '--noEmit'],
    ['eslint', '.'],
  ],
  gate: false,
};
/**
 * Looks again only at files that changed. A rule that needs types may miss what a change elsewhere did; `npm test`
 * looks at all.
 */
const changedOnly = ['--cache', '--cache-strategy', 'content', '--cache-location', 'node_modules/.cache/eslint'];
const quickTypesAndLint: Stage = {
  ...typesAndLint,
  commands: [
    ['tsc', '--noEmit', '--incremental', '--tsBuildInfoFile', 'node_modules/.cache/types'],
    ['eslint', '.', ...changedOnly],
  ],
};
const minutes = 60_000;
const unit: Stage = { kind: 'tests', name: 'unit', project: 'unit', limitMs: 15 * minutes, gate: true };
/** Real binaries on loopback: API server and etcd, registry, BuildKit, network namespaces. */
const integration: Stage = {
  kind: 'tests',
  name: 'integration',
  project: 'integration',
  limitMs: 45 * minutes,
  gate: false,
};
/** Brings the one-machine node up first, and needs nothing else. */
const cluster: Stage = { kind: 'tools', name: 'cluster up', commands: [['node', 'cluster/main.ts', 'up']], gate: true };
const e2e: Stage = { kind: 'tests', name: 'e2e', project: 'e2e', limitMs: 45 * minutes, gate: false };
/** Takes the cluster down, so only where nobody wants to go on using it. */
const last: Stage = { kind: 'tests', name: 'teardown', project: 'teardown', limitMs: 5 * minutes, gate: false };

const sets: Readonly<Record<string, readonly Stage[]>> = {
  check: [quickTypesAndLint, unit],
  unit: [unit],
  integration: [integration],
  e2e: [cluster, e2e],
  test: [typesAndLint, unit, integration, cluster, e2e],
};

/** Stages of a command; with CI set, `test` also proves that `down` leaves nothing. */
export function stages(command: string): readonly Stage[] {
  const set = sets[command];
  if (set === undefined) throw new Error(`no such set of checks: ${command}; one of ${Object.keys(sets).join(', ')}`);
  return command === 'test' && process.env['CI'] !== undefined ? [...set, last] : set;
}
