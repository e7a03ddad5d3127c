// The OpenAPI document of all endpoints there are, looked at by two validators of other people.
import assert from 'node:assert/strict';
import { validate as validateByReadme } from '@readme/openapi-parser';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Registry } from 'prom-client';
import { test } from 'vitest';
import { openApi } from '../../../../api/discovery/openapi.ts';
import type { Endpoint } from '../../../../api/http/endpoint.ts';
import { readModelSettings } from '../../../../api/models/config.ts';
import { startModels } from '../../../../api/models/start.ts';
import { readToolSettings } from '../../../../api/tools/config.ts';
import type { ToolServices } from '../../../../api/tools/engine/tool-dependencies.ts';
import { startTools } from '../../../../api/tools/start.ts';
import { baseUrl, sampleServer, sampleServices, silent } from '../../../support/api/sample.ts';

/** Every tool of the registry and every model endpoint; none of them is called. */
function everything(): Endpoint[] {
  const modelSettings = readModelSettings({});
  const registry = new Registry();
  const absent = new Proxy(
    {},
    {
      get: () => {
        throw new Error('called');
      },
    },
  );
  const models = startModels({
    settings: modelSettings,
    callerSalt: 'salt',
    baseUrl,
    registry,
    log: silent,
    findApp: () => undefined,
  });
  const tools = startTools({
    settings: readToolSettings({}),
    modelSettings,
    models,
    baseUrl,
    registry,
    log: silent,
    fetcher: absent as ToolServices['fetcher'],
    workers: absent as ToolServices['workers'],
    apps: () => [],
  });
  return [...models.endpoints, ...tools.endpoints];
}
const document = (): Record<string, unknown> =>
  openApi(sampleServer(sampleServices(), everything()).endpoints, baseUrl);

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
  const broken = (): Record<string, unknown> => ({
    ...document(),
    paths: { '/x/{id}': { get: { responses: {}, parameters: 'none' } } },
  });
  assert.equal((await new Validator().validate(broken())).valid, false);
  assert.equal((await validateByReadme(broken() as unknown as Parameters<typeof validateByReadme>[0])).valid, false);
});
