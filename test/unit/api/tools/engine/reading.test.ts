// Arguments as a call sends them: JSON of a body or an MCP call stays as it is, and the text of a query is decoded once.
import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { Problem } from '../../../../../lib/problem.ts';
import { createMakeChartTool } from '../../../../../api/tools/builtin/make-chart/make-chart.ts';
import { createRunCodeTool } from '../../../../../api/tools/builtin/run-code/run-code.ts';
import { createValidateJsonTool } from '../../../../../api/tools/builtin/validate-json/validate-json.ts';
import { ToolReader } from '../../../../../api/tools/engine/reading.ts';
import { createWorkers } from '../../../../../api/tools/engine/workers/pool.ts';
import { call, createServices } from '../../../../support/tools/call.ts';

const workers = createWorkers();
afterAll(() => workers.close());
const services = createServices({ workers });
const validate = new ToolReader(createValidateJsonTool(services));
const runCode = new ToolReader(createRunCodeTool(services));
const chart = new ToolReader(createMakeChartTool(services));

/** Texts that are JSON as well, and others. */
const texts = ['12', '12345678901234567890', '{"a":1}', '[1]', 'null', 'true', '"quoted"', 'a,b\n1,2', 'plain', ''];

for (const part of ['body', 'argument'] as const)
  test(`${part}: keeps a string as a string, whatever it looks like`, () => {
    for (const data of texts) {
      assert.equal(validate.read(part, { schema: {}, data }).input['data'], data);
      assert.equal(runCode.read(part, { code: '1', input: data }).input['input'], data);
      assert.equal(runCode.read(part, { code: '1', input_text: data }).input['input_text'], data);
    }
    assert.deepEqual(chart.read(part, { values: [1, 2], labels: ['1', '2'] }).input['labels'], ['1', '2']);
  });

test('query: decodes text once', () => {
  for (const [text, value] of [
    ['12', 12],
    ['"12"', '12'],
    [String.raw`"\"12\""`, '"12"'],
    ['null', null],
    ['{"a":"{}"}', { a: '{}' }],
  ] as const)
    assert.deepEqual(validate.readLink({ schema: '{}', data: text }).input['data'], value);
  assert.deepEqual(chart.readLink({ values: '1, 2', labels: '["1,5", "2"]' }).input, {
    values: ['1', '2'],
    labels: ['1,5', '2'],
    format: 'png',
    scale: 2,
  });
  for (const text of texts) assert.equal(runCode.readLink({ code: '1', input_text: text }).input['input_text'], text);
});

test('query: names the field of invalid JSON', () => {
  for (const text of ['plain', '{"a":1,}', ''])
    assert.throws(
      () => runCode.readLink({ code: '1', input: text }),
      (error) => error instanceof Problem && error.errors[0]?.field === 'input' && /not valid JSON/.test(error.message),
    );
});

test('passes input_text to the code as a string, and rejects it together with input', async () => {
  const tool = createRunCodeTool(services);
  const run = async (fields: Record<string, unknown>): Promise<unknown> =>
    (await call(tool, { code: 'typeof input + ":" + input', ...fields })).result['value'];
  assert.equal(await run({ input_text: '12345678901234567890' }), 'string:12345678901234567890');
  assert.equal(await run({ input: '12345678901234567890' }), 'string:12345678901234567890');
  assert.equal(await run({ input: 12 }), 'number:12');
  await assert.rejects(run({ input: 1, input_text: '1' }), /"input_text" is an alternative to input/);
});
