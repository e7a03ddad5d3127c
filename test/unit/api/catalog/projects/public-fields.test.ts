// What the API shows of a HostedApp is an allow-list: a new field is private until it is listed here and in the view.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { toStatusView } from '../../../../../api/apps/index.ts';
import { type StoredSpec, spec } from '../../../../../crds/hosted-app.ts';
import { baseUrl, sampleApp } from '../../../../support/api/sample.ts';
import { type AppsSample, sampleAppsServer } from '../../../../support/apps/sample.ts';
import { createLiveStatus } from '../../../../support/discovery/sample.ts';

let server: AppsSample;
beforeAll(async () => {
  server = await sampleAppsServer();
});
afterAll(() => server.stop());

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
}

/** A value with every field; each text names its path. */
function fillSchema(schema: Schema, path = 'spec'): unknown {
  const { type, properties, additionalProperties, items, anyOf } = schema;
  if (anyOf?.[0] !== undefined) return fillSchema(anyOf[0], path);
  const choice = schema.enum?.[0] ?? schema.const;
  if (choice !== undefined) return choice;
  if (properties !== undefined)
    return Object.fromEntries(
      Object.entries(properties).map(([name, inner]) => [name, fillSchema(inner, `${path}.${name}`)]),
    );
  if (items !== undefined) return [fillSchema(items, `${path}[]`)];
  if (typeof additionalProperties === 'object') return { key: fillSchema(additionalProperties, `${path}.*`) };
  if (type === 'string') return `<${path}>`;
  if (type === 'boolean') return true;
  return 1;
}

test('attack: shows no field of a HostedApp that is not listed as public', async () => {
  const filled = fillSchema(z.toJSONSchema(spec, { io: 'input', unrepresentable: 'any' }) as Schema) as StoredSpec;
  const marked = new Set(JSON.stringify(filled).match(/<spec[^>]*>/g));
  assert.ok(marked.size > 40, String(marked.size));
  const app = sampleApp('draw', undefined, createLiveStatus('https://draw.apps.test/'));
  const { source } = app.spec;
  // A preview has no public page at all.
  const { previewOf, control, ...shownSpec } = filled;
  assert.ok(previewOf !== undefined);
  // The slug is the public name, and no text but one of its form is stored.
  const { slug: _slug, formerSlugs: _former, ...shownControl } = control ?? {};
  const stored = {
    ...app,
    spec: { ...shownSpec, control: shownControl, source: { ...filled.source, repo: source.repo } },
  };
  server.store.replace([stored]);
  const site = { domain: 'apps.test', port: 443 };
  const texts = [JSON.stringify(toStatusView(stored, { baseUrl, site, defaultHost: 'git.test' }))];
  for (const path of ['/api/projects/draw', '/api/projects', '/apps/draw']) {
    const response = await server.request(path);
    assert.equal(response.status, 200, path);
    texts.push((await response.text()).replaceAll('&lt;', '<').replaceAll('&gt;', '>'));
  }
  const shown = new Set(texts.flatMap((text) => text.match(/<spec[^>]*>/g) ?? []));
  assert.deepEqual([...shown].sort(), [
    '<spec.listing.description>',
    '<spec.listing.title>',
    '<spec.listing.upstream>',
  ]);
});
