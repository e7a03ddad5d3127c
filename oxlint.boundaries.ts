// Import boundaries: cluster → api, controller → crds → lib, and the rooms of the API in the order of docs/architecture.md.

const message = (from, to) =>
  `${from} may not import from ${to}: imports point down (see docs/architecture.md, "Where things live").`;

/** Top-level rooms, each with those that it may not import from. */
const closed = {
  lib: ['crds', 'controller', 'api', 'cluster', 'charts', 'test'],
  crds: ['controller', 'api', 'cluster', 'charts', 'test'],
  controller: ['api', 'cluster', 'charts', 'test'],
  api: ['controller', 'cluster', 'charts', 'test'],
  charts: ['controller', 'api', 'cluster', 'test'],
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
  'catalog',
  'mcp',
  'a2a',
  'discovery',
  'pages',
];

function rule(files, from, targets) {
  const patterns = targets.map((to) => ({ regex: `^(\\.\\./)+${to}/`, message: message(from, to) }));
  return { files, rules: { 'no-restricted-imports': ['error', { patterns }] } };
}

/** A room of the API may leave it by `../` only to an earlier room, and never for the files that wire all of them. */
function apiRoom(room, index) {
  const later = order.slice(index + 1);
  const wiring = {
    regex: '^(\\.\\./)+(create-api|main|alone)\\.ts$',
    message: message(`api/${room}`, 'the wiring'),
  };
  const config = rule([`api/${room}/**/*.ts`], `api/${room}`, [...closed.api, ...later]);
  config.rules['no-restricted-imports'][1].patterns.push(wiring);
  return config;
}

export const boundaries = [
  ...Object.entries(closed).map(([room, targets]) => rule([`${room}/**/*.ts`], room, targets)),
  ...order.map(apiRoom),
];
