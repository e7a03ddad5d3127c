// A setting is one object: the process reads what the chart writes, and both have the same default.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { listChartValues, listSettings, processes, renderSettings } from '../../../charts/settings.ts';
import { values } from '../../../charts/values.ts';
import { list } from '../../../lib/config.ts';
import { defineSetting, findChartValue, formatValue, kinds } from '../../../lib/settings.ts';

const settings = processes.flatMap(listSettings);

/** Settings whose default in the chart is another than that of the process. */
const differs = ['MOORAGE_GIT_ALLOWED_HOSTS'];

test('a process without a variable has the default of the chart, unless the setting says otherwise', () => {
  assert.ok(settings.length > 80);
  const different = settings.filter(({ type, value }) => {
    const fallback = value.schema.safeParse(undefined);
    if (!fallback.success) return false;
    const text = formatValue(value, fallback.data);
    // An empty variable counts as absent, and a price list without versions is not written.
    const isAbsent = text === '' || (value.omitEmpty && text === '[]');
    assert.ok(type.safeParse(isAbsent ? undefined : text).success, value.path);
    return (
      JSON.stringify(type.parse(isAbsent ? undefined : text), print) !== JSON.stringify(type.parse(undefined), print)
    );
  });
  assert.deepEqual([...new Set(different.map(({ variable }) => variable))], differs);
});

const print = (_: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value);

test('a process accepts the smallest and the largest number that the chart allows', () => {
  const numbers = settings.filter(({ value }) => value.format === 'number');
  assert.ok(numbers.length > 20);
  for (const { variable, type, value } of numbers) {
    const { minimum, maximum } = z
      .object({ minimum: z.int(), maximum: z.int() })
      .parse(z.toJSONSchema(value.schema, { io: 'input' }));
    for (const bound of [minimum, maximum])
      assert.ok(
        type.safeParse(formatValue(value, bound)).success,
        `${variable} refuses ${bound}, as ${value.path} allows`,
      );
  }
});

test('every setting has a value in the chart, and a variable that is described', () => {
  for (const { variable, type, value } of settings) {
    assert.ok((type.description ?? '').length > 0, variable);
    const [section] = value.path.split('.');
    assert.ok(section !== undefined && section in (values as z.ZodObject).shape, value.path);
  }
  assert.equal(new Set(listChartValues().map(({ path }) => path)).size, listChartValues().length);
});

test('the default of a setting is written once, in the form of the chart', () => {
  const hosts = defineSetting(kinds.list(z.string(), list), {
    value: 'git.hosts',
    default: ['a.example', 'b.example'],
    description: 'Hosts.',
  });
  assert.deepEqual(hosts.parse(undefined), ['a.example', 'b.example']);
  assert.deepEqual(findChartValue(hosts)?.schema.parse(undefined), ['a.example', 'b.example']);
  assert.equal(findChartValue(z.string()), undefined);
});

test('an optional setting is absent in the process and empty in the chart', () => {
  const name = defineSetting(kinds.optional(kinds.text(z.string().min(2), z.string())), {
    value: 'a.name',
    description: 'Name.',
  });
  assert.equal(name.parse(undefined), undefined);
  assert.equal(findChartValue(name)?.schema.parse(undefined), '');
  assert.equal(findChartValue(name)?.schema.safeParse('x').success, false);
});

test('a setting that differs in the chart says so', () => {
  const options = { value: 'a.b', default: { a: 'b' }, description: 'Labels.' };
  const required = defineSetting(kinds.labels, { ...options, requiredInChart: true });
  assert.deepEqual(required.parse(undefined), { a: 'b' });
  assert.equal(findChartValue(required)?.schema.safeParse(undefined).success, false);
  const other = defineSetting(kinds.labels, { ...options, chartDefault: { c: 'd' }, chartDescription: 'Other words.' });
  assert.deepEqual(other.parse(undefined), { a: 'b' });
  assert.deepEqual(findChartValue(other)?.schema.parse(undefined), { c: 'd' });
  assert.deepEqual([other.description, findChartValue(other)?.schema.description], ['Labels.', 'Other words.']);
});

test('a template leaves out what is empty, and writes numbers without an exponent', () => {
  const text = renderSettings();
  assert.match(
    text,
    /with \.Values\.submissions\.modelsUsd \}\}\n- \{name: MOORAGE_SUBMITTED_MODELS_USD, value: \{\{ \. \| quote/,
  );
  assert.match(text, /MOORAGE_KEEP_DAYS, value: \{\{ \.Values\.database\.keepDays \| int \| quote/);
});
