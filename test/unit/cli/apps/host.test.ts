// Hosting an app: its manifest is applied, a rejected one is tried again, and a refusal says what to do.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { host } from '../../../../cli/apps/host.ts';
import { readManifest } from '../../../../cli/apps/manifests.ts';
import { Fault } from '../../../../cli/submit/fault.ts';

const app = readManifest(
  'apiVersion: moorage.dev/v1alpha1\nkind: HostedApp\nmetadata: {name: a}\nspec: {source: {repo: https://example.org/a/b}}\n',
);

async function calls(phase: string, apply: () => Promise<string> = () => Promise.resolve('')): Promise<string[]> {
  const verbs: string[] = [];
  await host(app, {
    kubectl: (args) => {
      verbs.push(args[2] ?? '');
      return args.includes('apply') ? apply() : Promise.resolve(phase);
    },
    namespace: 'apps',
    copies: undefined,
    installation: () => assert.fail('nothing is pushed'),
    say: () => undefined,
  });
  return verbs;
}

test('a manifest is applied; a rejected app is tried again, and no other', async () => {
  assert.deepEqual(await calls('Live'), ['apply', 'get']);
  assert.deepEqual(await calls(''), ['apply', 'get']);
  assert.deepEqual(await calls('Rejected'), ['apply', 'get', 'annotate']);
});

test('an app of another repository is not replaced, and the message says how to remove it', async () => {
  const immutable = (): Promise<string> => Promise.reject(new Error('spec.source.repo: repo is immutable'));
  await assert.rejects(calls('Live', immutable), (error) => {
    assert.ok(error instanceof Fault);
    assert.match(error.message, /kubectl -n apps delete happ a$/);
    return true;
  });
  const refused = (): Promise<string> => Promise.reject(new Error('denied by quota'));
  await assert.rejects(calls('Live', refused), /the cluster refused a: denied by quota/);
});
