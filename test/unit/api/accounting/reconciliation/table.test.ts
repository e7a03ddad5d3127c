// The table that the program prints: both sides, each difference with its cause, and what it comes to.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { formatReconciliation } from '../../../../../api/accounting/reconciliation/table.ts';
import { reconciliations } from '../../../../support/pages/reconciliations.ts';

const [untilNow, different, equal] = reconciliations.map(formatReconciliation);

test('a day on which all is equal', () => {
  assert.ok(equal !== undefined);
  assert.match(equal, /^2026-05-02 \(UTC\), compared at 2026-05-03T00:20:44\.000Z\n/);
  assert.match(
    equal,
    /\n {4}ask {4}812, \$0\.7345120013 {2}= {2}812, \$0\.7345120013\n {4}tools +96, \$0\.192 {2}= +96, \$0\.192\n/,
  );
  assert.match(equal, /\nNothing is unexplained\.\n$/);
});

test('differences: the unexplained are marked, with their cause and what they are about', () => {
  assert.ok(different !== undefined);
  assert.match(different, /Uses of metered calls = settled in the ledger: DIFFERENT\n/);
  assert.match(
    different,
    /\n {2}! -1, -\$0\.0025: settled, and its use is not there \(6f5bce6f-e3c1-4637-bfbc-2750aeb01931\)\n/,
  );
  assert.match(
    different,
    /\n {4}12: lost on the way from the gateway \(traefik-5d9c7b-x2x7q, run 3, requests 40118 to 40129\), between/,
  );
  assert.match(different, /48211 {2}≠ {2}48199\n/);
  assert.match(different, /\n {4}and 3 more\n/);
  assert.match(
    different,
    /\nUnexplained: 4, \$0\.0145\. Explained by hand: Two rows were removed by hand while a backup was restored\.\n$/,
  );
});

test('a day that goes on, of which something is awaited and the bill is not known', () => {
  assert.ok(untilNow !== undefined);
  assert.match(untilNow, /^2026-05-04 \(UTC\), until now, compared/);
  assert.match(untilNow, /billed by the router: not known, because OpenRouter reports a day once it is over\.\n/);
  assert.match(untilNow, /apart: 2, \$0\.0131 cost being looked up\n/);
  assert.match(untilNow, /it is compared again\.\n$/);
});
