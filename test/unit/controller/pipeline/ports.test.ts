// Components share one network address, so each gets a port of its own or the app is refused by name.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { toPipelineComponents } from '../../../../controller/pipeline/components.ts';
import { assignPorts, type ImagePort } from '../../../../controller/pipeline/ports.ts';

const components = toPipelineComponents([
  { name: 'web', kind: 'web', path: 'web' },
  { name: 'api', kind: 'web', path: 'api', route: { path: '/api', stripPath: false } },
  { name: 'worker', kind: 'worker', path: 'worker' },
  { name: 'db', kind: 'task', path: '.', image: 'api', command: ['migrate'] },
]);
const assign = (images: Record<string, ImagePort>, list = components): Record<string, number> =>
  Object.fromEntries(assignPorts(list, new Map(Object.entries(images))).ports);
const refuse = (images: Record<string, ImagePort>, list = components): string => {
  const { conflict } = assignPorts(list, new Map(Object.entries(images)));
  return conflict === undefined ? '' : `${conflict.message} ${conflict.fix}`;
};
const planned = (port: number): ImagePort => ({ port, isMovable: true });
const authored = (port?: number): ImagePort => ({ port, isMovable: false });

test('takes the port of the plan or the image, and gives a worker without a port none', () => {
  assert.deepEqual(assign({ web: planned(8080), api: authored(8000), worker: planned(8081) }), {
    web: 8080,
    api: 8000,
  });
  assert.deepEqual(assign({ web: authored(), api: authored(8000) }), { web: 8080, api: 8000 });
});

test('moves planned images that listen on $PORT, the main one last, also away from where a worker may listen', () => {
  assert.deepEqual(assign({ web: planned(8080), api: planned(8080), worker: planned(8081) }), { web: 8080, api: 8082 });
  assert.deepEqual(assign({ web: planned(8080), api: authored(8080), worker: authored(8081) }), {
    api: 8080,
    web: 8082,
  });
});

test('keeps the port that the author sets, and moves others away from it', () => {
  const list = components.map((each) => (each.name === 'worker' ? { ...each, port: 8080 } : each));
  assert.deepEqual(assign({ web: planned(8080), api: authored(80), worker: authored(9) }, list), {
    web: 8081,
    api: 80,
    worker: 8080,
  });
});

test('refuses two images that cannot be moved from one port, and names both', () => {
  const text = refuse({ web: authored(3000), api: authored(3000) });
  assert.match(text, /components web and api both listen on port 3000, .*components\[api\]\.port: 3001/);
  assert.doesNotMatch(text, /assumed/);
  assert.match(refuse({ web: authored(), api: authored(8080) }), /8080 is assumed for web, as no EXPOSE/);
});

test('a second component that runs a planned image gets another port', () => {
  const list = toPipelineComponents([
    { name: 'web', kind: 'web', path: '.' },
    {
      name: 'admin',
      kind: 'web',
      path: '.',
      image: 'web',
      command: ['admin'],
      route: { path: '/admin', stripPath: false },
    },
  ]);
  assert.deepEqual(assign({ web: planned(8080) }, list), { web: 8080, admin: 8081 });
  assert.match(refuse({ web: authored(80) }, list), /web and admin both listen on port 80/);
});
