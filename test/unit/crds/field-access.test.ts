// Each field of a HostedApp has one decision on who may set it, and the API writes only the fields of a submission.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { describeSpec, type SchemaNode } from '../../../crds/definition.ts';
import {
  listSpecFields,
  listWriters,
  operatorFields,
  readStoredDefaults,
  submittedFields,
  submittedModelFields,
} from '../../../crds/field-access.ts';
import { spec } from '../../../crds/hosted-app.ts';

test('every field of a HostedApp has one writer', () => {
  const fields = listSpecFields();
  assert.ok(fields.length > 40, String(fields.length));
  const undecided = fields
    .map((field) => [field, ...listWriters(field)])
    .filter(([, ...writers]) => writers.length !== 1);
  assert.deepEqual(
    undecided,
    [],
    'Add each field to appManifest (crds/app-manifest.ts) if its author may set it, and otherwise to one of the lists in crds/field-access.ts. Until then, the admission policy rejects it in apps that the API creates.',
  );
});

test('the lists name only fields that exist', () => {
  const fields = new Set(listSpecFields());
  const listed = [...submittedFields, ...submittedModelFields, ...operatorFields];
  assert.deepEqual(
    listed.filter((field) => !fields.has(field)),
    [],
  );
});

test('a submitted field is a plain value of a section, which is what the policy compares', () => {
  const { properties } = describeSpec() as { properties: Record<string, { properties?: Record<string, SchemaNode> }> };
  for (const field of [...submittedFields, ...submittedModelFields]) {
    const [section = '', name = '', ...rest] = field.split('.');
    assert.deepEqual(rest, [], field);
    const type = properties[section]?.properties?.[name]?.['type'];
    assert.ok(type === 'string' || type === 'boolean', `${field}: ${String(type)}`);
  }
});

test('the defaults of the policy are those that the API server stores', () => {
  const { sections, values } = readStoredDefaults();
  assert.deepEqual(Object.fromEntries(values), {
    'source.interval': '5m',
    'build.resources': {},
    'review.waivers': [],
    'run.resources': {},
    'run.secrets': [],
    'run.replicas': 1,
    'models.enabled': false,
    'models.dailyBudgetUsd': '1',
    'author.share': '0.7',
    deletionPolicy: 'Delete',
    suspend: false,
  });
  const scalars = ['components', 'services', 'tasks', 'deletionPolicy', 'suspend'];
  assert.deepEqual([...sections, ...scalars].sort(), Object.keys(spec.shape).sort());
});
