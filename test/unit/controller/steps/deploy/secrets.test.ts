// Secrets that the platform makes up: of each variable one, the same at each start, and no two alike.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { buildModelEgress } from '../../../../../controller/steps/deploy/objects.ts';
import {
  buildGeneratedSecrets,
  buildGeneratedVariable,
  buildModelKeyVariables,
  buildModelsSecret,
  buildModelVariables,
} from '../../../../../controller/steps/deploy/secrets.ts';
import { isAppToken } from '../../../../../lib/app-tokens.ts';
import { app, config } from '../../../../support/operator/scenario.ts';

const generatedData = z.object({ value: z.string().regex(/^[0-9a-f]{64}$/) });
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

test('gives each variable that requests one its own Secret', () => {
  const secrets = buildGeneratedSecrets(asking, config);
  assert.equal(secrets.length, 2);
  const [session, jwt] = secrets;
  assert.deepEqual(buildGeneratedVariable(asking, 'SESSION_SECRET'), {
    name: 'SESSION_SECRET',
    valueFrom: { secretKeyRef: { name: session?.metadata.name, key: 'value' } },
  });
  assert.notEqual(session?.metadata.name, jwt?.metadata.name);
  const values = secrets.map((each) => generatedData.parse(each['stringData']).value);
  assert.equal(new Set(values).size, 2);
  assert.deepEqual(
    buildGeneratedSecrets(asking, config).map((each) => generatedData.parse(each['stringData']).value),
    values,
  );
});

test('gives a later app with the same name different Secrets, and an app that requests none no Secret', () => {
  const after = { ...asking, metadata: { ...asking.metadata, uid: 'another' } };
  const [one, other] = [buildGeneratedSecrets(asking, config)[0], buildGeneratedSecrets(after, config)[0]];
  assert.notEqual(one?.metadata.name, other?.metadata.name);
  assert.notDeepEqual(one?.['stringData'], other?.['stringData']);
  assert.deepEqual(buildGeneratedSecrets(app(), config), []);
});

// Apps that may ask models: their Secret, variables and way out, and nothing of it for others.

const models = { baseUrl: 'http://moorage-models.moorage-system.svc.cluster.local/v1', tokenSecret: 'x'.repeat(32) };
const able = { ...config, run: { ...config.run, models } };
const enabled = app({ models: { enabled: true } });
const modelsData = z.object({ 'base-url': z.string(), token: z.string() });

test('gives an app that may call models a Secret with the base URL and its own token, named by its content', () => {
  const secret = buildModelsSecret(enabled, able) ?? assert.fail('no Secret');
  const { token, 'base-url': baseUrl } = modelsData.parse(secret['stringData']);
  assert.equal(baseUrl, models.baseUrl);
  assert.ok(isAppToken(token, { name: enabled.metadata.name, uid: enabled.metadata.uid }, models.tokenSecret));
  assert.deepEqual(buildModelVariables(enabled, able, enabled.spec.run), [
    { name: 'OPENAI_BASE_URL', valueFrom: { secretKeyRef: { name: secret.metadata.name, key: 'base-url' } } },
    { name: 'OPENAI_API_KEY', valueFrom: { secretKeyRef: { name: secret.metadata.name, key: 'token' } } },
  ]);
  const other = { ...able, run: { ...able.run, models: { ...models, tokenSecret: 'y'.repeat(32) } } };
  assert.notEqual(buildModelsSecret(enabled, other)?.metadata.name, secret.metadata.name);
});

test('keeps a variable that the author has set', () => {
  const own = app({ models: { enabled: true }, run: { env: [{ name: 'OPENAI_API_KEY', value: 'mine' }] } });
  assert.deepEqual(
    buildModelVariables(own, able, own.spec.run).map(
      (variable) => z.looseObject({ name: z.string() }).parse(variable).name,
    ),
    ['OPENAI_BASE_URL'],
  );
});

test('gives nothing to apps without models, and in installations without tokens', () => {
  for (const [one, of] of [
    [app(), able],
    [enabled, config],
  ] as const) {
    assert.equal(buildModelsSecret(one, of), undefined);
    assert.deepEqual([buildModelVariables(one, of, one.spec.run), buildModelEgress(one, of)], [[], []]);
  }
  assert.equal(buildModelEgress(enabled, able).length, 1);
});

test('reads the token in a value from the Secret, through a variable name that the author does not use', () => {
  const naming = app({ models: { enabled: true }, run: { env: [{ name: 'LLM_KEY', value: '${{models.key}}' }] } });
  const secret = buildModelsSecret(naming, able) ?? assert.fail('no Secret');
  assert.deepEqual(buildModelKeyVariables(naming, able, naming.spec.run), [
    { name: 'MOORAGE_MODELS_KEY', valueFrom: { secretKeyRef: { name: secret.metadata.name, key: 'token' } } },
  ]);
  assert.deepEqual(
    [buildModelKeyVariables(enabled, able, enabled.spec.run), buildModelKeyVariables(naming, config, naming.spec.run)],
    [[], []],
  );
});
