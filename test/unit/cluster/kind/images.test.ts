// Images of a kind cluster: what they are made of is there, at the path at which it is imported.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'vitest';
import { networkSources } from '../../../../cluster/kind/images.ts';
import { paths } from '../../../../cluster/paths.ts';

test("the sources of the node's network exist, and keep their paths in the image", () => {
  for (const [to, from] of Object.entries(networkSources)) {
    assert.ok(existsSync(join(paths.root, 'cluster', from)), from);
    if (to !== 'Dockerfile') assert.equal(to, join('cluster', from));
  }
});
