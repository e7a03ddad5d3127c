// What a caller is asked to do when the router account of the installation is out of credit.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { parseMoney, zero } from '../../../../api/billing/ledger/money.ts';
import { createAnonymousPayer, createAppPayer, createKeyPayer } from '../../../../api/billing/ledger/accounts.ts';
import { createCallProblem } from '../../../../api/models/problems.ts';
import { RouterFailure, toRefusal } from '../../../../api/models/router/failures.ts';

const limits = {
  router: 'openrouter',
  freeQuota: parseMoney('1'),
  dailyCap: parseMoney('10'),
  keyLimit: parseMoney('5'),
};
const settlement = { cost: undefined, charged: zero, source: 'none', latencyMs: 1, quota: undefined } as const;
const outOfCredit = new RouterFailure('credit', 'Insufficient credits');

test('a caller is offered to send a key of its own', () => {
  const { message } = createCallProblem(outOfCredit, settlement, 'a', createAnonymousPayer('somebody', limits));
  assert.match(message, /out of credit\. To continue now, send your own API key/);
});

test('a hosted app, which cannot send one, is referred to the operator of this installation', () => {
  const { message } = createCallProblem(outOfCredit, settlement, 'a', createAppPayer('chat', parseMoney('1'), limits));
  assert.match(message, /out of credit\. The operator of this installation needs to add credit to it\.$/);
  assert.doesNotMatch(message, /API key/);
});

test('the text of the router is for the owner of the key; others read in our words what they can do', () => {
  const key = createKeyPayer('me', 'sk-x', limits);
  const anonymous = createAnonymousPayer('somebody', limits);
  for (const [status, said, says] of [
    [
      400,
      "This model's maximum context length is 8192 tokens (org-secret)",
      /more than the model can take\. Shorten the prompt/,
    ],
    [400, 'Provider acme-internal: flagged by moderation (org-secret)', /content filter .*choose another model/],
    [400, 'No endpoints found that support image input (org-secret)', /does not take this image/],
    [400, 'temperature must be 1 for this deployment (org-secret)', /does not take this temperature/],
    [422, 'weird (org-secret)', /not one that it takes/],
    [429, 'Rate limit of org-secret exceeded', /accepts no more calls at the moment/],
    [500, 'acme at 10.0.0.7 is down (org-secret)', /responded with status 500/],
  ] as const) {
    const failure = toRefusal(status, said);
    const shown = createCallProblem(failure, settlement, 'a', anonymous).message;
    assert.match(shown, says);
    assert.doesNotMatch(shown, /org-secret/);
    assert.match(createCallProblem(failure, settlement, 'a', key).message, /org-secret/);
  }
});
