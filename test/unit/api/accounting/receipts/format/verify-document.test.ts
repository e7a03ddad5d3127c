// Signed documents: each kind is right as it is, and a thousand random edits of one are all found.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { afterAll, beforeAll, test } from 'vitest';
import { type Database, openDatabase } from '../../../../../../api/billing/index.ts';
import { toCanonicalJson } from '../../../../../../api/accounting/receipts/format/hashes.ts';
import type { LedgerDay } from '../../../../../../api/accounting/receipts/format/documents.ts';
import { signDocument } from '../../../../../../api/accounting/receipts/format/signature.ts';
import { verifyDocument } from '../../../../../../api/accounting/receipts/format/verify-document.ts';
import { readProofs } from '../../../../../../api/accounting/receipts/receipts.ts';
import { days as daysStatement } from '../../../../../../api/accounting/receipts/ledger-log-queries.ts';
import { migratedDatabase } from '../../../../../support/ledger/snapshot.ts';
import { advanceTo, issuer, keys, postAt, privateKey } from '../../../../../support/receipts/record.ts';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

let database: Database;
let days: Map<string, LedgerDay>;
let lines: Record<string, Json>[];

beforeAll(async () => {
  database = await openDatabase(migratedDatabase);
  const ids: string[] = [];
  for (let n = 0; n < 12; n += 1)
    ids.push(
      await postAt(database, {
        reference: `settle:r${n}`,
        at: `2026-03-0${1 + (n % 3)}T12:00:00Z`,
        amount: `0.00${n + 1}`,
      }),
    );
  await advanceTo(database, '2026-03-05T12:00:00Z');
  ids.push(await postAt(database, { reference: 'settle:open', at: '2026-03-05T12:30:00Z', amount: '0.5' }));
  await advanceTo(database, '2026-03-05T13:00:00Z');
  const proofs = await readProofs(database, ids);
  days = new Map((await database.query(daysStatement, [null, 100])).map(({ document }) => [document.day, document]));
  lines = ids.map((id) => {
    const { leaf, proof = null } = proofs.get(id) ?? assert.fail();
    const [entry] = leaf.entries;
    assert.ok(entry !== undefined);
    return JSON.parse(
      JSON.stringify({
        ...{ hold: leaf.reference.slice('settle:'.length), at: leaf.at, cost_usd: entry.amount, charged_usd: '0' },
        ...{ account: entry.account, amount: entry.amount, leaf, proof },
      }),
    ) as Record<string, Json>;
  });
});
afterAll(() => database.close());

const verify = (document: unknown) => verifyDocument(document, { keys, days });
const signed = (changed: readonly Record<string, Json>[], type = 'lines') =>
  signDocument({ type, issuer, caller: 'caller', day: '2026-03-01', lines: [...changed] }, privateKey);

test('lines are proven where their day is sealed, and right where it is open', async () => {
  assert.deepEqual(await verify(await signed(lines)), { findings: [], lines: 13, proven: 12, unbound: 0 });
});

test('what the issuer itself signed wrongly is found as well', async () => {
  const [first = {}, second = {}] = lines;
  const said = async (change: Record<string, Json>) =>
    (await verify(await signed([{ ...first, ...change }], 'charges'))).findings.join();
  assert.match(await said({ amount: '0.002' }), /line 1: its amount is 0.002, transaction 1 posts 0.001/);
  assert.match(await said({ cost_usd: '0.002' }), /its cost_usd is 0.002, transaction 1 has 0.001/);
  assert.match(await said({ account: { kind: 'caller', owner: 'other', day: null } }), /posts nothing to the account/);
  assert.match(await said({ proof: second['proof'] ?? null }), /is not in the sealed day 2026-03-02/);
  assert.match(
    await said({
      leaf: second['leaf'] ?? null,
      amount: '0.002',
      cost_usd: '0.002',
      hold: second['hold'] ?? null,
      account: second['account'] ?? null,
    }),
    /is not in the sealed day/,
  );
  assert.match(await said({ leaf: null }), /an amount or a proof without a transaction/);
  const pending = { leaf: null, amount: null, proof: null, charged_usd: null };
  assert.equal(await said({ ...pending, cost_usd: null }), '');
  assert.match(await said({ ...pending, cost_usd: '1' }), /it has a cost, and no transaction/);
  assert.equal(await said({ ...pending, cost_usd: '1', at: '2026-03-05T12:00:00Z' }), '', 'its day is open');
  assert.match(
    (await verify(await signed([first, first]))).findings.join(),
    /line 2: transaction 1 is in an earlier line/,
  );
  const without = await verifyDocument(await signed(lines), { keys, days: new Map() });
  assert.match(without.findings.join(), /the sealed day 2026-03-01 is not known: give it with --days/);
});

