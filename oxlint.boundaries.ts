// Import boundaries: cluster → api, controller → crds → lib, and the rooms of the API in the order of docs/architecture.md.
import type { OxlintOverride } from 'oxlint';

const message = (from: string, to: string): string =>
  `${from} may not import from ${to}: imports point down (see docs/architecture.md, "Where things live").`;

/** Top-level rooms, each with those that it may not import from. */
const closed: Readonly<Record<string, readonly string[]>> = {
  lib: ['crds', 'controller', 'activator', 'api', 'cluster', 'charts', 'test'],
  crds: ['controller', 'activator', 'api', 'cluster', 'charts', 'test'],
  controller: ['activator', 'api', 'cluster', 'charts', 'test'],
  activator: ['controller', 'api', 'cluster', 'charts', 'test'],
  api: ['controller', 'activator', 'cluster', 'charts', 'test'],
  charts: ['controller', 'activator', 'api', 'cluster', 'test'],
  cluster: ['test'],
};

/** Rooms of the API: each imports only from those before it. */
const order = [
  'http',
  'billing',
  'models',
  'tools',
  'apps',
  'submit',
  'metering',
  'receipts',
  'revenue',
  'reconciliation',
  'catalog',
  'mcp',
  'a2a',
  'discovery',
  'pages',
];

interface Pattern {
  readonly regex: string;
  readonly message: string;
}

function forbidden(from: string, targets: readonly string[]): Pattern[] {
  return targets.map((to) => ({ regex: `^(\\.\\./)+${to}/`, message: message(from, to) }));
}

function rule(folder: string, patterns: Pattern[]): OxlintOverride {
  return { files: [`${folder}/**/*.ts`], rules: { 'no-restricted-imports': ['error', { patterns }] } };
}

/** A room of the API may leave it by `../` only to an earlier room, and never for the files that wire all of them. */
function apiRoom(room: string, index: number): OxlintOverride {
  const from = `api/${room}`;
  // The engine of the patterns knows no look-ahead: anything that is in a folder, or does not begin with "in".
  const inside = order.slice(0, index).map((earlier) => ({
    regex: `^(\\.\\./)+${earlier}/(.*/|[^i]|i[^n])`,
    message: `${from} may import from ${earlier} only through its index.ts.`,
  }));
  const wiring = { regex: '^(\\.\\./)+(create-api|main|alone)\\.ts$', message: message(from, 'the wiring') };
  return rule(from, [...forbidden(from, [...(closed['api'] ?? []), ...order.slice(index + 1)]), ...inside, wiring]);
}

/** What runs inside a pipeline pod knows nothing of the operator. */
const pipeline = rule(
  'controller/pipeline',
  forbidden('controller/pipeline', [...(closed['controller'] ?? []), 'reconcile', 'steps', 'build-queue', 'objects']),
);

export const boundaries = [
  ...Object.entries(closed).map(([room, targets]) => rule(room, forbidden(room, targets))),
  pipeline,
  ...order.map(apiRoom),
];
