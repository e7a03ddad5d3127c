// Merkle trees against the known answers of Certificate Transparency, and proofs in trees of every size.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'vitest';
import {
  computePath,
  computeRoot,
  computeRootFromPath,
  emptyRoot,
  hashLeafText,
  tileSize,
  TreeBuilder,
} from '../../../../../../api/accounting/receipts/format/hashes.ts';

/** Leaves and roots of the reference tests of Certificate Transparency (merkletree, reference hashes). */
const inputs = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
const roots = [
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
];
/** A leaf of bytes that are no text. */
const leafOf = (hex: string): Buffer =>
  createHash('sha256')
    .update(Buffer.from(`00${hex}`, 'hex'))
    .digest();

test('roots are those of RFC 6962', () => {
  assert.equal(emptyRoot.toString('hex'), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  assert.equal(computeRoot([]), emptyRoot);
  for (const [index, root] of roots.entries())
    assert.equal(computeRoot(inputs.slice(0, index + 1).map(leafOf)).toString('hex'), root);
  assert.equal(hashLeafText('').toString('hex'), roots[0]);
  assert.deepEqual(hashLeafText('@ABC'), leafOf('40414243'));
});

test('a path is that of RFC 6962', () => {
  const leaves = inputs.map(leafOf);
  assert.deepEqual(
    computePath(0, leaves).map((hash) => hash.toString('hex')),
    [
      '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
      '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
      '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
    ],
  );
});

test('each leaf of trees of up to 70 leads to their root, at no other position and by no other path', () => {
  const leaves = Array.from({ length: 70 }, (_, index) => hashLeafText(String(index)));
  for (let size = 1; size <= leaves.length; size += 1) {
    const tree = leaves.slice(0, size);
    const root = computeRoot(tree);
    for (const [index, leaf] of tree.entries()) {
      const path = computePath(index, tree);
      assert.deepEqual(computeRootFromPath(leaf, index, size, path), root);
      for (let other = -1; other <= size; other += 1)
        if (other !== index) assert.notDeepEqual(computeRootFromPath(leaf, other, size, path), root);
      assert.notDeepEqual(computeRootFromPath(leaf, index, size, [...path, leaf]), root);
      if (size > 1) assert.notDeepEqual(computeRootFromPath(leaf, index, size, path.slice(1)), root);
    }
  }
});

test('a tree of tiles has the root of the tree of leaves', () => {
  for (const size of [0, 1, tileSize - 1, tileSize, tileSize + 1, 2 * tileSize, 3 * tileSize, 5 * tileSize + 7]) {
    const leaves = Array.from({ length: size }, (_, index) => hashLeafText(String(index)));
    const tree = new TreeBuilder();
    for (const leaf of leaves) tree.add(leaf);
    assert.deepEqual(computeRoot(tree.computeTiles()), computeRoot(leaves));
    const index = size - 1;
    if (size === 0) continue;
    const below = leaves.slice(index - (index % tileSize), size);
    const path = [
      ...computePath(index % tileSize, below),
      ...computePath(Math.floor(index / tileSize), tree.computeTiles()),
    ];
    assert.deepEqual(path, computePath(index, leaves));
  }
});
