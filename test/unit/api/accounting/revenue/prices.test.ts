// GET /api/prices: what each version of the price list says of each tool.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';
import { sampleTools } from '../../../../support/tools/sample-tools.ts';

const [named, ...others] = sampleTools;
const first = { from: '2026-01-01', announced: '2026-01-01' };
let sample: AppsSample;

beforeAll(async () => {
  const versions = [
    { ...first, version: 'before' },
    { version: 'in-effect', from: '2026-02-01', announced: '2026-01-01', tools: { [named?.name ?? '']: '0.5' } },
    { version: 'announced', from: '2099-01-01', announced: '2098-01-01' },
  ];
  sample = await sampleAppsServer({ environment: { MOORAGE_PRICES: JSON.stringify(versions) } });
});
afterAll(() => sample.stop());

test('where a version names no price for a tool, it is the tool’s own, whichever version is in effect', async () => {
  const answer = await sample.request('/api/prices');
  const { current, versions } = z
    .object({
      current: z.string(),
      versions: z.array(z.looseObject({ version: z.string(), tools: z.record(z.string(), z.string()) })),
    })
    .parse(await answer.json());
  assert.equal(current, 'in-effect');
  const own = Object.fromEntries(sampleTools.map(({ name, price }) => [name, price]));
  const listed = { ...Object.fromEntries(others.map(({ name, price }) => [name, price])), [named?.name ?? '']: '0.5' };
  assert.notEqual(named?.price, '0.5');
  assert.deepEqual(
    versions.map(({ version, tools }) => [version, tools]),
    [
      ['before', own],
      ['in-effect', listed],
      ['announced', own],
    ],
  );
});
