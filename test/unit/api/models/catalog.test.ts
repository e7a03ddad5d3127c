// models.yaml: what is shipped, and what is said of a wrong one.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { readCatalog } from '../../../../api/models/catalog.ts';
import { parseMoney } from '../../../../api/billing/ledger/money.ts';
import { pickSpread } from '../../../../api/models/comparison.ts';

test('the models shipped are the ten of the interface, in its order [spec models.ids]', () => {
  assert.deepEqual(readCatalog().ids, [
    'alpha-v4-flash',
    'beta-K3',
    'beta-K3-codex',
    'gamma5.2',
    'delta-5.6-luna',
    'epsilon-3.5-flash',
    'zeta-sonnet-5',
    'delta-5.5',
    'zeta-opus-4-8',
    'zeta-fable-5',
  ]);
  assert.equal(readCatalog().preferred.id, 'alpha-v4-flash');
});

test('prices are read from their digits', () => {
  assert.equal(readCatalog().byId.get('alpha-v4-flash')?.in_per_m, parseMoney('0.07'));
});

const good = {
  id: 'a',
  label: 'A',
  maker: 'a',
  quality: 'light',
  tier: 'free',
  in_per_m: '1',
  out_per_m: '2',
  upstream: 'a/a',
};
const text = (...models: object[]): string => JSON.stringify({ models });

for (const { name, file, says } of [
  {
    name: 'a price with a sign',
    file: text({ ...good, in_per_m: '-1' }),
    says: /models\.0\.in_per_m: "-1" is not an amount/,
  },
  { name: 'a price in words', file: text({ ...good, out_per_m: 'cheap' }), says: /models\.0\.out_per_m/ },
  { name: 'another tier', file: text({ ...good, tier: 'gold' }), says: /models\.0\.tier/ },
  { name: 'no upstream', file: text({ ...good, upstream: '' }), says: /models\.0\.upstream/ },
  { name: 'a field that is not known', file: text({ ...good, price: '1' }), says: /Unrecognized key: "price"/ },
  { name: 'an id twice', file: text(good, good), says: /a is listed twice/ },
  {
    name: 'no free model',
    file: text({ ...good, tier: 'premium' }),
    says: /at least one model must be in the free tier/,
  },
  { name: 'broken YAML', file: 'models: [', says: /cannot read .*models\.yaml; set MOORAGE_MODELS_FILE .*line 1/s },
  { name: 'no model', file: text(), says: /models/ },
]) {
  test(`a models.yaml with ${name} is refused by its path`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'moorage-catalog-'));
    const path = join(folder, 'models.yaml');
    writeFileSync(path, file);
    assert.throws(() => readCatalog(path), says);
    rmSync(folder, { recursive: true });
  });
}

test('a spread differs in price, quality and maker, for callers with and without a key [spec compare.spread-of-3]', () => {
  const { models } = readCatalog();
  const free = pickSpread(models.filter(({ tier }) => tier === 'free'));
  const all = pickSpread(models);
  for (const spread of [free, all]) {
    assert.equal(spread.length, 3);
    assert.equal(new Set(spread.map(({ maker }) => maker)).size, 3);
    assert.ok(new Set(spread.map(({ quality }) => quality)).size >= 2);
  }
  assert.deepEqual(
    free.map(({ id }) => id),
    ['alpha-v4-flash', 'delta-5.6-luna', 'beta-K3'],
  );
  assert.deepEqual([all[0]?.id, all[2]?.id], ['alpha-v4-flash', 'zeta-fable-5']);
  assert.deepEqual(pickSpread(models.slice(0, 2)).length, 2);
  assert.deepEqual(pickSpread([]), []);
});
