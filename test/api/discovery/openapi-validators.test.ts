// The OpenAPI document of all endpoints there are, looked at by two validators of other people.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { validate as validateByReadme } from '@readme/openapi-parser';
import { Validator } from '@seriousme/openapi-schema-validator';
import { openApi } from '../../../api/discovery/openapi.ts';
import { readCatalog } from '../../../api/models/catalog.ts';
import { modelEndpoints } from '../../../api/models/endpoints.ts';
import { baseUrl, sampleServer, sampleServices } from '../sample.ts';

const models = modelEndpoints(
  { catalog: readCatalog(), maxTokens: { usual: 1024, most: 8192 }, services: () => { throw new Error('called'); } },
  { secret: undefined, find: () => undefined },
);
const document = (): Record<string, unknown> => openApi(sampleServer(sampleServices(), models).endpoints, baseUrl);

test('valid to @seriousme/openapi-schema-validator', async () => {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(document());
  assert.deepEqual([valid, errors], [true, undefined]);
  assert.equal(validator.version, '3.1');
});

test('valid to @readme/openapi-parser', async () => {
  const result = await validateByReadme(document() as unknown as Parameters<typeof validateByReadme>[0]);
  assert.deepEqual(result, { valid: true, warnings: [], specification: 'OpenAPI' });
});

test('both find what is wrong with a broken one', async () => {
  const broken = (): Record<string, unknown> => ({ ...document(), paths: { '/x/{id}': { get: { responses: {}, parameters: 'none' } } } });
  assert.equal((await new Validator().validate(broken())).valid, false);
  assert.equal((await validateByReadme(broken() as unknown as Parameters<typeof validateByReadme>[0])).valid, false);
});
