// An app that fills its disk twice is not started a third time: the release before it serves, or nothing until
// something changes.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import type { HostedApp } from '../../../../../crds/hosted-app.ts';
import type { Deployment } from '../../../../../controller/objects/kinds.ts';
import type { Snapshot } from '../../../../../controller/reconcile/snapshot.ts';
import {
  app,
  applied,
  built,
  deployed,
  evicted,
  first,
  live,
  snapshotOf,
  outcome,
  second,
} from '../../../../support/operator/scenario.ts';

const asked = z.object({
  replicas: z.int(),
  template: z.object({ metadata: z.object({ annotations: z.object({ 'moorage.dev/commit': z.string() }) }) }),
});

/** The Deployment that an observation asks for, and how many replicas of which commit it has. */
function asks(snapshot: Snapshot): { deployment: Deployment; runs: string; rule: string | undefined; message: string } {
  const { decision, status } = outcome(snapshot);
  const deployment = applied(decision, 'Deployment', { observedGeneration: 2 });
  const { replicas, template } = asked.parse(deployment.spec);
  const { rule, message = '' } = status.rejection ?? {};
  return {
    deployment,
    runs: `${replicas} of ${template.metadata.annotations['moorage.dev/commit'].charAt(0)}`,
    rule,
    message,
  };
}

const only = live(first);

test('one eviction is fixed by another replica, two stop it, and it stays so when the evicted pods are gone', () => {
  const of = app({}, only);
  assert.equal(asks(snapshotOf(of, evicted(of, 1, 60))).runs, '1 of a');
  const stopped = asks(snapshotOf(of, evicted(of, 2, 86_400)));
  assert.deepEqual([stopped.runs, stopped.rule], ['0 of a', 'run/out-of-disk']);
  const later = asks(snapshotOf(of, { ...deployed(of), deployment: stopped.deployment, pods: [] }));
  assert.deepEqual([later.runs, later.rule, later.message], ['0 of a', 'run/out-of-disk', stopped.message]);
});

test('what fills its disk once in a long while is replaced each time', () => {
  const of = app({}, only);
  const [recent, old] = [evicted(of, 1, 60), evicted(of, 1, 2 * 86_400)];
  const rare = { ...recent, pods: [...(recent.pods ?? []), ...(old.pods ?? [])] };
  assert.equal(rare.pods.filter((pod) => pod.status?.reason === 'Evicted').length, 2);
  assert.equal(asks(snapshotOf(of, rare)).runs, '1 of a');
});

test('more disk, or a new commit, starts it again', () => {
  const { deployment } = asks(snapshotOf(app({}, only), evicted(app({}, only), 2, 60)));
  const { pods } = evicted(app({}, only), 2, 60);
  const start = (of: HostedApp): string =>
    asks(snapshotOf(of, { deployment, ...(pods === undefined ? {} : { pods: pods.slice(1) }) })).runs;
  assert.equal(start(app({ run: { resources: { disk: '4Gi' } } }, only)), '1 of a');
  assert.equal(start(app({}, { ...only, ...built(second) })), '1 of b');
});

test('the release before serves again, and is not started a third time either if it does the same', () => {
  const next = app({}, { ...only, ...built(second) });
  const rolling = asks(snapshotOf(next, deployed(app({}, only))));
  assert.equal(rolling.runs, '1 of b');
  const serving = app({}, live(second));
  const over = (pods: Snapshot['pods']): Snapshot => snapshotOf(serving, { deployment: rolling.deployment, pods });
  const filled = evicted(serving, 2, 60).pods ?? [];
  const back = asks(over(filled));
  assert.deepEqual([back.runs, back.rule], ['1 of a', 'run/out-of-disk']);
  assert.match(back.message, /Commit bbbbbbb exceeded its 1Gi .* Rolled back to commit aaaaaaa\.$/);
  const again = asks(
    snapshotOf(serving, { deployment: back.deployment, pods: evicted(app({}, only), 2, 60).pods ?? [] }),
  );
  assert.deepEqual([again.runs, again.rule], ['0 of b', 'run/out-of-disk']);
});

test('the release that serves again runs by the settings of its own commit', () => {
  const settings = JSON.stringify({ run: { command: ['serve', '--old'] } });
  const old = live(first);
  const before = app({}, { ...old, ...(old.built === undefined ? {} : { built: { ...old.built, settings } }) });
  const rolling = asks(snapshotOf(app({}, { ...old, ...built(second) }), deployed(before)));
  const serving = app({}, live(second));
  const back = asks(snapshotOf(serving, { deployment: rolling.deployment, pods: evicted(serving, 2, 60).pods ?? [] }));
  assert.equal(back.runs, '1 of a');
  assert.match(JSON.stringify(back.deployment.spec), /"--old"/);
});
