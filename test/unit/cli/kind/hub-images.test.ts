// The images that `npm run test:kind` makes where Docker Hub is out of reach.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { namesOf } from '../../../../cli/install/select-images.ts';
import { seeds } from '../../../../cli/kind/versions.ts';
import { hubImages } from '../../../kind/hub-images.ts';

test('all that `up` puts into the registry is made, each after what it starts from', () => {
  const names = hubImages().flatMap(namesOf);
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
