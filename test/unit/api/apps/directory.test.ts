// Where a call of an app goes: to its Service, at the port of the component that has the path, or to the activator.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createDirectory, resolveDestination } from '../../../../api/apps/directory.ts';
import { assignServicePorts } from '../../../../crds/routes.ts';
import type { HostedAppStatus } from '../../../../crds/hosted-app.ts';
import { baseUrl, sampleApp, sampleApps, site } from '../../../support/api/sample.ts';

const settings = JSON.stringify({
  components: [
    { name: 'web', kind: 'web', path: '.' },
    { name: 'api', kind: 'web', path: '.', route: { path: '/api', stripPath: true, morePaths: ['/ws'] } },
  ],
});
const images = ['web', 'api'].map((name) => ({ name, image: `registry.test/apps/hello@sha256:${'a'.repeat(64)}` }));

function find(status: Partial<HostedAppStatus>): ReturnType<typeof resolveDestination>[] {
  const hello = sampleApp('hello');
  const built = { image: images[0]?.image ?? '', commit: 'c', inputsHash: 'i', components: images, settings };
  const served = { image: built.image, commit: built.commit, since: '2026-01-01T00:00:00Z' };
  const live = { phase: 'Live', url: 'https://hello.apps.test/', served, built } as const;
  const { apps } = sampleApps({ ...hello, status: { ...live, ...status } });
  const target = createDirectory({ apps, baseUrl, site }).find('hello');
  assert.ok(target !== undefined, 'it is live');
  return ['/', '/api/users?a=1', '/ws/1'].map((path) => resolveDestination(target, path));
}

test('a call goes to the component that has the path', () => {
  const port = assignServicePorts([{ name: 'api', image: 'i', port: 1, route: { path: '/api', stripPath: true } }]).get(
    'api',
  );
  const [page, api, socket] = find({});
  assert.match(page?.origin ?? '', /^http:\/\/hello\.[a-z-]+\.svc:80$/);
  assert.equal(page?.path, '/');
  assert.ok(api?.origin.endsWith(`.svc:${port ?? 0}`), api?.origin);
  assert.equal(api?.path, '/users?a=1');
  assert.deepEqual(socket, { origin: api.origin, path: '/ws/1' });
});

test('the activator gets the whole path, since it chooses the component itself', () => {
  const [, api] = find({ activated: true });
  assert.match(api?.origin ?? '', /^http:\/\/moorage-activator\.moorage-system\.svc$/);
  assert.equal(api?.path, '/api/users?a=1');
});
