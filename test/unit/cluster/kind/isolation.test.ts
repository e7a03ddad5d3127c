// What two pods report, and whether policies hold by it.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { judgeIsolation } from '../../../../cluster/kind/isolation.ts';

const api = '10.96.0.1:443';

test('a closed pod that reaches nothing beside an open one that does is isolated', () => {
  assert.equal(
    judgeIsolation(`${api} reached\n172.18.0.2:6443 reached`, `${api} closed\n172.18.0.2:6443 closed`, api),
    undefined,
  );
});

test('whatever a closed pod reaches is named', () => {
  const problem = judgeIsolation(`${api} reached`, `${api} closed\n172.18.0.2:6443 reached`, api);
  assert.match(problem ?? '', /not enforced: .* reached 172\.18\.0\.2:6443$/);
});

test('a network in which nobody reaches anything proves nothing', () => {
  assert.match(judgeIsolation(`${api} closed`, `${api} closed`, api) ?? '', /pod network does not work/);
});

test('a pod that printed nothing proves nothing', () => {
  assert.match(judgeIsolation(`${api} reached`, '', api) ?? '', /printed no result/);
});
