// Which images of the catalog `up` builds.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { images } from '../../../../localnode/images/catalog.ts';
import { namesOf, selectImages } from '../../../../cli/install/select-images.ts';
import { servicesOnDemand } from '../../../../localnode/images/services.ts';
import { serviceTypes } from '../../../../crds/backing-services.ts';
import { baseImages } from '../../../../controller/pipeline/plan/recipe.ts';
import { UsageError } from '../../../../lib/command-line.ts';

const names = (wanted: readonly string[]): string[] => selectImages(wanted).map((image) => image.name);

test('what the cluster itself is made of is built without being asked for, and nothing else', () => {
  assert.deepEqual(
    names([]),
    images.filter((image) => image.on === undefined).map((image) => image.name),
  );
  assert.ok(!names([]).includes('golang-1.26'));
});

test('an image that is asked for comes with what it starts from, after it', () => {
  const found = names(['maven-17']);
  assert.ok(found.indexOf('java-17-jdk') > found.indexOf('debian-bookworm'));
  assert.ok(found.indexOf('maven-17') > found.indexOf('java-17-jdk'));
  assert.ok(!found.includes('java-17-jre'));
  assert.deepEqual(names(['java']).filter((name) => name.startsWith('java-')).length, 6);
  assert.ok(names(['python-3.12']).includes('ubuntu-noble'));
});

test('all is all, planned is what plans start from, and an unknown name is refused with those that there are', () => {
  assert.equal(names(['all']).length, images.filter(({ on }) => on !== 'tools').length);
  const planned = names(['planned']);
  assert.ok(planned.includes('golang-1.26') && planned.includes('ruby-3.1') && !planned.includes('bun-1.1.29'));
  assert.throws(
    () => names(['golang', 'cobol']),
    (error) => error instanceof UsageError && /no "cobol".*deno/.test(error.message),
  );
});

test('every base image of the planner is in the catalog, once', () => {
  const tags = images.flatMap((image) => namesOf(image));
  assert.deepEqual(
    tags.filter((tag, index) => tags.indexOf(tag) !== index),
    [],
  );
  for (const image of baseImages) assert.ok(tags.includes(image), image);
});

test('an image of a service is called like the type of the service, by which it is offered', () => {
  for (const { name } of servicesOnDemand) assert.ok((serviceTypes as readonly string[]).includes(name), name);
});

test('every image comes after those that it starts from', () => {
  for (const [index, image] of images.entries())
    for (const base of image.bases) assert.ok(images.findIndex((each) => each.name === base) < index, image.name);
});
