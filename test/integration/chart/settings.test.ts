// The chart's templates write each setting as lib/settings.ts says, which is what its process reads.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { listSettings, processes } from '../../../charts/settings.ts';
import { formatValue } from '../../../lib/settings.ts';
import { chart, readEnvironment, render, required } from '../../support/chart.ts';

test('writes every setting into its variable as its process reads it', async () => {
  const changed = {
    ...required,
    externalPort: 8443,
    submissions: { modelsUsd: '0.25' },
    logLevel: 'debug',
    api: { trustedProxies: ['10.244.0.0/16', 'fd00::/8'] },
    apps: { idleAfter: 'auto', max: 99_999 },
    database: { keepDays: 1_000_000 },
    gateway: { ...required.gateway, namespaceLabels: { name: 'gateway', team: 'edge' }, hstsSeconds: 31_536_000 },
    prices: { versions: [{ from: '2030-01-01', note: 'a "quoted" text' }] },
    registry: { ...required.registry, insecure: true, missingImages: ['golang:1.26', 'node:26'], prune: false },
  };
  const defaults: unknown = parse(readFileSync(`${chart}/values.yaml`, 'utf8'));
  const components = { operator: 'operator', registryProxy: 'registry-proxy', activator: 'activator', api: 'api' };
  for (const values of [required, changed]) {
    const objects = await render(values);
    for (const [name, component] of Object.entries(components)) {
      const variables = readEnvironment(objects, component);
      for (const { variable, value } of processes
        .filter((process) => ['log', name].includes(process.name))
        .flatMap(listSettings)) {
        const path = value.path.split('.');
        const text = formatValue(value, readAt(values, path) ?? readAt(defaults, path));
        const expected = value.omitEmpty && ['', '[]'].includes(text) ? undefined : text;
        assert.equal(variables[variable], expected, `${component}: ${variable}`);
      }
    }
  }
});

function readAt(values: unknown, path: readonly string[]): unknown {
  return path.reduce((inner, key) => z.record(z.string(), z.unknown()).safeParse(inner).data?.[key], values);
}
