// The image maker of the one-machine node: one image at a time, reported to every app that needs it.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { ImageMaker, listWithBases } from '../../../../cli/node/image-maker.ts';
import type { PreparedImage } from '../../../../controller/steps/prepared-images.ts';
import { getImage } from '../../../../localnode/images/build.ts';

const image = 'golang:1.26-bookworm';
const digest = `sha256:${'b'.repeat(64)}`;
const needed = [{ image, since: '2026-01-01T12:00:00Z' }];
const now = (): Date => new Date('2026-01-01T12:00:01.500Z');
const ask = (maker: ImageMaker, reports: PreparedImage[] = []): PreparedImage | undefined =>
  maker.answer({ needed, reports })[0];

test('makes an image once, however many apps need it, and reports what it is doing', async () => {
  const made: string[] = [];
  const paused = Promise.withResolvers<undefined>();
  const maker = new ImageMaker({
    now,
    make: async ({ name }, report) => {
      made.push(name);
      report('[build 2/3] RUN install');
      await paused.promise;
      return digest;
    },
  });
  assert.match(ask(maker)?.message ?? '', /^about \d+ minutes?$/);
  await new Promise(setImmediate);
  assert.match(ask(maker)?.message ?? '', /^about \d+ minutes?; now \[build 2\/3\] RUN install$/);
  paused.resolve(undefined);
  await maker.drain();
  assert.deepEqual(ask(maker), { image, state: 'Ready', digest, at: '2026-01-01T12:00:01Z' });
  assert.deepEqual(made, ['golang-1.26']);
});

test('makes images one after the other', async () => {
  const events: string[] = [];
  const maker = new ImageMaker({
    now,
    make: async ({ name }) => {
      events.push(`begin ${name}`);
      await new Promise(setImmediate);
      events.push(`end ${name}`);
      return digest;
    },
  });
  maker.answer({ needed: [...needed, { image: 'mysql:8.4', since: needed[0]?.since ?? '' }], reports: [] });
  await maker.drain();
  assert.deepEqual(events, ['begin golang-1.26', 'end golang-1.26', 'begin mysql', 'end mysql']);
});

test('keeps a report that still holds, and makes the image again for a later need', async () => {
  let count = 0;
  const maker = new ImageMaker({
    now,
    make: () => {
      count += 1;
      return Promise.resolve(digest);
    },
  });
  const ready: PreparedImage = { image, state: 'Ready', digest, at: '2026-01-01T12:00:00Z' };
  assert.deepEqual(ask(maker, [ready]), ready);
  assert.equal(count, 0);
  assert.equal(ask(maker, [{ ...ready, at: '2026-01-01T11:59:59Z' }])?.state, 'Preparing');
  await maker.drain();
  assert.equal(count, 1);
});

test('reports why an image cannot be made, and tries it again after ten minutes', async () => {
  let time = now().getTime();
  let count = 0;
  const maker = new ImageMaker({
    now: () => new Date(time),
    make: () => {
      count += 1;
      return Promise.reject(new Error('no space is left'));
    },
  });
  ask(maker);
  await maker.drain();
  assert.deepEqual([ask(maker)?.state, ask(maker)?.message, count], ['Failed', 'no space is left', 1]);
  time += 11 * 60_000;
  assert.equal(ask(maker)?.state, 'Preparing');
  await maker.drain();
  assert.equal(count, 2);
});

test('refuses an image that the node has no recipe for', () => {
  const maker = new ImageMaker({ make: () => Promise.resolve(digest), now });
  const [answer] = maker.answer({ needed: [{ image: 'evil.example/miner:1', since: '' }], reports: [] });
  assert.equal(answer?.state, 'Failed');
  assert.match(answer.message ?? '', /no recipe/);
});

test('makes base images first', () => {
  const names = listWithBases(getImage('maven-21')).map(({ name }) => name);
  assert.equal(names.at(-1), 'maven-21');
  assert.ok(names.indexOf('java-21-jdk') < names.indexOf('maven-21') && names.includes('java-21-jdk'));
});
