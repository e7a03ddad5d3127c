// validate_json checks by the draft that the schema names, and survives schemas meant to hurt.
import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { createValidateJsonTool } from '../../../../../../api/tools/builtin/validate-json/validate-json.ts';
import { createWorkers } from '../../../../../../api/tools/engine/workers/pool.ts';
import { call, isProblem, createServices } from '../../../../../support/tools/call.ts';

const workers = createWorkers();
afterAll(() => workers.close());
const tool = createValidateJsonTool(createServices({ workers }));
const check = async (schema: unknown, data: unknown): Promise<Record<string, unknown>> =>
  (await call(tool, { schema, data })).result;

test('names each path that violates the schema', async () => {
  const { valid, errors, error_count, draft } = await check(tool.example.schema, tool.example.data);
  assert.deepEqual({ valid, error_count, draft }, { valid: false, error_count: 2, draft: '2020-12' });
  assert.deepEqual(errors, [
    {
      path: '',
      message: "must have required property 'name'",
      keyword: 'required',
      schema_path: '#/required',
      params: { missingProperty: 'name' },
    },
    {
      path: '/age',
      message: 'must be >= 0',
      keyword: 'minimum',
      schema_path: '#/properties/age/minimum',
      params: { comparison: '>=', limit: 0 },
    },
  ]);
  assert.equal((await check(tool.example.schema, { name: 'x', age: 1 })).valid, true);
});

test('accepts data unchanged, boolean schemas and null', async () => {
  assert.equal((await check({ type: 'string' }, '12')).valid, true);
  assert.equal((await check({ type: 'string' }, '{"a":1}')).valid, true);
  assert.equal((await check({ type: 'null' }, null)).valid, true);
  assert.equal((await check(false, 1)).valid, false);
  await assert.rejects(call(tool, { schema: 7, data: '1' }), /must be a JSON Schema/);
  await assert.rejects(call(tool, { schema: {} }), /is missing/);
});

test('uses the draft that $schema names', async () => {
  const prefix = { prefixItems: [{ type: 'string' }] };
  assert.equal((await check(prefix, [1])).valid, false);
  assert.equal((await check({ $schema: 'https://json-schema.org/draft/2020-12/schema', ...prefix }, [1])).valid, false);
  for (const [$schema, draft] of [
    ['http://json-schema.org/draft-07/schema#', 'draft-07'],
    ['http://json-schema.org/draft-06/schema#', 'draft-06'],
    ['https://json-schema.org/draft/2019-09/schema', '2019-09'],
  ]) {
    const answer = await check({ $schema, ...prefix, items: [{ type: 'number' }] }, [1]);
    assert.deepEqual([answer.valid, answer.draft], [true, draft]);
  }
  await assert.rejects(
    check({ $schema: 'http://json-schema.org/draft-04/schema#' }, 1),
    isProblem('unprocessable', /draft.*Supported: /),
  );
});

test('checks formats', async () => {
  for (const [format, good, bad] of [
    ['email', 'a@b.org', 'a@'],
    ['date-time', '2026-01-01T00:00:00Z', 'today'],
    ['uri', 'https://a.org/', 'a b'],
    ['ipv6', '::1', ':::'],
  ]) {
    assert.equal((await check({ format }, good)).valid, true, format);
    assert.equal((await check({ format }, bad)).valid, false, format);
  }
});

test('rejects an invalid schema with the reason, and reads nothing outside it', async () => {
  await assert.rejects(check({ type: 'strnig' }, 1), isProblem('unprocessable', /schema is invalid.*type/));
  await assert.rejects(check({ pattern: '(' }, 'x'), isProblem('unprocessable', /pattern|regular expression/i));
  for (const $ref of ['file:///etc/passwd', 'http://127.0.0.1:1/schema', '#/$defs/none'])
    await assert.rejects(check({ $ref }, 1), isProblem('unprocessable', /can't resolve reference/));
});

test('stops endless validation, and serves the next call', async () => {
  const hostile = { pattern: '^(a+)+$', patternProperties: { '^(a+)+$': false } };
  assert.equal((await check(hostile, `${'a'.repeat(40)}!`)).valid, false);
  assert.equal((await check(hostile, { [`${'a'.repeat(40)}!`]: 1 })).valid, true);
  await assert.rejects(check({ $ref: '#' }, 1), isProblem('unprocessable', /refers to itself/));
  const deep: unknown = JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`);
  await assert.rejects(check({ items: { $ref: '#' } }, deep), isProblem('unprocessable', /nested too deeply/));
  assert.equal((await check(true, 1)).valid, true);
});

test('rejects a pattern that RE2 cannot match by name, with the fix', async () => {
  await assert.rejects(
    check({ properties: { password: { pattern: '^(?=.*\\d).{8,}$' } } }, {}),
    isProblem('unprocessable', /The pattern \^\(\?=.*uses a look-ahead.*put them into allOf/),
  );
});

test('reports at most a hundred errors', async () => {
  const { errors, error_count } = await check({ items: { type: 'string' } }, new Array(5_000).fill(1));
  assert.deepEqual([(errors as unknown[]).length, error_count], [100, 5_000]);
});
