// Import boundaries: cli → localnode and api, controller → crds → lib, and the rooms of the API in the order of docs/architecture.md.
import type { OxlintOverride } from 'oxlint';

const message = (from: string, to: string): string =>
  `${from} may not import from ${to}: imports point down (see docs/architecture.md, "Where things live").`;

/** Top-level rooms, each with those that it may not import from. */
const closed: Readonly<Record<string, readonly string[]>> = {
  lib: ['crds', 'controller', 'activator', 'api', 'localnode', 'cli', 'charts', 'test'],
  crds: ['controller', 'activator', 'api', 'localnode', 'cli', 'charts', 'test'],
  controller: ['activator', 'api', 'localnode', 'cli', 'charts', 'test'],
  activator: ['controller', 'api', 'localnode', 'cli', 'charts', 'test'],
  api: ['controller', 'activator', 'localnode', 'cli', 'charts', 'test'],
  // Its values and the environments of its pods come from the settings of the processes.
  charts: ['localnode', 'cli', 'test'],
  // A product of its own: it could move to another repository with `lib`.
  localnode: ['crds', 'controller', 'activator', 'api', 'cli', 'charts', 'test'],
  cli: ['activator', 'test'],
};

/** Rooms of the API: each imports only from those before it. */
const order = ['http', 'billing', 'models', 'tools', 'apps', 'accounting', 'catalog', 'protocols', 'pages'];

/** Rooms that consist of rooms, in the order of those: each imports only from those before it in the same room. */
const inner: Readonly<Record<string, readonly string[]>> = {
  accounting: ['metering', 'receipts', 'revenue', 'reconciliation'],
  protocols: ['mcp', 'a2a', 'discovery'],
};

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

/** The engine of the patterns knows no look-ahead: anything that is in a folder, or does not begin with "in". */
function throughIndex(from: string, rooms: readonly string[]): Pattern[] {
  return rooms.map((room) => ({
    regex: `^(\\.\\./)+${room}/(.*/|[^i]|i[^n])`,
    message: `${from} may import from ${room} only through its index.ts.`,
  }));
}

/** A room of the API may leave it by `../` only to an earlier room, and never for the files that wire all of them. */
function roomPatterns(from: string, index: number): Pattern[] {
  const wiring = { regex: '^(\\.\\./)+(create-api|main|alone)\\.ts$', message: message(from, 'the wiring') };
  return [
    ...forbidden(from, [...(closed['api'] ?? []), ...order.slice(index + 1)]),
    ...throughIndex(from, order.slice(0, index)),
    wiring,
  ];
}

/** The later of two rules for a file replaces the earlier, so a room within a room repeats those of the outer one. */
function apiRoom(room: string, index: number): OxlintOverride[] {
  const from = `api/${room}`;
  const rooms = inner[room] ?? [];
  return [
    rule(from, roomPatterns(from, index)),
    ...rooms.map((each, place) => {
      const path = `${from}/${each}`;
      return rule(path, [
        ...roomPatterns(path, index),
        ...forbidden(path, rooms.slice(place + 1)),
        ...throughIndex(path, rooms.slice(0, place)),
      ]);
    }),
  ];
}

/** What runs inside a pipeline pod knows nothing of the operator. */
const pipeline = rule(
  'controller/pipeline',
  forbidden('controller/pipeline', [...(closed['controller'] ?? []), 'reconcile', 'steps', 'build-queue', 'objects']),
);

export const boundaries = [
  ...Object.entries(closed).map(([room, targets]) => rule(room, forbidden(room, targets))),
  pipeline,
  ...order.flatMap(apiRoom),
];
