// What an author accrues of calls: a share of what callers are charged, and nothing of what nobody pays.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { computeKeyedHash } from '../../../../../api/http/request.ts';
import {
  toAuthorAccount,
  toKeyAccount,
  toRevenueAccount,
  type Account,
} from '../../../../../api/billing/ledger/accounts.ts';
import { formatMoney } from '../../../../../api/billing/ledger/money.ts';
import { labels } from '../../../../../crds/names.ts';
import type { App } from '../../../../../api/apps/hosted-apps.ts';
import { formatCallPrice } from '../../../../support/billing/prices.ts';
import { postToday } from '../../../../support/revenue/post-today.ts';
import { sampleAppsServer, type AppsSample } from '../../../../support/apps/sample.ts';
import { startScriptedRouter, type ScriptedRouter } from '../../../../support/models/scripted-router.ts';

const keyOfAuthor = 'sk-of-the-author-12345678';
const nameOf = (key: string): string => computeKeyedHash(`key:${key}`, 'salt');
let router: ScriptedRouter;
let sample: AppsSample;
let mine: App;

beforeAll(async () => {
  router = await startScriptedRouter({
    '/key': (response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"data":{}}');
    },
  });
  sample = await sampleAppsServer({
    environment: {
      MOORAGE_ROUTER_URL: router.url,
      MOORAGE_PRICES: formatCallPrice('0.001'),
      MOORAGE_KEY_LIMIT_USD: '0.01',
      MOORAGE_FREE_QUOTA_USD: '0.005',
    },
  });
  mine = await sample.host(
    'mine',
    (_request, response) => response.end('ok'),
    (app) => ({ ...app, metadata: { ...app.metadata, labels: { [labels.caller]: nameOf(keyOfAuthor) } } }),
  );
});
afterAll(async () => {
  await sample.stop();
  await router.close();
});

const balance = async (account: Account): Promise<string> =>
  formatMoney(await sample.models.ledger.get().ledger.balance(account));
/** What the author has, once the share of today is posted. */
async function share(): Promise<string> {
  const { database } = sample.models.ledger.get();
  await postToday(database, mine, formatCallPrice('0.001'));
  return balance(toAuthorAccount('git.test/octo'));
}
const call = (key?: string): Promise<Response> =>
  sample.request('/api/projects/mine/call/', {
    headers: key === undefined ? { 'x-forwarded-for': '198.51.100.7' } : { authorization: `Bearer ${key}` },
  });

test('attack: an author who calls his own app on the free quota accrues nothing', async () => {
  const statuses = [];
  for (let count = 0; count < 7; count += 1) {
    const answer = await call();
    statuses.push(answer.status);
    if (answer.ok) assert.equal(answer.headers.get('x-charged-usd'), '0', 'the free quota covers it');
  }
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 402, 402]);
  assert.equal(await share(), '0');
});

test('attack: an author who calls his own app with the key that submitted it accrues nothing', async () => {
  assert.equal((await call(keyOfAuthor)).status, 200);
  assert.equal(await share(), '0');
  assert.equal(await balance(toKeyAccount(nameOf(keyOfAuthor))), '0.001');
});

test('of what another caller with a key is charged, the share accrues [spec service.share]', async () => {
  const before = Number(await balance(toRevenueAccount('mine')));
  const answer = await call('sk-of-a-reader-12345678');
  assert.equal(answer.status, 200);
  assert.deepEqual([answer.headers.get('x-cost-usd'), answer.headers.get('x-charged-usd')], ['0.001', '0.001']);
  assert.equal(await share(), '-0.0007');
  assert.equal((Number(await balance(toRevenueAccount('mine'))) - before).toFixed(6), '-0.000300');
});

test('attack: a caller with a key has a limit too, so that no share grows without end', async () => {
  const key = 'sk-of-a-friend-12345678';
  const before = Number(await share());
  const answers = await Promise.all(Array.from({ length: 15 }, () => call(key)));
  const statuses = answers.map(({ status }) => status);
  assert.equal(statuses.filter((status) => status === 200).length, 10);
  assert.equal(statuses.filter((status) => status === 402).length, 5);
  assert.equal((Number(await share()) - before).toFixed(6), '-0.007000');
  const refusal = z
    .looseObject({
      detail: z.string(),
      quota: z.looseObject({ limit: z.string() }),
      actions: z.array(z.looseObject({ action: z.string() })),
    })
    .parse(await answers.find(({ status }) => status === 402)?.json());
  assert.match(refusal.detail, /You have \$0 of your \$0\.01 daily limit for tools, apps and margins with a key left/);
  assert.equal(refusal.quota.limit, '0.01');
  assert.deepEqual(refusal.actions.map(({ action }) => action).sort(), ['use-models', 'wait']);
  assert.deepEqual(await sample.models.ledger.get().ledger.audit(), []);
});
