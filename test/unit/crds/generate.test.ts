// The checked-in CRD is the one that the zod schema gives, here and in the chart.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'vitest';
import { buildDefinition, toStructural, type SchemaNode } from '../../../crds/definition.ts';
import { outputs, render } from '../../../crds/generate.ts';

for (const output of outputs) {
  test(`${output.pathname.split('/').slice(-3).join('/')} is what npm run generate writes`, async () => {
    assert.equal(await readFile(output, 'utf8'), render(), 'stale: run `npm run generate` and commit what it writes');
  });
}

function* fields(node: SchemaNode, path: string): Generator<[string, SchemaNode]> {
  yield [path, node];
  const { properties, items } = node as { properties?: Record<string, SchemaNode>; items?: SchemaNode };
  for (const [name, child] of Object.entries(properties ?? {})) yield* fields(child, `${path}.${name}`);
  if (items !== undefined) yield* fields(items, `${path}[]`);
}

function specFields(): [string, SchemaNode][] {
  const { spec } = buildDefinition() as {
    spec: { versions: { schema: { openAPIV3Schema: { properties: { spec: SchemaNode } } } }[] };
  };
  const [version] = spec.versions;
  assert.ok(version);
  return [...fields(version.schema.openAPIV3Schema.properties.spec, 'spec')];
}

test('every field of spec has a description for kubectl explain', () => {
  const silent = specFields()
    .filter(([path, node]) => !path.endsWith('[]') && node['description'] === undefined)
    .map(([path]) => path);
  assert.deepEqual(silent, []);
});

test('every text and list of spec is bounded, so that the cost of its rules is too', () => {
  const unbounded = specFields()
    .filter(
      ([, node]) =>
        (node['type'] === 'string' && node['maxLength'] === undefined && node['enum'] === undefined) ||
        (node['type'] === 'array' && node['maxItems'] === undefined),
    )
    .map(([path]) => path);
  assert.deepEqual(unbounded, []);
});

test('rejects a JSON Schema keyword that would be lost, by name', () => {
  assert.throws(
    () => toStructural({ type: 'object', properties: { port: { type: 'integer', multipleOf: 2 } } }, 'spec'),
    /spec\.port: JSON Schema keyword multipleOf/,
  );
  assert.throws(() => toStructural({ anyOf: [] }, 'spec'), /spec: JSON Schema keyword anyOf/);
});
