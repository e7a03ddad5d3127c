// The chart's generated files are the ones that charts/values.ts and the settings of the processes give.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'vitest';
import { parse } from 'yaml';
import {
  admissionFile,
  closedFile,
  renderAdmission,
  renderClosed,
  renderSchema,
  renderValues,
  schemaFile,
  settingsFile,
  valuesFile,
} from '../../../charts/generate.ts';
import { renderSettings } from '../../../charts/settings.ts';
import { values } from '../../../charts/values.ts';

for (const [file, render] of [
  [schemaFile, renderSchema],
  [valuesFile, renderValues],
  [settingsFile, renderSettings],
  [admissionFile, renderAdmission],
  [closedFile, renderClosed],
] as const) {
  test(`${file.pathname.split('/').slice(-1).join('')} is what npm run generate writes`, async () => {
    assert.equal(await readFile(file, 'utf8'), render(), 'stale: run `npm run generate` and commit what it writes');
  });
}

test('values.yaml and the required values together are complete', async () => {
  const defaults = parse(await readFile(valuesFile, 'utf8')) as Record<string, object>;
  const given = {
    ...defaults,
    baseDomain: 'apps.example.org',
    image: 'moorage:1',
    pipelineImage: 'pipeline:1',
    gateway: { ...defaults['gateway'], className: 'traefik', namespaceLabels: { name: 'gateway' } },
    registry: { ...defaults['registry'], host: 'registry.example.org' },
  };
  assert.deepEqual(values.parse(given), given);
});

test('the required values cannot be left out', async () => {
  const parsed = values.safeParse(parse(await readFile(valuesFile, 'utf8')));
  assert.deepEqual(parsed.error?.issues.map((issue) => issue.path.join('.')).sort(), [
    'baseDomain',
    'gateway.className',
    'gateway.namespaceLabels',
    'image',
    'pipelineImage',
    'registry.host',
  ]);
});
