// Secrets that the platform makes up: of each variable one, the same at each start, and no two alike.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { generatedSecrets, generatedVariable } from '../../../../../controller/steps/deploy/generated-secrets.ts';
import { app, config } from '../../../../support/operator/scenario.ts';

const held = z.object({ value: z.string().regex(/^[0-9a-f]{64}$/) });
const asking = app({
  run: {
    env: [
      { name: 'SESSION_SECRET', value: '${{secret}}' },
      { name: 'JWT_SECRET', value: '${{ secret }}' },
      { name: 'PLAIN', value: 'secret' },
      { name: 'PART', value: 'x-${{secret}}' },
    ],
  },
});

test('each variable that asks for one has a Secret of its own, which it names', () => {
  const secrets = generatedSecrets(asking, config);
  assert.equal(secrets.length, 2);
  const [session, jwt] = secrets;
  assert.deepEqual(generatedVariable(asking, 'SESSION_SECRET'), {
    name: 'SESSION_SECRET',
    valueFrom: { secretKeyRef: { name: session?.metadata.name, key: 'value' } },
  });
  assert.notEqual(session?.metadata.name, jwt?.metadata.name);
  const values = secrets.map((each) => held.parse(each['stringData']).value);
  assert.equal(new Set(values).size, 2);
  assert.deepEqual(
    generatedSecrets(asking, config).map((each) => held.parse(each['stringData']).value),
    values,
  );
});

test('a namesake that comes after has others, and an app that asks for none has none', () => {
  const after = { ...asking, metadata: { ...asking.metadata, uid: 'another' } };
  const [one, other] = [generatedSecrets(asking, config)[0], generatedSecrets(after, config)[0]];
  assert.notEqual(one?.metadata.name, other?.metadata.name);
  assert.notDeepEqual(one?.['stringData'], other?.['stringData']);
  assert.deepEqual(generatedSecrets(app(), config), []);
});
