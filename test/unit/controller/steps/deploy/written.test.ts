// What is said of the files that an app writes outside of its volumes, over the life of its containers.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import type { Written } from '../../../../../crds/status.ts';
import { describeLoss, trackWrites } from '../../../../../controller/steps/deploy/written.ts';
import { formatTime, now } from '../../../../support/operator/scenario.ts';

const mebibyte = 1024 * 1024;
const finding: Finding = {
  ...{ rule: 'data/not-lasting', severity: 'warning', file: 'app.py', line: 4, message: 'x', fix: 'y' },
};

/** Measurements: seconds, when the container started, and its bytes. */
function track(
  measured: readonly (readonly [number, number, number])[],
  findings: Finding[] = [],
): Written | undefined {
  return measured.reduce<Written | undefined>(
    (known, [seconds, start, bytes]) =>
      trackWrites(known, new Map([['app', { bytes, startedAt: formatTime(start) }]]), {
        components: ['app'],
        findings,
        now: new Date(now.getTime() + seconds * 1000),
      }),
    undefined,
  );
}

test('takes what is written in the first minute for caches', () => {
  assert.deepEqual(track([[30, 0, 5 * mebibyte]]), { startedAt: formatTime(0), bytes: 5 * mebibyte });
  const settled = track([
    [30, 0, 1],
    [60, 0, 9 * mebibyte],
    [100, 100, 0],
  ]);
  assert.deepEqual(settled, { startedAt: formatTime(100), bytes: 0 });
  assert.equal(describeLoss(settled, []), undefined);
});

test('reports what was written after that and is gone with the container', () => {
  const lost = track([
    [60, 0, mebibyte],
    [600, 0, 4 * mebibyte],
    [700, 650, 0],
  ]);
  assert.deepEqual(lost?.lost, { bytes: 3 * mebibyte, at: formatTime(650) });
  assert.equal(
    describeLoss(lost, []),
    `lost 3 MiB that it had written outside of a volume when it was restarted at ${formatTime(650)}; add the folder of such data to run.volumes in moorage.yaml`,
  );
  assert.equal(
    track([
      [60, 0, 0],
      [90, 0, mebibyte / 2],
      [99, 95, 0],
    ])?.lost,
    undefined,
    'logs and sessions',
  );
});

test('counts a page of SQLite where the code is known to keep data, and names the line', () => {
  const lost = track(
    [
      [60, 0, 0],
      [90, 0, 8192],
      [99, 95, 0],
    ],
    [finding],
  );
  assert.equal(lost?.lost?.bytes, 8192);
  assert.match(describeLoss(lost, [finding]) ?? '', /^lost 8 KiB .* \(see app\.py:4\); add /);
});

test('forgets a loss once a later container loses nothing, and writes no small change', () => {
  const grown = [
    [60, 0, 0],
    [90, 0, 4 * mebibyte],
    [99, 95, 0],
  ] as const;
  assert.equal(track([...grown, [160, 95, 0], [300, 300, 0]])?.lost, undefined);
  assert.equal(
    track([
      [60, 0, 100 * mebibyte],
      [90, 0, 110 * mebibyte],
    ])?.bytes,
    100 * mebibyte,
  );
});

test('ignores an older container that is about to end, and a missing measurement', () => {
  const known = track([[60, 50, 7]]);
  const options = { components: ['app'], findings: [], now };
  const older = new Map([['app', { bytes: 9, startedAt: formatTime(0) }]]);
  assert.deepEqual(trackWrites(known, older, options), known);
  assert.equal(trackWrites(known, undefined, options), known);
  assert.deepEqual(trackWrites(known, new Map(), options), known);
});

test('tracks each component by itself, and names the one whose data was lost', () => {
  const measure = (seconds: number, worker: readonly [number, number], known?: Written): Written | undefined =>
    trackWrites(
      known,
      new Map([
        ['web', { bytes: 10, startedAt: formatTime(0) }],
        ['worker', { startedAt: formatTime(worker[0]), bytes: worker[1] * mebibyte }],
      ]),
      { components: ['web', 'worker'], findings: [], now: new Date(now.getTime() + seconds * 1000) },
    );
  const settled = measure(70, [0, 1]);
  const grown = measure(90, [0, 30], settled);
  const restarted = measure(200, [190, 0], grown);
  assert.equal(restarted?.lost, undefined);
  assert.equal(restarted?.startedAt, formatTime(0));
  assert.deepEqual(restarted.components, [
    { name: 'worker', startedAt: formatTime(190), bytes: 0, lost: { bytes: 29 * mebibyte, at: formatTime(190) } },
  ]);
  assert.match(
    describeLoss(restarted, []) ?? '',
    /^lost 29 MiB that its component worker had written .*; add the folder of such data to volumes of component worker/,
  );
});
