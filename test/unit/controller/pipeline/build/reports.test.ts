// What planned steps report about themselves, read from the log.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { StepReports } from '../../../../../controller/pipeline/build/build-log.ts';

function read(log: string, size = log.length): ReturnType<typeof summary> {
  const reports = new StepReports();
  for (let at = 0; at < log.length; at += size) reports.add(Buffer.from(log.slice(at, at + size)));
  return summary(reports);
}

const summary = (reports: StepReports): (readonly [string, string, string | undefined])[] =>
  reports.findings.map(({ rule, severity, file }) => [rule, severity, file] as const);

const log =
  '#9 [build 4/6] RUN npm ci || { echo "moorage-warning: lockfile package-lock.json"; npm install; }\n#9 12.5 npm error Missing: a@1\n#9 12.6 moorage-warning: lockfile package-lock.json\n#9 20.1 added 3 packages\n';

test('converts a report to a warning, in whatever chunks the log arrives', () => {
  const expected = [['build/lockfile', 'warning', 'package-lock.json']];
  for (const size of [1, 7, log.length]) assert.deepEqual(read(log, size), expected);
});

test('converts each report once, and only from a line that is one', () => {
  assert.equal(read(log + log).length, 1);
  for (const other of [
    'moorage-warning: lockfile a\n',
    '#9 1.0 x moorage-warning: lockfile a\n',
    '#9 1.0 moorage-warning: own words\n',
    '#9 1.0 moorage-warning: constructor a\n',
    '#9 1.0 moorage-warning: lockfile a b\n',
  ])
    assert.deepEqual(read(other), [], other);
});
