// The price list: which version is in effect, what is refused, and that what was announced stays.
import assert from 'node:assert/strict';
import { pino } from 'pino';
import { test } from 'vitest';
import { createAnonymousPayer, createKeyPayer } from '../../../../api/billing/ledger/accounts.ts';
import { openLedgerDatabase } from '../../../../api/billing/database/database.ts';
import { formatMoney, parseMoney } from '../../../../api/billing/ledger/money.ts';
import {
  computeCharge,
  toMarginLines,
  computeMargin,
  type PriceList,
  readPriceList,
  resolveToolPrice,
} from '../../../../api/billing/prices.ts';
import { recordPrices } from '../../../../api/accounting/revenue/prices.ts';
import { migratedDatabase } from '../../../support/ledger/snapshot.ts';

const first = { version: 'a', from: '2026-01-01', announced: '2025-12-01' };
const second = { version: 'b', from: '2026-03-01', announced: '2026-02-01', tools: { web_search: '0.5' } };
const read = (...versions: object[]): PriceList => readPriceList(JSON.stringify(versions), 14);
const limits = { router: 'litellm', freeQuota: parseMoney('1'), dailyCap: parseMoney('1'), keyLimit: parseMoney('1') };
const keyed = createKeyPayer('caller', 'sk-key', limits);

test('a version is in effect from 00:00 UTC of its day on, and the first one before', () => {
  const list = read(first, second);
  const at = (time: string): string => list.at(new Date(time)).version;
  assert.deepEqual(
    ['2020-01-01T00:00:00Z', '2026-02-28T23:59:59.999Z', '2026-03-01T00:00:00Z', '2030-01-01T00:00:00Z'].map(at),
    ['a', 'a', 'b', 'b'],
  );
  assert.equal(formatMoney(resolveToolPrice(list.at(new Date('2026-04-01')), 'web_search', '0.0002')), '0.5');
  assert.equal(formatMoney(resolveToolPrice(list.at(new Date('2026-04-01')), 'ocr_image', '0.0002')), '0.0002');
});

test('what is wrong with a price list is said field by field', () => {
  const fault = (...versions: object[]): string => {
    try {
      read(...versions);
    } catch (error) {
      return String(error);
    }
    return '';
  };
  assert.match(fault(), /must have at least one version|at least/i);
  assert.match(fault({ ...first, use: '-1' }), /0\.use: .*without sign/);
  assert.match(fault({ ...first, modelMargin: '1.5' }), /0\.modelMargin: must be a share from 0 to 1/);
  assert.match(fault(first, { ...second, from: '2026-01-01' }), /1\.from: must be after 2026-01-01/);
  assert.match(
    fault(first, { ...second, announced: '2026-02-20' }),
    /1\.from: must be at least 14 days after it was announced/,
  );
  assert.match(fault(first, { ...second, version: 'a' }), /1\.version: a is used twice/);
  assert.match(fault({ ...first, unknown: 1 }), /unknown/i);
  assert.throws(() => readPriceList('{', 14), /invalid price list/);
});

test('during the beta a comparison is charged to nobody; a caller with a key is charged tools and a margin', () => {
  const beta = readPriceList(undefined, 14).at();
  assert.equal(computeCharge(parseMoney('1'), keyed, beta, 'compare_models'), 0n);
  assert.equal(computeCharge(parseMoney('1'), keyed, beta, 'web_search'), parseMoney('1'));
  assert.equal(computeCharge(parseMoney('1'), createAnonymousPayer('x', limits), beta, 'web_search'), 0n);
  const version = read({ ...first, modelMargin: '0.05', free: ['compare_models'] }).at();
  const margin = computeMargin(parseMoney('0.000000000119'), keyed, version, 'ask_model');
  assert.equal(formatMoney(margin), '0.000000000005', 'rounded down');
  assert.equal(computeMargin(parseMoney('1'), keyed, version, 'compare_models'), 0n);
  assert.equal(
    toMarginLines(margin, keyed, 'litellm').reduce((sum, { amount }) => sum + amount, 0n),
    0n,
  );
  assert.deepEqual(toMarginLines(parseMoney('0'), keyed, 'litellm'), []);
});

test('a version that was recorded stays as it was announced, and a new one keeps its notice', async () => {
  const database = await openLedgerDatabase(migratedDatabase);
  const faults: string[] = [];
  const log = pino({}, { write: (line: string) => void faults.push(line) });
  const keep = async (list: PriceList, day: string): Promise<string[]> => {
    faults.length = 0;
    await recordPrices(database, list, { noticeDays: 14, log, now: new Date(`${day}T12:00:00Z`) });
    return list.versions.map(({ version, use }) => `${version} ${formatMoney(use)}`);
  };
  assert.deepEqual(await keep(read(first), '2026-01-10'), ['a 0.0001']);
  assert.deepEqual(await keep(read({ ...first, use: '0.5' }), '2026-01-11'), ['a 0.0001']);
  assert.match(faults.join(''), /version a was announced with other prices/);
  assert.deepEqual(await keep(read(first, second), '2026-02-25'), ['a 0.0001']);
  assert.match(faults.join(''), /less than 14 days from today \(2026-02-25\)/);
  assert.deepEqual(await keep(read(first, second), '2026-02-02'), ['a 0.0001', 'b 0.0001']);
  assert.equal(faults.join(''), '');
  assert.deepEqual(
    await keep(read(first), '2026-02-03'),
    ['a 0.0001', 'b 0.0001'],
    'what was announced is not taken back',
  );
  await database.close();
});
