// What of a long log is shown: the first error and what follows, without help and progress.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  findErrorLine,
  findMissingProgram,
  findNetworkFault,
  guessService,
  quoteLine,
  removeNoise,
  shortenLog,
} from '../../../../../controller/pipeline/build/step-log.ts';

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

test('ignores warnings, and returns the end of a log without errors', () => {
  assert.equal(
    findErrorLine('npm warn deprecated a@1: error\nwarning: x failed\n0 errors\nError: here'),
    'Error: here',
  );
  assert.equal(findErrorLine('one\ntwo\nfailed to solve: process "/bin/sh -c x" did not complete successfully'), 'two');
  assert.equal(findErrorLine(''), undefined);
  assert.match(shortenLog(`${'x\n'.repeat(2_000)}last`, 300), /last$/);
});

test.each([
  [
    'a heading',
    'error during build:\nRollupError: "x" is not exported by "y"',
    'RollupError: "x" is not exported by "y"',
  ],
  [
    'the page that was rendered, with a help link',
    'Error occurred prerendering page "/". Read more: https://nextjs.org/docs/messages/prerender-error\nTypeError: x is undefined',
    'TypeError: x is undefined',
  ],
  [
    'the code of npm',
    'npm error code 1\nnpm error path /app\nnpm error Error: no such thing',
    'npm error Error: no such thing',
  ],
  [
    'an excerpt of the source',
    "  throw new Error('cannot do this')\n        ^\nError: cannot do this",
    'Error: cannot do this',
  ],
  [
    'an exit code, if there is nothing else',
    'building\n** (Mix) `mix esbuild` exited with 8',
    '** (Mix) `mix esbuild` exited with 8',
  ],
])('prefers what an error says over %s', (_name, log, line) => {
  assert.equal(findErrorLine(log), line);
});

test('quotes the lines after a heading or a broken sentence', () => {
  const lines = ['The following are missing:', ' - A', ' - B', '', 'x requires y, which is', 'absent'];
  assert.equal(quoteLine(lines, 0), 'The following are missing: - A - B');
  assert.equal(quoteLine(lines, 4), 'x requires y, which is absent');
  assert.equal(quoteLine(lines, 5), 'absent');
});

test('takes no help link for an unreachable host, and a refused connection to localhost for a local one', () => {
  const help = findNetworkFault(['getaddrinfo EAI_AGAIN', 'Read more: https://nextjs.org/docs/messages/fonts']);
  assert.equal(help?.host, undefined);
  const refused = findNetworkFault(['connect ECONNREFUSED', 'at mongodb://localhost:27017/app']);
  assert.equal(refused?.isLocal, true);
  assert.equal(findNetworkFault(['getaddrinfo ENOTFOUND db'])?.isLocal, true);
  assert.equal(findNetworkFault(['getaddrinfo ENOTFOUND db.example.org'])?.isLocal, false);
});

test.each([
  ['npm error enoent spawn git ENOENT', 'git'],
  ['npm ERR! No git binary found in $PATH', 'git'],
  ["ERROR: Cannot find command 'git' - do you have 'git' installed and in your PATH?", 'git'],
  ['exec: "gcc": executable file not found in $PATH', 'gcc'],
  ['** (ErlangError) Erlang error: :enoent\n    (elixir) lib/system.ex:1: System.cmd("cargo", ["x"], [])', 'cargo'],
  ['    (elixir) lib/system.ex:1: System.cmd("cargo", ["x"], [])', undefined],
])('finds the program that is missing in %j', (log, program) => {
  assert.equal(findMissingProgram(log.split('\n'))?.program, program);
});

test('guesses a service by its port, scheme or driver', () => {
  const logs = [
    '127.0.0.1:5432',
    'mongodb://x',
    '::1:6379',
    'SQLSTATE[HY000] [2002] Connection refused',
    'localhost:8080',
  ];
  assert.deepEqual(logs.map(guessService), ['postgres', 'mongo', 'redis', 'mysql', undefined]);
});
