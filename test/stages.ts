// The stages of `npm run check` and `npm test`, in order.

export interface ToolStage {
  readonly kind: 'tools';
  readonly name: string;
  /** Commands that run side by side; each counts as one check. */
  readonly commands: readonly (readonly string[])[];
  /** A failure here makes the later stages pointless. */
  readonly gate: boolean;
}

export interface TestStage {
  readonly kind: 'tests';
  readonly name: string;
  /** Of vitest.config.ts. */
  readonly projects: readonly string[];
  /** Only the files whose path has one of these in it. */
  readonly patterns?: readonly string[];
  readonly onlyRelated?: boolean;
  readonly limitMs: number;
  readonly gate: boolean;
}

export type Stage = ToolStage | TestStage;

const format = ['prettier', '--check', '--log-level', 'warn'];
const sources: ToolStage = {
  kind: 'tools',
  name: 'types, lint and format',
  commands: [['node', 'test/cached-checks.ts', 'types'], ['oxlint'], ['node', 'test/cached-checks.ts', 'format']],
  gate: false,
};
/** Runs a command on the files that changed since the last commit and whose name fits; on none, not at all. */
function onChanged(name: string, command: readonly string[]): string[] {
  const files = 'git diff --name-only --diff-filter=d HEAD; git ls-files --others --exclude-standard';
  return ['sh', '-c', `(${files}) | grep -E '${name}' | xargs -r ${command.join(' ')}`];
}
/** `npm run check` takes what changed since the last commit; `npm test` takes everything. */
const changedSources: ToolStage = {
  ...sources,
  commands: [
    ['tsc', '--noEmit', '--incremental', '--tsBuildInfoFile', 'node_modules/.cache/types'],
    onChanged(String.raw`\.ts$`, ['oxlint']),
    onChanged('.', [...format, '--ignore-unknown']),
  ],
};

const minutes = 60_000;
const unit: TestStage = { kind: 'tests', name: 'unit', projects: ['unit'], limitMs: 15 * minutes, gate: true };
const relatedUnit: TestStage = { ...unit, name: 'unit tests of what changed', onlyRelated: true };
/** They read files of the tree, so no import says which change concerns them. */
const treeUnit: TestStage = {
  ...unit,
  name: 'unit tests of the tree',
  patterns: [
    ...['docs/', 'charts/', 'crds/', 'requirements', 'sequence'],
    ...['api/protocols/discovery/problem-types', 'api/pages/pages', 'controller/reconcile/outcome'],
  ].map((path) => `test/unit/${path}`),
};
/** Real binaries on loopback: API server and etcd, registry, BuildKit, network namespaces. */
const integration: TestStage = {
  kind: 'tests',
  name: 'integration',
  projects: ['integration'],
  limitMs: 45 * minutes,
  gate: false,
};
/** Brings the one-machine node up first, and needs nothing else. */
const cluster: ToolStage = {
  kind: 'tools',
  name: 'cluster up',
  commands: [['node', 'cli/main.ts', 'up']],
  gate: true,
};
const e2e: TestStage = {
  kind: 'tests',
  name: 'e2e',
  projects: ['e2e', 'e2e-quiet', 'e2e-alone'],
  limitMs: 45 * minutes,
  gate: false,
};
/** Takes the cluster down, so only where nobody wants to go on using it. */
const last: TestStage = { kind: 'tests', name: 'teardown', projects: ['teardown'], limitMs: 5 * minutes, gate: false };

/** Those of one group run side by side. */
const sets: Readonly<Record<string, readonly (readonly Stage[])[]>> = {
  check: [[changedSources, relatedUnit], [treeUnit]],
  unit: [[unit]],
  integration: [[integration]],
  e2e: [[cluster], [e2e]],
  // One after another: unit tests have limits of time of their own, and end-to-end tests would take the processors from
  // integration tests, since all pods together weigh as much as eight processes.
  test: [[sources], [unit], [integration], [cluster], [e2e]],
};

/** Stages of a command; with CI set, `test` also proves that `down` leaves nothing. */
export function stages(command: string): readonly (readonly Stage[])[] {
  const set = sets[command];
  if (set === undefined) throw new Error(`no such set of checks: ${command}; one of ${Object.keys(sets).join(', ')}`);
  return command === 'test' && process.env['CI'] !== undefined ? [...set, [last]] : set;
}
