// What zod lets through as a HostedApp spec, what it fills in, and what it says about the rest.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { spec } from '../../../crds/hosted-app.ts';
import { parseQuantityValue } from '../../../crds/values.ts';
import { refusals, structuralRefusals } from '../../support/crds/refusals.ts';

test('a repository alone makes a complete app', () => {
  assert.deepEqual(spec.parse({ source: { repo: 'https://github.com/owner/name' } }), {
    source: { repo: 'https://github.com/owner/name', path: '.', interval: '5m' },
    build: {
      strategy: 'auto',
      dockerfile: 'Dockerfile',
      args: [],
      env: [],
      resources: { cpu: '2', memory: '4Gi', disk: '10Gi' },
      timeout: '20m',
    },
    review: { waivers: [] },
    run: {
      command: [],
      env: [],
      secrets: [],
      resources: { cpu: '1', memory: '512Mi', disk: '1Gi' },
      replicas: 1,
      volumes: [],
      startupTime: '2m',
      idle: 'sleep',
    },
    components: [],
    services: [],
    tasks: [],
    models: { enabled: false, dailyBudgetUsd: '1' },
    agents: { enabled: false, openapi: '/openapi.json', mcp: '/mcp' },
    mcp: { command: [] },
    metering: { free: [] },
    previews: { pullRequests: false, branches: [], limit: 3 },
    listing: { category: 'other' },
    author: { share: '0.7' },
    submission: {},
    deletionPolicy: 'Delete',
    suspend: false,
  });
});

for (const { what, given, fix } of refusals) {
  test(`refuses ${what}, and says the fix`, () => {
    const parsed = spec.safeParse(given);
    assert.equal(parsed.success, false);
    assert.match(parsed.error.issues.map((issue) => issue.message).join('\n'), fix);
  });
}

for (const { what, given } of structuralRefusals) {
  test(`refuses ${what}`, () => {
    assert.equal(spec.safeParse(given).success, false);
  });
}

test('parses quantities into cores and bytes', () => {
  assert.deepEqual(['250m', '1.5', '2Ki', '1G', '', '1e3', '-1', '1Ei'].map(parseQuantityValue), [
    0.25,
    1.5,
    2048,
    1e9,
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});
