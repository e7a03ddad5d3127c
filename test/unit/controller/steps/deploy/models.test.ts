// Apps that may ask models: their Secret, variables and way out, and nothing of it for others.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import {
  modelEgress,
  modelKeyVariable,
  modelsSecret,
  modelVariables,
} from '../../../../../controller/steps/deploy/models.ts';
import { isAppToken } from '../../../../../lib/app-tokens.ts';
import { app, config } from '../../../../support/operator/scenario.ts';

const models = { baseUrl: 'http://moorage-models.moorage-system.svc.cluster.local/v1', tokenSecret: 'x'.repeat(32) };
const able = { ...config, run: { ...config.run, models } };
const enabled = app({ models: { enabled: true } });
const held = z.object({ 'base-url': z.string(), token: z.string() });

test('an app that may ask models gets a Secret with the base URL and a token of its own, named by what it holds', () => {
  const secret = modelsSecret(enabled, able) ?? assert.fail('no Secret');
  const { token, 'base-url': baseUrl } = held.parse(secret['stringData']);
  assert.equal(baseUrl, models.baseUrl);
  assert.ok(isAppToken(token, { name: enabled.metadata.name, uid: enabled.metadata.uid }, models.tokenSecret));
  assert.deepEqual(modelVariables(enabled, able), [
    { name: 'OPENAI_BASE_URL', valueFrom: { secretKeyRef: { name: secret.metadata.name, key: 'base-url' } } },
    { name: 'OPENAI_API_KEY', valueFrom: { secretKeyRef: { name: secret.metadata.name, key: 'token' } } },
  ]);
  const other = { ...able, run: { ...able.run, models: { ...models, tokenSecret: 'y'.repeat(32) } } };
  assert.notEqual(modelsSecret(enabled, other)?.metadata.name, secret.metadata.name);
});

test('a variable that the author has set stays the author’s', () => {
  const own = app({ models: { enabled: true }, run: { env: [{ name: 'OPENAI_API_KEY', value: 'mine' }] } });
  assert.deepEqual(
    modelVariables(own, able).map((variable) => z.looseObject({ name: z.string() }).parse(variable).name),
    ['OPENAI_BASE_URL'],
  );
});

test('others get nothing: apps without models, and installations without tokens', () => {
  for (const [one, of] of [
    [app(), able],
    [enabled, config],
  ] as const) {
    assert.equal(modelsSecret(one, of), undefined);
    assert.deepEqual([modelVariables(one, of), modelEgress(one, of)], [[], []]);
  }
  assert.equal(modelEgress(enabled, able).length, 1);
});

test('a value that names the token gets it from the Secret, under a name that no variable of the author has', () => {
  const naming = app({ models: { enabled: true }, run: { env: [{ name: 'LLM_KEY', value: '${{models.key}}' }] } });
  const secret = modelsSecret(naming, able) ?? assert.fail('no Secret');
  assert.deepEqual(modelKeyVariable(naming, able), [
    { name: 'MOORAGE_MODELS_KEY', valueFrom: { secretKeyRef: { name: secret.metadata.name, key: 'token' } } },
  ]);
  assert.deepEqual([modelKeyVariable(enabled, able), modelKeyVariable(naming, config)], [[], []]);
});
