// What the registry proxy lets a build do: all of its own repositories, reading of base images, nothing of others.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { judgeRequest } from '../../../../controller/registry-proxy/access.ts';

const app = { name: 'hello', uid: '0a1b2c3d-0000-4000-8000-000000000000' };
const own = `/v2/apps/hello.${app.uid}`;
const cache = `/v2/cache/hello.${app.uid}`;
const digest = `sha256:${'a'.repeat(64)}`;
const status = (method: string, url: string, mirrors = true): number => {
  const decision = judgeRequest(method, url, { ...app, purpose: 'push' }, mirrors);
  return 'refused' in decision ? decision.status : 200;
};

test('lets an app read and write its own image and cache', () => {
  for (const repository of [own, cache]) {
    for (const [method, path] of [
      ['HEAD', `/manifests/${digest}`],
      ['GET', '/manifests/latest'],
      ['PUT', '/manifests/latest'],
      ['PUT', `/manifests/${digest}`],
      ['HEAD', `/blobs/${digest}`],
      ['GET', `/blobs/${digest}`],
      ['POST', '/blobs/uploads/'],
      ['PUT', `/blobs/uploads/L3Yy.bWFj?digest=${digest}`],
      ['PATCH', '/blobs/uploads/L3Yy.bWFj'],
      ['DELETE', '/blobs/uploads/L3Yy.bWFj'],
    ] as const)
      assert.equal(status(method, `${repository}${path}`), 200, `${method} ${path}`);
  }
});

test('lets a build remove nothing, and the operator only list manifests and remove them by digest', () => {
  const prune = (method: string, url: string): number => {
    const decision = judgeRequest(method, url, { ...app, purpose: 'prune' }, true);
    return 'refused' in decision ? decision.status : 200;
  };
  for (const repository of [own, cache]) {
    assert.equal(status('DELETE', `${repository}/manifests/${digest}`), 405);
    assert.equal(status('DELETE', `${repository}/blobs/${digest}`), 405);
    for (const [method, path, expected] of [
      ['GET', '/tags/list', 200],
      ['GET', '/manifests/build-1', 200],
      ['HEAD', `/manifests/${digest}`, 200],
      ['DELETE', `/manifests/${digest}`, 200],
      ['DELETE', '/manifests/build-1', 405],
      ['PUT', '/manifests/build-1', 405],
      ['POST', '/blobs/uploads/', 405],
      ['GET', `/blobs/${digest}`, 405],
      ['DELETE', `/blobs/${digest}`, 405],
    ] as const)
      assert.equal(prune(method, `${repository}${path}`), expected, `${method} ${path}`);
  }
  assert.equal(prune('DELETE', `/v2/apps/other.${app.uid}/manifests/${digest}`), 403);
  assert.equal(prune('DELETE', `/v2/library/python/manifests/${digest}`), 403);
  assert.equal(prune('GET', '/v2/library/python/manifests/3.13'), 403);
});

test('denies repositories of other apps, of a namesake and of the platform', () => {
  for (const repository of [
    `/v2/apps/other.${app.uid}`,
    `/v2/apps/hello.${app.uid.replace('0a', '0b')}`,
    '/v2/apps/hello',
    `/v2/cache/other.${app.uid}`,
    '/v2/moorage/moorage',
  ]) {
    for (const method of ['GET', 'HEAD', 'PUT'])
      assert.equal(status(method, `${repository}/manifests/${digest}`), 403, `${method} ${repository}`);
    assert.equal(status('GET', `${repository}/blobs/${digest}`), 403);
    assert.equal(status('POST', `${repository}/blobs/uploads/`), 403);
    assert.equal(status('GET', `${repository}/tags/list`), 403);
  }
});

test('allows reading base images where the registry mirrors Docker Hub, but never writing them', () => {
  assert.equal(status('GET', '/v2/library/python/manifests/3.13'), 200);
  assert.equal(status('GET', '/v2/library/python/manifests/3.13', false), 403);
  assert.equal(status('PUT', '/v2/library/python/manifests/3.13'), 403);
  assert.equal(status('POST', '/v2/library/python/blobs/uploads/'), 403);
});

test('rejects other spellings and anything that is not a request of the distribution API', () => {
  for (const path of [
    '/v2/_catalog',
    `${own}/../../../v2/apps/other.${app.uid}/manifests/${digest}`,
    `/v2/apps/hello.${app.uid}%2f..%2fother/manifests/${digest}`,
    `/v2/apps//hello.${app.uid}/manifests/${digest}`,
    `/v2/apps/hello.${app.uid}/manifests/${digest}/`,
    `/v2/Apps/hello.${app.uid}/manifests/${digest}`,
    `//v2/apps/hello.${app.uid}/manifests/${digest}`,
    `http://registry.test/v2/apps/other.${app.uid}/manifests/${digest}`,
    '/metrics',
    '/debug/vars',
  ])
    assert.equal(status('GET', path), 404, path);
  for (const [method, path] of [
    ['DELETE', `${own}/manifests/${digest}`],
    ['DELETE', `${own}/blobs/${digest}`],
    ['PUT', `${own}/blobs/uploads/`],
    ['POST', `${own}/blobs/uploads/L3Yy.bWFj`],
    ['CONNECT', `${own}/manifests/latest`],
  ] as const)
    assert.equal(status(method, path), 405, `${method} ${path}`);
});

test('does not mount a layer from another repository: the upload starts without it', () => {
  const queryOf = (query: string): string => {
    const decision = judgeRequest('POST', `${own}/blobs/uploads/?${query}`, { ...app, purpose: 'push' }, true);
    return 'allowed' in decision ? decision.allowed.query.toString() : assert.fail(decision.refused);
  };
  const mine = `mount=${encodeURIComponent(digest)}&from=${encodeURIComponent(cache.slice('/v2/'.length))}`;
  assert.equal(queryOf(mine), mine);
  assert.equal(queryOf(`mount=${digest}&from=apps/other.${app.uid}`), '');
  assert.equal(queryOf(`mount=${digest}`), '');
  assert.equal(queryOf(`${mine}&from=apps/other.${app.uid}`), '');
});
