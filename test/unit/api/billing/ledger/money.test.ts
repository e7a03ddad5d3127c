// Money is read, written and divided without losing a pico-dollar.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import {
  formatMoney,
  formatUsd,
  MoneyError,
  toDollarNumber,
  parseBilled,
  parseMoney,
  fromPicoDollars,
  computePrice,
  computeShare,
  sumMoney,
} from '../../../../../api/billing/ledger/money.ts';

const amounts = fc.bigInt({ min: 0n, max: 10n ** 20n - 1n }).map(fromPicoDollars);

test('amounts that routers really send are read exactly', () => {
  const table: readonly [string, bigint][] = [
    ['1.35e-05', 13_500_000n],
    ['0.25', 250_000_000_000n],
    ['0', 0n],
    ['0e-30', 0n],
    ['1e2', 100_000_000_000_000n],
    ['1E+2', 100_000_000_000_000n],
    ['000.1', 100_000_000_000n],
    ['1e-12', 1n],
    ['0.000000000001000', 1n],
    ['12.5e-1', 1_250_000_000_000n],
    ['99999999.999999999999', 10n ** 20n - 1n],
    ['0.00000000000000000001e10', 100n],
  ];
  for (const [text, pico] of table) {
    assert.equal(parseMoney(text), pico, text);
    assert.equal(parseBilled(text), pico, text);
  }
});

test('what is not an amount is refused with the reason', () => {
  for (const text of [
    '',
    ' 1',
    '-1',
    '+1',
    '-0',
    'NaN',
    'Infinity',
    '1,5',
    '.5',
    '5.',
    '1e',
    '0x10',
    '1_000',
    '$1',
    '1e99999',
    '1 USD',
  ]) {
    assert.throws(() => parseMoney(text), MoneyError, text);
    assert.throws(() => parseBilled(text), MoneyError, text);
  }
  for (const text of ['100000000', '1e8', '1e9999', '99999999.9999999999995'])
    assert.throws(() => parseBilled(text), /more than the ledger can hold/, text);
  assert.throws(() => parseMoney('1e-13'), /digit below 10\^-12/);
});

test('a billed cost is rounded half up below the pico-dollar, and nowhere else', () => {
  const table: readonly [string, bigint][] = [
    ['4.2000000000000004e-05', 42_000_000n],
    ['4.4999999999999996e-07', 450_000n],
    ['5e-13', 1n],
    ['4.9e-13', 0n],
    ['9e-14', 0n],
    ['1e-9999', 0n],
    ['0.0000000000015', 2n],
    ['0.00000000000149999', 1n],
  ];
  for (const [text, pico] of table) assert.equal(parseBilled(text), pico, text);
});

test('text and amount turn into each other exactly', () => {
  fc.assert(
    fc.property(amounts, (amount) => {
      assert.equal(parseMoney(formatMoney(amount)), amount);
    }),
  );
});

test('any way to write a decimal with an exponent is the same amount', () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: 0n, max: 10n ** 15n }),
      fc.integer({ min: -12, max: 4 }),
      fc.nat({ max: 20 }),
      (digits, exponent, zeros) => {
        const expected = digits * 10n ** BigInt(exponent + 12);
        fc.pre(expected < 10n ** 20n);
        assert.equal(parseMoney(`${digits.toString()}e${exponent}`), expected);
        assert.equal(
          parseMoney(`${'0'.repeat(zeros)}${digits.toString()}.${'0'.repeat(zeros + 1)}E${exponent}`),
          expected,
        );
      },
    ),
  );
});

test('below 1000 USD the JSON number at the edge parses back to the same amount', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 15n - 1n }).map(fromPicoDollars), (amount) => {
      assert.equal(parseMoney(JSON.stringify(toDollarNumber(amount))), amount);
    }),
    { numRuns: 500 },
  );
});

test('a reservation is never less than the exact price, by less than a pico-dollar more', () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 2_000_000 }),
      fc.bigInt({ min: 0n, max: 10n ** 15n }).map(fromPicoDollars),
      (tokens, perMillion) => {
        const excess = computePrice(tokens, perMillion) * 1_000_000n - BigInt(tokens) * perMillion;
        assert.ok(excess >= 0n && excess < 1_000_000n);
      },
    ),
  );
  assert.equal(computePrice(3, parseMoney('0.15')), parseMoney('0.00000045'));
  assert.throws(() => computePrice(-1, parseMoney('1')), MoneyError);
  assert.throws(() => computePrice(1.5, parseMoney('1')), MoneyError);
});

test('shares of an amount never add up to more than the whole', () => {
  fc.assert(
    fc.property(amounts, fc.nat({ max: 1_000_000 }), (amount, share) => {
      const parts = sumMoney([computeShare(amount, share), computeShare(amount, 1_000_000 - share)]);
      assert.ok(parts <= amount && amount - parts <= 1n);
    }),
  );
});

test('for people, the sign stands before the dollar', () => {
  assert.equal(formatUsd(fromPicoDollars(-100_000_000_000n)), '-$0.1');
  assert.equal(formatUsd('-0.000000000001'), '-$0.000000000001');
  assert.deepEqual([formatUsd(fromPicoDollars(0n)), formatUsd('2.50')], ['$0', '$2.50']);
});

test('amounts the ledger cannot store are refused', () => {
  assert.throws(() => fromPicoDollars(10n ** 20n), MoneyError);
  assert.throws(() => sumMoney([parseMoney('99999999'), parseMoney('1')]), MoneyError);
  assert.equal(formatMoney(fromPicoDollars(-500_000_000_000n)), '-0.5');
});
