// What a caller is asked to do when the router account of the installation is out of credit.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseMoney, zero } from '../../../../api/billing/ledger/money.ts';
import { anonymousPayer, appPayer } from '../../../../api/billing/payer.ts';
import { callProblem } from '../../../../api/models/metered/call-problem.ts';
import { RouterFailure } from '../../../../api/models/router/failure.ts';

const limits = {
  router: 'openrouter',
  freeQuota: parseMoney('1'),
  dailyCap: parseMoney('10'),
  keyLimit: parseMoney('5'),
};
const settlement = { cost: undefined, charged: zero, source: 'none', latencyMs: 1, quota: undefined } as const;
const outOfCredit = new RouterFailure('credit', 'Insufficient credits');

test('a caller is offered to send a key of its own', () => {
  const { message } = callProblem(outOfCredit, settlement, 'a', anonymousPayer('somebody', limits));
  assert.match(message, /out of credit\. To continue now, send your own API key/);
});

test('a hosted app, which cannot send one, is referred to the operator of this installation', () => {
  const { message } = callProblem(outOfCredit, settlement, 'a', appPayer('chat', parseMoney('1'), limits));
  assert.match(message, /out of credit\. The operator of this installation needs to add credit to it\.$/);
  assert.doesNotMatch(message, /API key/);
});
