// The ports of a kind cluster, which cannot change while it exists, and its images without Docker Hub.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { decidePorts, readBindings, seeds } from '../../../../cli/kind/docker.ts';
import { listNames } from '../../../../cli/install/product.ts';
import { hubImages } from '../../../kind/hub-images.ts';

const none = { http: undefined, https: undefined };
const published = { http: 8080, https: 8443 };

test('uses the flags or the default ports without a cluster', () => {
  assert.deepEqual(decidePorts(none, undefined), { http: 80, https: 443 });
  assert.deepEqual(decidePorts({ ...none, https: 8443 }, undefined), { http: 80, https: 8443 });
});

test('a cluster keeps its ports if none or the same are given', () => {
  assert.deepEqual(decidePorts(none, published), published);
  assert.deepEqual(decidePorts({ ...none, http: 8080 }, published), published);
});

test('rejects ports other than those of the cluster, with what to do', () => {
  assert.throws(() => decidePorts({ ...none, https: 443 }, published), /publishes ports 8080 .* 8443 .*npm run down/);
});

test('rejects one port for both protocols', () => {
  assert.throws(() => decidePorts({ http: 443, https: undefined }, undefined), /cannot share port 443/);
});

test("reads the ports of a cluster from Docker's bindings", () => {
  const text = JSON.stringify({
    '443/tcp': [{ HostIp: '127.0.0.1', HostPort: '8443' }],
    '6443/tcp': [{ HostIp: '127.0.0.1', HostPort: '40001' }],
    '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '8080' }],
  });
  assert.deepEqual(readBindings(text), published);
  assert.equal(readBindings('{"6443/tcp":[{"HostPort":"1"}]}'), undefined);
});

test('builds every image that `up` puts into the registry, each after its base images', () => {
  const names = hubImages().flatMap(listNames);
  assert.deepEqual(
    seeds.filter((seed) => !names.includes(seed)),
    [],
  );
  const made = new Set<string>();
  for (const { name, bases } of hubImages()) {
    for (const base of bases) assert.ok(made.has(base), `${name} comes before ${base}`);
    made.add(name);
  }
});
