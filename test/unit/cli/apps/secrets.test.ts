// Secrets that are made for an app: once, random, with as many digits as it asks for.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { createSecrets } from '../../../../cli/apps/secrets.ts';
import { readManifest } from '../../../../cli/apps/manifests.ts';

const app = readManifest(
  `apiVersion: moorage.dev/v1alpha1\nkind: HostedApp\nmetadata: {name: a, annotations: {moorage.dev/generated-secrets: '{"keys": {"one": 64, "two": 33}}'}}\nspec: {source: {repo: https://example.org/a/b}}\n`,
);
const made = z.object({ metadata: z.object({ name: z.string() }), stringData: z.record(z.string(), z.string()) });

async function inputs(existing: string): Promise<string[]> {
  const all: string[] = [];
  const kubectl = (args: readonly string[], input?: string): Promise<string> => {
    if (input !== undefined) all.push(input);
    return Promise.resolve(args.includes('get') ? existing : '');
  };
  await createSecrets(kubectl, 'apps', app);
  return all;
}

test('a missing Secret is created with random hexadecimal digits', async () => {
  const [first, second] = [await inputs(''), await inputs('')].map(([text = '']) => made.parse(parse(text)));
  assert.equal(first?.metadata.name, 'keys');
  assert.match(first.stringData['one'] ?? '', /^[0-9a-f]{64}$/);
  assert.match(first.stringData['two'] ?? '', /^[0-9a-f]{33}$/);
  assert.notDeepEqual(first, second);
});

test('a Secret that is there is left alone', async () => {
  assert.deepEqual(await inputs('secret/keys\n'), []);
});
