// Whose revenue it is: an owner name that is given to another account freezes what the earlier one earned.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { readAuthorship } from '../../../../../api/apps/hosted-apps.ts';
import { parseMoney } from '../../../../../api/billing/ledger/money.ts';
import { recordUses } from '../../../../../api/accounting/metering/usage-store.ts';
import { readPriceList } from '../../../../../api/billing/prices.ts';
import { readReport } from '../../../../../api/catalog/projects/forges.ts';
import { adjust, listFrozen, unfreeze } from '../../../../../api/accounting/revenue/corrections.ts';
import { bindAuthor, noteAuthors, postAppDay } from '../../../../../api/accounting/revenue/statement.ts';
import { hashAuthorKey, createAuthorKey } from '../../../../../lib/ownership-file.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';

const author = 'git.test/octo';
const key = createAuthorKey();
const rules = { prices: readPriceList(undefined, 0), budget: parseMoney('1000') };
const day = new Date().toISOString().slice(0, 10);
let sample: AppsSample;
beforeAll(async () => {
  sample = await sampleAppsServer();
  const app = await sample.host(
    'mine',
    (_request, response) => response.end('ok'),
    (one) => ({ ...one, status: { ...one.status, authorKeys: [hashAuthorKey(key, 'git.test/octo/mine')] } }),
  );
  await noteAuthors(sample.models.ledger.get().database, [readAuthorship(app)]);
});
afterAll(() => sample.stop());

async function visit(id: string): Promise<number> {
  const { database } = sample.models.ledger.get();
  await recordUses(database, [{ id, kind: 'visit', app: 'mine', caller: id, at: `${day}T00:00:00Z`, class: 'use' }]);
  return postAppDay(database, { app: 'mine', day, ...rules });
}
const read = (path: string): Promise<Response> =>
  sample.request(`/api/authors/octo/${path}`, { headers: { authorization: `Bearer ${key}` } });
const account = (owner: object): string => {
  const body = Buffer.from(JSON.stringify({ stargazers_count: 1, owner }));
  return readReport('github', body)?.account ?? assert.fail('no account');
};

test('attack: whoever takes over an owner name reads, accrues and is paid nothing of the earlier account', async () => {
  const { database } = sample.models.ledger.get();
  assert.equal(await bindAuthor(database, { author, account: account({ login: 'octo', id: 1 }) }), 'bound');
  assert.equal(await visit('first'), 1);
  assert.equal((await read('statement')).status, 200);
  assert.equal(await bindAuthor(database, { author, account: account({ login: 'Octo', id: 1 }) }), 'known');

  assert.equal(await bindAuthor(database, { author, account: account({ login: 'octo', id: 2 }) }), 'frozen');
  for (const path of ['statement', 'statements', 'lines/1/events']) {
    const refused = await read(path);
    assert.equal(refused.status, 409, path);
    assert.match(z.looseObject({ type: z.string() }).parse(await refused.json()).type, /author-frozen$/);
  }
  assert.equal(await visit('second'), 0, 'nothing accrues');
  await assert.rejects(
    adjust(database, { kind: 'payout', author, amount: '-0.00007', id: 'bank', reason: 'bank' }),
    /git\.test\/octo is frozen: it was github:1 and is github:2 now/,
  );
});

test('the operator decides whose it is, and the days since then are posted', async () => {
  const { database } = sample.models.ledger.get();
  assert.deepEqual(
    (await listFrozen(database)).map(({ account: was, found }) => [was, found]),
    [['github:1', 'github:2']],
  );
  await assert.rejects(unfreeze(database, author, 'github:3'), /is not frozen, or was never github:3/);
  await unfreeze(database, author, 'github:2');
  assert.equal(await visit('third'), 1);
  assert.equal((await read('statement')).status, 200);
  assert.equal(await bindAuthor(database, { author, account: 'github:2' }), 'known');
});

test('each kind of forge names its account, and one that names none binds nobody', () => {
  const report = (kind: 'github' | 'gitea' | 'gitlab', body: object): string | undefined =>
    readReport(kind, Buffer.from(JSON.stringify(body)))?.account;
  assert.equal(report('gitea', { stars_count: 1, owner: { id: 7 } }), 'gitea:7');
  assert.equal(report('gitlab', { star_count: 1, namespace: { id: 9 } }), 'gitlab:9');
  for (const owner of [undefined, null, {}, { id: 'x' }, { id: 0 }])
    assert.equal(report('github', { stargazers_count: 1, owner }), undefined);
});
