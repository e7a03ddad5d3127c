// What of a long log is shown: the first error and what follows, without help and progress.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { shortenLog, findErrorLine, removeNoise } from '../../../../../controller/pipeline/build/step-log.ts';

const usage = [
  'npm error code EUSAGE',
  'npm error',
  'npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync.',
  'npm error',
  'npm error Missing: left-pad@1.3.0 from lock file',
  'npm error',
  'npm error Clean install a project',
  'npm error',
  'npm error Usage:',
  'npm error npm ci',
  'npm error',
  'npm error Options:',
  'npm error [--install-strategy <hoisted|nested|shallow|linked>] [--legacy-bundling]',
  'npm error   --omit',
  'npm error aliases: clean-install, ic, install-clean, isntall-clean',
  'npm error',
  'npm error Run "npm help ci" for more info',
  'npm error A complete log of this run can be found in: /root/.npm/_logs/2026.log',
].join('\n');

test("drops npm's usage text, but not the name of the wrong package", () => {
  const shown = removeNoise(usage);
  assert.match(shown, /Missing: left-pad@1\.3\.0/);
  assert.doesNotMatch(shown, /Usage|Options|--omit|aliases|complete log/);
});

test('does not mistake a crate named like an error for one', () => {
  const log = [
    '  Downloaded serde_path_to_error v0.1.14',
    '   Compiling this_error v1.0.0',
    'error[E0282]: type needed',
  ];
  assert.equal(findErrorLine(log.join('\n')), 'error[E0282]: type needed');
});

test('ignores debconf without a terminal, and recognizes apt lines that start with E', () => {
  const log = ['debconf: unable to initialize frontend: Dialog', 'Setting up a (1)', 'E: Sub-process dpkg returned 1'];
  assert.equal(findErrorLine(log.join('\n')), 'E: Sub-process dpkg returned 1');
});

test('shortens a long log around its first error', () => {
  const before = Array.from({ length: 300 }, (_, index) => `compiled ${index}`).join('\n');
  const after = Array.from({ length: 300 }, (_, index) => `    at frame ${index}`).join('\n');
  const shown = shortenLog(`${before}\nsrc/a.ts: error TS1: no\n${after}\nthe end`, 1_000);
  assert.ok(Buffer.byteLength(shown) <= 1_000);
  assert.match(shown, /^…\ncompiled 297\n[\s\S]*error TS1: no\n {4}at frame 0/);
  assert.match(shown, /the end$/);
});

test('ignores warnings, and keeps the end of a log without errors', () => {
  assert.equal(
    findErrorLine('npm warn deprecated a@1: error\nwarning: x failed\n0 errors\nError: here'),
    'Error: here',
  );
  assert.equal(findErrorLine('one\ntwo'), undefined);
  assert.match(shortenLog(`${'x\n'.repeat(2_000)}last`, 300), /last$/);
});