test('charges of the earlier form stay valid, and say which of their fields are not in the ledger', async () => {
  const ofDay = lines.filter(({ at }) => typeof at === 'string' && at.startsWith('2026-03-01'));
  const verdict = await verify(await signed(ofDay, 'charges'));
  assert.deepEqual(verdict, { findings: [], lines: 4, proven: 4, unbound: 4 });
  assert.match(
    (await verify(await signed(ofDay, 'charges-2'))).findings.join(),
    /line 1: transaction 1 does not have the call that it settles/,
  );
});

test('a day that must be sealed by the clock needs proofs as well', async () => {
  const open = await signed(lines.slice(-1));
  assert.deepEqual((await verifyDocument(open, { keys, days, due: '2026-03-04' })).findings, []);
  assert.match(
    (await verifyDocument(open, { keys, days, due: '2026-03-05' })).findings.join(),
    /transaction 13 has no proof, although 2026-03-05 is over: fetch the document again/,
  );
});

test('days are checked by their signatures and by the order that they name', async () => {
  const all = [...days.values()];
  const list = (of: readonly unknown[]) => ({ type: 'ledger-days', issuer, days: of, next: null });
  assert.deepEqual((await verify(list(all))).findings, []);
  assert.deepEqual((await verify(list(all.toReversed()))).findings, []);
  assert.match(
    (await verify(list(all.filter(({ day }) => day !== '2026-03-02')))).findings.join(),
    /2026-03-02: the day is missing/,
  );
  assert.match((await verify(list(all.map((day) => ({ ...day, count: 1 }))))).findings.join(), /was changed/);
  const [newest, ...rest] = all;
  assert.ok(newest !== undefined);
  const { signature: _old, ...content } = newest;
  const other = await signDocument({ ...content, previous: content.root }, privateKey);
  assert.match((await verify(list([other, ...rest]))).findings.join(), /follows another 2026-03-03/);
  assert.deepEqual((await verify(newest)).findings, []);
  assert.match((await verify({ ...newest, day: '2026-03-09' })).findings.join(), /was changed/);
  assert.match((await verify({ hello: 1 })).findings.join(), /no type/);
});

/** Every place in a document. */
function placesOf(value: Json, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inside = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  return [path, ...inside.flatMap(([key, child]) => placesOf(child, [...path, key]))];
}

type Change = (value: Json, by: number) => Json | undefined;

/** What may be done to a value; undefined removes it. */
const changes: readonly Change[] = [
  () => undefined,
  () => null,
  (_value, by) => by,
  (value) => [value],
  (value, by) =>
    typeof value === 'string'
      ? value.slice(0, by % (value.length + 1)) +
        String.fromCharCode(33 + (by % 90)) +
        value.slice((by % (value.length + 1)) + 1)
      : 'x',
  (value) => (typeof value === 'string' ? `${value} ` : false),
  (value) => (typeof value === 'string' ? value.toUpperCase() : true),
  (value) => (typeof value === 'number' ? value + 1 : {}),
  (value) => (Array.isArray(value) ? value.toReversed() : ''),
  (value) => (Array.isArray(value) ? [...value, ...value.slice(0, 1)] : []),
  (value) => (typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value, more: 1 } : '\ud800'),
];

function edit(
  value: Json,
  path: readonly (string | number)[],
  change: (value: Json) => Json | undefined,
): Json | undefined {
  const [key, ...rest] = path;
  if (key === undefined) return change(value);
  if (Array.isArray(value))
    return value.flatMap((child, index) => {
      const next = index === key ? edit(child, rest, change) : child;
      return next === undefined ? [] : [next];
    });
  return Object.fromEntries(
    Object.entries(value as Record<string, Json>).flatMap(([name, child]) => {
      const next = name === key ? edit(child, rest, change) : child;
      return next === undefined ? [] : [[name, next]];
    }),
  );
}

test('a thousand random edits of a signed document are all found', async () => {
  const document = JSON.parse(JSON.stringify(await signed(lines))) as Json;
  const places = placesOf(document);
  let edits = 0;
  await fc.assert(
    fc.asyncProperty(fc.nat(places.length - 1), fc.nat(changes.length - 1), fc.nat(10_000), async (place, kind, by) => {
      const edited = edit(document, places[place] ?? [], (value) => changes[kind]?.(value, by)) ?? null;
      fc.pre(JSON.stringify(edited).includes('\\ud800') || toCanonicalJson(edited) !== toCanonicalJson(document));
      edits += 1;
      assert.notDeepEqual((await verify(edited)).findings, []);
    }),
    { numRuns: 1_000 },
  );
  assert.ok(edits >= 1_000);
});
