// When builds wait for disk space, and what is reported then.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { FileSystem, NodeDisks } from '../../../../controller/space/kubelet.ts';
import { present } from '../../../../lib/values.ts';
import { refusalMs, shortageOf } from '../../../../controller/space/shortage.ts';

const gib = 1024 ** 3;
const disk = (free: number, capacity = 100): FileSystem => ({ free: free * gib, capacity: capacity * gib });
const ownOf = ([node, images]: FileSystem[]): NodeDisks['own'] => present({ node, images });
const nodes = (...own: FileSystem[][]): Map<string, NodeDisks> =>
  new Map(
    own.map((each, index) => [`10.0.0.${index}`, { name: `node-${index}`, own: ownOf(each), claims: new Map() }]),
  );
const reserve = { bytes: 5 * gib };

test('a node below the reserve holds builds, with figures and what helps', () => {
  assert.equal(shortageOf({ nodes: nodes([disk(5)]) }, reserve, 0), undefined);
  assert.match(
    shortageOf({ nodes: nodes([disk(2.1)]) }, reserve, 0) ?? '',
    /^the node has 2\.1 GiB free, and 5 GiB are kept free\. Delete apps .*enlarge the disk\.$/,
  );
  assert.match(shortageOf({ nodes: nodes([disk(0.25)]) }, reserve, 0) ?? '', /has 256 MiB free/);
});

test('the file system of images counts as well as that of pods', () => {
  assert.match(shortageOf({ nodes: nodes([disk(50), disk(1)]) }, reserve, 0) ?? '', /has 1 GiB free/);
});

test('a share is one of the disk at hand', () => {
  assert.equal(shortageOf({ nodes: nodes([disk(11)]) }, { share: 0.1 }, 0), undefined);
  assert.match(shortageOf({ nodes: nodes([disk(9)]) }, { share: 0.1 }, 0) ?? '', /9 GiB free, and 10 GiB are kept/);
});

test('one node with space is enough, and where nothing is known, nothing waits', () => {
  assert.equal(shortageOf({ nodes: nodes([disk(1)], [disk(20)]) }, reserve, 0), undefined);
  assert.match(
    shortageOf({ nodes: nodes([disk(1)], [disk(2)]) }, reserve, 0) ?? '',
    /^none of the 2 nodes.* 2 GiB free/,
  );
  assert.equal(shortageOf({ nodes: new Map() }, reserve, 0), undefined);
});

test('the volume of the registry counts where its claim is known', () => {
  const held = new Map([
    ['10.0.0.1', { name: 'a', own: ownOf([disk(50)]), claims: new Map([['registry/data', disk(1, 20)]]) }],
  ]);
  assert.match(
    shortageOf({ nodes: held, registryClaim: 'registry/data' }, reserve, 0) ?? '',
    /^the volume of the registry has 1 GiB free/,
  );
  assert.equal(shortageOf({ nodes: held, registryClaim: 'registry/other' }, reserve, 0), undefined);
});

test('a registry that refused a push is left alone for a while, then tried by one', () => {
  const readings = { nodes: nodes([disk(50)]), refusedAt: 1_000 };
  assert.match(shortageOf(readings, reserve, 2_000) ?? '', /no space left for the last push/);
  assert.equal(shortageOf(readings, reserve, 1_000 + refusalMs), undefined);
});
