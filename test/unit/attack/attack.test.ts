// An attack that could not be tried proves nothing, and is not taken for one that held.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { attempt, judged, type Attack } from '../../attack/attack.ts';
import { attacks } from '../../attack/attacks/all.ts';
import { commandLine, readArguments, type Arguments } from '../../attack/arguments.ts';
import { Victim } from '../../attack/victim.ts';
import { parseCommandLine, UsageError } from '../../../lib/command-line.ts';

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

/** A cluster as `up` makes it, with these pods and policies in the namespace of the gateway. */
function clusterWith(pods: readonly object[], policies: readonly object[]): Victim {
  const inGateway: Readonly<Record<string, readonly object[]>> = { pods, networkpolicies: policies };
  return new Victim(
    installation,
    (args) => {
      if (args[1] === 'namespaces') return Promise.resolve('namespace/moorage-gateway\nnamespace/moorage-git\n');
      if (args.includes('deployment'))
        return Promise.resolve('{"spec":{"template":{"spec":{"containers":[{"env":[]}]}}}}');
      const items = args.includes('moorage-gateway') ? inGateway[args[1] ?? ''] : [];
      return Promise.resolve(JSON.stringify({ items }));
    },
    'moorage-system',
  );
}

test('a pod that no policy selects for both directions is open, and one of the network of its host is not judged', async () => {
  const openPods = attacks.find(({ name }) => name.includes('connections from every other pod')) ?? assert.fail();
  const pod = { metadata: { name: 'traefik', labels: { app: 'traefik' } }, spec: {} };
  const onHost = { metadata: { name: 'proxy' }, spec: { hostNetwork: true } };
  const policy = (policyTypes: readonly string[], matchLabels?: object): object => ({
    spec: { podSelector: matchLabels === undefined ? {} : { matchLabels }, policyTypes },
  });
  const result = async (...policies: object[]): Promise<string> =>
    (await attempt(openPods, clusterWith([pod, onHost], policies))).result;
  assert.equal(await result(), 'open');
  assert.equal(await result(policy(['Ingress'])), 'open');
  assert.equal(await result(policy(['Ingress', 'Egress'], { app: 'other' })), 'open');
  assert.equal(await result(policy(['Ingress'], { app: 'traefik' }), policy(['Egress'])), 'held');
  assert.equal(await result(policy(['Ingress', 'Egress'])), 'held');
});

test('HSTS is asked for only where a browser would keep it', async () => {
  const downgrade = attacks.find(({ name }) => name.includes('plain http')) ?? assert.fail();
  const victim = new Victim(
    { ...installation, baseUrl: 'https://moorage.localhost:8443' },
    undefined,
    'moorage-system',
  );
  assert.match((await attempt(downgrade, victim)).evidence, /browsers ignore HSTS/);
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
