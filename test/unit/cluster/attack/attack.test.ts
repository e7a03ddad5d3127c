// An attack that could not be tried proves nothing, and is not taken for one that held.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { attempt, judged, type Attack } from '../../../../cluster/attack/attack.ts';
import { attacks } from '../../../../cluster/attack/attacks/all.ts';
import { commandLine, readArguments, type Arguments } from '../../../../cluster/attack/arguments.ts';
import { Victim } from '../../../../cluster/attack/victim.ts';
import { parseCommandLine, UsageError } from '../../../../lib/command-line.ts';

const url = 'https://apps.example.org';
const installation = { baseUrl: url, gitUrl: url, internalGitUrl: url, authority: undefined, gitPassword: undefined };
const withKubectl = new Victim(installation, () => Promise.resolve(''), 'moorage-system');
const without = new Victim(installation, undefined, 'moorage-system');

const attack = (needs: Attack['needs'], run: Attack['run']): Attack => ({ name: 'any', needs, run });
const holds: Attack['run'] = () => Promise.resolve(judged(true, 'fine'));

test('what an attack needs and does not have is named', async () => {
  assert.match((await attempt(attack('kubectl', holds), without)).evidence, /--context/);
  assert.match((await attempt(attack('git', holds), withKubectl)).evidence, /git server/);
  assert.equal((await attempt(attack('kubectl', holds), withKubectl)).result, 'held');
  assert.equal((await attempt(attack('address', holds), without)).result, 'held');
});

test('an attack that fails in itself is neither held nor open', async () => {
  const ended = await attempt(
    attack('address', () => Promise.reject(new Error('no route\nsecond line'))),
    without,
  );
  assert.deepEqual(ended, { result: 'not tried', evidence: 'failed: no route' });
});

test('each attack has a name of its own', () => {
  assert.equal(new Set(attacks.map(({ name }) => name)).size, attacks.length);
});

test('the command line names the installation, or it is the local one', () => {
  const read = (...args: string[]): Arguments => readArguments(parseCommandLine(commandLine, args));
  assert.deepEqual(read(), { url: undefined, context: undefined, namespace: 'moorage-system', only: undefined });
  assert.equal(read('--url', url, '--context', 'prod').context, 'prod');
  assert.throws(() => read('--context', 'prod'), UsageError);
  assert.throws(() => read('--url', 'apps'), UsageError);
});
