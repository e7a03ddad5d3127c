// The list of languages contradicts neither itself nor the strategies that derive from it.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { build } from '../../../crds/hosted-app.ts';
import { baseImages, plannedLanguages, strategies, unplannedLanguages } from '../../../crds/languages.ts';

test('every language is a strategy of HostedApp, next to auto and dockerfile', () => {
  const names = plannedLanguages.map(({ name }) => name);
  assert.deepEqual(strategies, ['dockerfile', ...names]);
  for (const strategy of ['auto', ...strategies]) assert.equal(build.parse({ strategy }).strategy, strategy);
  for (const name of names) assert.match(name, /^[a-z]{2,20}$/);
});

test('every language has a unique title, and every image a tag', () => {
  const titles = [...plannedLanguages, ...unplannedLanguages].map(({ title }) => title);
  assert.deepEqual([...new Set(titles)], titles);
  for (const image of baseImages) assert.match(image, /^[a-z0-9./-]{1,80}:[a-z0-9._-]{1,40}$/);
  for (const { name, images } of plannedLanguages) assert.ok(images.length > 0, name);
});

/** The sample names that a marker is written for, such as `go.mod`, of those in the texts of the list. */
const files = plannedLanguages.flatMap(({ foundBy, guide }) =>
  [...`${foundBy} ${guide.foundBy ?? ''}`.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file),
);

test('a file marks one language at most', () => {
  const markers = [...plannedLanguages, ...unplannedLanguages].flatMap(({ title, marker }) =>
    marker === undefined ? [] : [{ title, marker }],
  );
  for (const file of files) {
    const titles = markers.filter(({ marker }) => marker.test(file)).map(({ title }) => title);
    assert.ok(titles.length <= 1, `${file}: ${titles.join(', ')}`);
  }
});

test('a language with a marker is found by a file that the marker matches, unless its name is not fixed', () => {
  for (const { title, marker, foundBy } of plannedLanguages) {
    const named = [...foundBy.matchAll(/`([^`]+)`/g)].map(([, file = '']) => file);
    if (marker !== undefined && named.length > 0)
      assert.ok(
        named.some((file) => marker.test(file)),
        title,
      );
  }
});
