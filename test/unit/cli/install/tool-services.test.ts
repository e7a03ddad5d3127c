// The services behind tools that `up` starts.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { backingServices } from '../../../../api/tools/services/backing-services.ts';
import { images } from '../../../../localnode/images/catalog.ts';
import {
  definitionOf,
  sharesOf,
  toolServiceNames,
  toolSettings,
  type ToolState,
} from '../../../../cli/install/tool-services.ts';

test('they are the backing services of the API, each with an image of the catalog but SearXNG', () => {
  assert.deepEqual(toolServiceNames.toSorted(), Object.keys(backingServices).toSorted());
  const inCatalog = images.filter(({ on }) => on === 'tools').map(({ name }) => name);
  const named = toolServiceNames.map((name) => definitionOf(name).image).filter((image) => image !== undefined);
  assert.deepEqual(named.toSorted(), inCatalog.toSorted());
  assert.equal(definitionOf('searxng').image, undefined);
});

test('together they may take 6 GiB at most, and request much less', async () => {
  const { requests, limits } = await sharesOf(toolServiceNames);
  assert.ok(limits.memoryMebibytes <= 6 * 1024, `${limits.memoryMebibytes} MiB`);
  assert.ok(requests.memoryMebibytes <= 2 * 1024, `${requests.memoryMebibytes} MiB`);
  assert.deepEqual(await sharesOf(['gotenberg']), {
    requests: { cpuMilli: 20, memoryMebibytes: 480 },
    limits: { cpuMilli: 3000, memoryMebibytes: 1536 },
  });
});

test('the chart gets which run and why others do not, commas and all', () => {
  const states = new Map<'speech' | 'searxng', ToolState>([
    ['speech', { image: 'docker.io/moorage/speech@sha256:1' }],
    ['searxng', { offBecause: 'no internet, no search' }],
  ]);
  assert.deepEqual(toolSettings(states), [
    'tools.speech.enabled=true',
    'tools.speech.image=docker.io/moorage/speech@sha256:1',
    String.raw`tools.searxng.offBecause=no internet\, no search`,
  ]);
});
