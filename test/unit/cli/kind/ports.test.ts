// The two ports of a kind cluster, which cannot change while it exists.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { decidePorts, readBindings } from '../../../../cli/kind/ports.ts';

const none = { http: undefined, https: undefined };
const published = { http: 8080, https: 8443 };

test('without a cluster the flags count, else the usual ports', () => {
  assert.deepEqual(decidePorts(none, undefined), { http: 80, https: 443 });
  assert.deepEqual(decidePorts({ ...none, https: 8443 }, undefined), { http: 80, https: 8443 });
});

test('a cluster keeps its ports when none are given, or the same', () => {
  assert.deepEqual(decidePorts(none, published), published);
  assert.deepEqual(decidePorts({ ...none, http: 8080 }, published), published);
});

test('other ports than those of the cluster are refused with what to do', () => {
  assert.throws(() => decidePorts({ ...none, https: 443 }, published), /publishes ports 8080 .* 8443 .*npm run down/);
});

test('one port cannot serve both', () => {
  assert.throws(() => decidePorts({ http: 443, https: undefined }, undefined), /cannot share port 443/);
});

test('the ports of a cluster are read from what Docker publishes', () => {
  const text = JSON.stringify({
    '443/tcp': [{ HostIp: '127.0.0.1', HostPort: '8443' }],
    '6443/tcp': [{ HostIp: '127.0.0.1', HostPort: '40001' }],
    '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '8080' }],
  });
  assert.deepEqual(readBindings(text), published);
  assert.equal(readBindings('{"6443/tcp":[{"HostPort":"1"}]}'), undefined);
});
