// The whole terminal output of a submission.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createOutput, type Output } from '../../../../cli/submit/output.ts';
import type { Reason, Status } from '../../../../cli/submit/api-client.ts';

function recorded(): { output: Output; lines: string[] } {
  const lines: string[] = [];
  let clock = 0;
  return {
    lines,
    output: createOutput(
      (line) => {
        lines.push(line);
      },
      () => {
        clock += 1_200;
        return clock;
      },
    ),
  };
}

const status: Status = {
  status: 'live',
  message: 'It answers.',
  slug: 'hello',
  url: 'https://hello.test',
  status_url: 's',
  log_url: 'l',
};
const reason: Reason = {
  rule: 'secrets/aws',
  file: 'a/b.py',
  line: 3,
  message: 'A key is in it',
  fix: 'Take it out.\nRevoke it.',
  log: 'one\n\u001b[31mtwo\u001b[0m\n',
};

test('says once what a stage waits for', () => {
  const { output, lines } = recorded();
  const wait = 'Waiting for the image golang:1.26, which this installation makes on first use: about 1 minute';
  for (const message of [
    'Building the image.',
    `Building the image. ${wait}. The app will be live at https://hello.test/`,
    `Building the image. ${wait}; now [2/3] RUN tar -x.`,
    'Building the image.',
  ])
    output.writeEvent({ type: 'stage', status: 'in_pipeline', stage: 'building', position: undefined, message });
  assert.deepEqual(lines, ['     1.2 s  building', `     2.4 s  ${wait}`]);
});

test('to live', () => {
  const { output, lines } = recorded();
  output.writeEvent({ type: 'stage', status: 'in_pipeline', stage: 'queued', position: 2, message: 'It waits.' });
  output.writeEvent({ type: 'stage', status: 'in_pipeline', stage: 'queued', position: 2, message: 'It waits.' });
  output.writeEvent({ type: 'stage', status: 'in_pipeline', stage: 'cloning', position: undefined, message: '' });
  output.writeEvent({ type: 'log', stage: 'clone', line: 'fetching' });
  output.writeEvent({ type: 'log', stage: 'clone', line: '\u001b]0;owned\u0007done' });
  output.writeEvent({ type: 'log', stage: 'build', line: 'step 1' });
  output.writeVerdict(status, undefined);
  assert.deepEqual(lines, [
    '     1.2 s  queued, position 2',
    '     2.4 s  cloning',
    '            clone:',
    '              fetching',
    '              done',
    '            build:',
    '              step 1',
    '     3.6 s  live',
    'https://hello.test',
  ]);
});

test('to live with errors', () => {
  const { output, lines } = recorded();
  output.writeVerdict({ ...status, warning: "answers 500 on /; see the app's log" }, undefined);
  assert.deepEqual(lines.slice(1), ['https://hello.test', "  warning  the app answers 500 on /; see the app's log"]);
});

test('explains why a commit is sent back', () => {
  const { output, lines } = recorded();
  for (const [stage, message] of [
    ['queued', 'It waits.'],
    ['building', 'It is built.'],
    ['queued', 'The registry did not answer.'],
    ['cloning', ''],
    ['deploying', ''],
  ] as const) {
    output.writeEvent({ type: 'stage', status: 'in_pipeline', stage, position: undefined, message });
  }
  assert.deepEqual(
    lines.map((line) => line.slice(12)),
    ['queued', 'building', 'queued again: The registry did not answer.', 'cloning', 'deploying'],
  );
});

test('to rejected: rule, location, why, fix, log, and what else was found', () => {
  const { output, lines } = recorded();
  const others = [
    { severity: 'error', ...reason },
    { severity: 'warning', rule: 'licence', message: 'No year', fix: 'Add one.' },
  ];
  output.writeVerdict({ ...status, status: 'rejected', findings: others }, reason);
  assert.deepEqual(lines, [
    '     1.2 s  rejected',
    '  rule   secrets/aws',
    '  at     a/b.py:3',
    '  why    A key is in it',
    '  fix    Take it out.',
    '         Revoke it.',
    '  log',
    '    one',
    '    two',
    '  warning licence: No year Add one.',
  ]);
});

test('prints the pages that add a licence below the fix', () => {
  const { output, lines } = recorded();
  const links = [
    { title: 'MIT', url: 'https://github.com/o/n/community/license/new?branch=main&template=mit' },
    { title: 'odd\u001b[31m', url: 'https://git.test' },
  ];
  const missing = { rule: 'license/missing', message: 'No licence was found.', fix: 'Add one.' };
  output.writeVerdict({ ...status, status: 'rejected', license: { links } }, missing);
  assert.deepEqual(lines.slice(3), [
    '  fix    Add one.',
    '  add    MIT: https://github.com/o/n/community/license/new?branch=main&template=mit',
    '  add    odd: https://git.test',
  ]);
});

test('to a newer commit that was rejected while the app is live', () => {
  const { output, lines } = recorded();
  output.writeVerdict(status, { rule: 'build/failed', message: 'No', fix: 'Yes' });
  assert.equal(lines[0], '     1.2 s  rejected; the last good commit is still live');
});

test('shows how the image was built and why, unless the review stopped it before', () => {
  const plan = { strategy: 'node', framework: 'Vite', reason: 'package.json makes this a Node app.' };
  const finding = { severity: 'warning', rule: 'plan/node-version', message: 'Node 24 is used.', fix: 'Widen it.' };
  const live = recorded();
  live.output.writeVerdict({ ...status, plan, findings: [finding] }, undefined);
  assert.deepEqual(live.lines.slice(1), [
    'https://hello.test',
    '  plan   node, Vite. package.json makes this a Node app.',
    '  warning plan/node-version: Node 24 is used. Widen it.',
  ]);
  const crashed = recorded();
  crashed.output.writeVerdict({ ...status, plan, status: 'rejected' }, { ...reason, rule: 'run/crashed' });
  assert.ok(crashed.lines.includes('  plan   node, Vite. package.json makes this a Node app.'));
  const refused = recorded();
  refused.output.writeVerdict({ ...status, plan, status: 'rejected' }, reason);
  assert.ok(!refused.lines.some((line) => line.includes('plan')));
});
