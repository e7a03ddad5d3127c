// Which images of the catalog `up` builds.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { baseImages } from '../../../../crds/languages.ts';
import { images, servicesOnDemand } from '../../../../localnode/images/catalog.ts';
import { listNames, selectImages } from '../../../../cli/install/product.ts';
import { findNeededImages } from '../../../../localnode/node/up.ts';
import type { Step } from '../../../../localnode/steps.ts';
import { serviceTypes } from '../../../../crds/backing-services.ts';
import { UsageError } from '../../../../lib/command-line.ts';

const names = (wanted: readonly string[]): string[] => selectImages(wanted).map((image) => image.name);

test("builds the cluster's own images and nothing else by default", () => {
  assert.deepEqual(
    names([]),
    images.filter((image) => image.on === undefined).map((image) => image.name),
  );
  assert.ok(!names([]).includes('golang-1.26'));
});

test('images that no step needs are built once the first app is live', () => {
  const createStep = (needs: readonly string[]): Step => ({ name: 's', needs, run: () => Promise.resolve(undefined) });
  const steps = [createStep(['image git-server']), createStep(['compile helm', 'image postgres'])];
  const found = findNeededImages(steps, selectImages([])).map(({ name }) => name);
  assert.deepEqual(found, ['debian-bookworm', 'debian-trixie', 'node-24', 'postgres', 'git-server']);
});

test('a requested image comes after its base images', () => {
  const found = names(['maven-17']);
  assert.ok(found.indexOf('java-17-jdk') > found.indexOf('debian-bookworm'));
  assert.ok(found.indexOf('maven-17') > found.indexOf('java-17-jdk'));
  assert.ok(!found.includes('java-17-jre'));
  assert.deepEqual(names(['java']).filter((name) => name.startsWith('java-')).length, 6);
  assert.ok(names(['python-3.12']).includes('ubuntu-noble'));
});

test('selects all or planned images, and rejects an unknown name with the known ones', () => {
  assert.equal(names(['all']).length, images.filter(({ on }) => on !== 'tools').length);
  const planned = names(['planned']);
  assert.ok(planned.includes('golang-1.26') && planned.includes('ruby-3.1') && !planned.includes('bun-1.1.29'));
  assert.throws(
    () => names(['golang', 'cobol']),
    (error) => error instanceof UsageError && /no "cobol".*deno/.test(error.message),
  );
});

test('every base image of the planner is in the catalog, once', () => {
  const tags = images.flatMap((image) => listNames(image));
  assert.deepEqual(
    tags.filter((tag, index) => tags.indexOf(tag) !== index),
    [],
  );
  for (const image of baseImages) assert.ok(tags.includes(image), image);
});

test('an image of a service has the name of the service type', () => {
  for (const { name } of servicesOnDemand) assert.ok((serviceTypes as readonly string[]).includes(name), name);
});

test('every image comes after its base images', () => {
  for (const [index, image] of images.entries())
    for (const base of image.bases) assert.ok(images.findIndex((each) => each.name === base) < index, image.name);
});
