// What a terminal and a log show of steps in progress.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { Progress, formatElapsed, createLineReporter } from '../../../cli/report.ts';
import type { Step } from '../../../localnode/steps.ts';

const step = (name: string): Step => ({ name, run: () => Promise.resolve(undefined) });
const [compile, modules] = [step('compile kubernetes'), step('modules of runc')];

test('formats elapsed time briefly', () => {
  assert.deepEqual([0, 9_949, 10_000, 59_400, 60_000, 3_599_600].map(formatElapsed), [
    '0.0 s',
    '9.9 s',
    '10 s',
    '59 s',
    '1 min 0 s',
    '60 min 0 s',
  ]);
});

test('a terminal shows each slow step with its latest progress, and the number of finished steps', () => {
  const progress = new Progress(0);
  progress.plan(3);
  progress.start(compile, 1_000);
  progress.start(modules, 2_000);
  assert.deepEqual(progress.formatLive(3_900), []);
  progress.update(compile, '1 of 9 packages: fmt');
  progress.update(compile, '2 of 9 packages: net/http');
  assert.deepEqual(progress.formatLive(4_000), [
    '       4.0 s  …   compile kubernetes                      3.0 s  2 of 9 packages: net/http',
    '       4.0 s      0 of 3 steps done',
  ]);
  progress.end(compile);
  assert.deepEqual(progress.formatLive(64_000), [
    '   1 min 4 s  …   modules of runc                     1 min 2 s',
    '   1 min 4 s      1 of 3 steps done',
  ]);
  progress.end(modules);
  assert.deepEqual(progress.formatLive(70_000), []);
});

test('a log gets a first line soon and then one every half minute', () => {
  const progress = new Progress(0);
  progress.start(compile, 0);
  const lines: string[] = [];
  for (let seconds = 1; seconds <= 70; seconds += 1) {
    progress.update(compile, `${seconds} of 99 packages`);
    lines.push(...progress.formatDue(seconds * 1_000));
  }
  assert.deepEqual(
    lines.map((line) => line.replaceAll(/ +/g, ' ')),
    [
      ' 3.0 s … compile kubernetes 3.0 s 3 of 99 packages',
      ' 33 s … compile kubernetes 33 s 33 of 99 packages',
      ' 1 min 3 s … compile kubernetes 1 min 3 s 63 of 99 packages',
    ],
  );
});

test('a log holds whole lines without control characters, and the error of a failed step', () => {
  let text = '';
  const output = { write: (more: string) => (text += more) !== '' };
  const reporter = createLineReporter(output, () => 0);
  reporter.begin([compile, modules]);
  reporter.reportStart(modules);
  reporter.reportDone(modules, 'fetched', 1_500);
  reporter.reportStart(compile);
  reporter.reportFailure(compile, new Error('no space left'), 2_000);
  reporter.end();
  assert.equal(
    text,
    `       0.0 s  ok  modules of runc                         1.5 s  fetched
       0.0 s  !!  compile kubernetes                      2.0 s
   no space left
`,
  );
});

test('a terminal rewrites its live lines and keeps those of finished steps', async () => {
  let [text, clock] = ['', 0];
  const output = { isTTY: true, columns: 60, rows: 24, write: (more: string) => (text += more) !== '' };
  const reporter = createLineReporter(output, () => clock);
  reporter.begin([compile, modules]);
  reporter.reportStart(compile);
  reporter.reportStart(modules);
  reporter.reportProgress(compile, 'x'.repeat(100));
  clock = 5_000;
  await sleep(1_100);
  reporter.reportDone(modules, 'fetched', 5_000);
  reporter.reportDone(compile, 'compiled', 5_000);
  reporter.end();
  assert.match(text, /0 of 2 steps done/);
  assert.match(text, /1 of 2 steps done/);
  assert.match(text, /ok {2}compile kubernetes/);
  // oxlint-disable-next-line no-control-regex -- what a terminal is sent
  const widths = text.split(/\n|\u001b\[[^a-zA-Z]*[a-zA-Z]/).map(({ length }) => length);
  assert.ok(Math.max(...widths) < 70, 'a live line fits into the terminal');
  // oxlint-disable-next-line no-control-regex -- what a terminal is sent
  assert.match(text, /\u001b\[2K/);
});
