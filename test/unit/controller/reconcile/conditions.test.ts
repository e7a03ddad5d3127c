// What the reconciler says in each situation: the full list of conditions, the phase, and what it asks for.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { publicStatus } from '../../../../crds/public-status.ts';
import type { HostedAppStatus } from '../../../../crds/hosted-app.ts';
import type { ProbeResult } from '../../../../controller/reconcile/snapshot.ts';
import { transitions } from '../../../../controller/reconcile/events.ts';
import { app, asked, outcome } from '../../../support/operator/scenario.ts';
import { scenarios, probed } from './conditions.cases.ts';

for (const scenario of scenarios) {
  test(scenario.name, () => {
    const { status, conditions: said, decision } = outcome(scenario.snapshot);
    assert.deepEqual(said, scenario.conditions);
    assert.equal(status.phase, scenario.phase);
    assert.deepEqual(asked(decision), scenario.asks);
    assert.equal(status.served?.commit, scenario.served);
    assert.equal(status.rejection?.rule, scenario.rule);
    assert.equal(publicStatus({ spec: scenario.snapshot.app.spec, status }).status, scenario.public);
  });

  test(`${scenario.name}: looking again changes nothing`, () => {
    const before = outcome(scenario.snapshot).status;
    const snapshot = {
      ...scenario.snapshot,
      app: { ...scenario.snapshot.app, status: before },
      poll: undefined,
      page: undefined,
      now: new Date(scenario.snapshot.now.getTime() + 1500),
    };
    const after = outcome(snapshot).status;
    assert.deepEqual(after, before);
  });
}

test('errors of a live app are reported with an event, asked about again, and forgotten once it answers well', () => {
  const errors = outcome(probed({ responds: true, status: 500, detail: 'the response was HTTP 500' })).status;
  const look = (probe: ProbeResult | undefined, status: HostedAppStatus): ReturnType<typeof outcome> =>
    outcome({ ...probed(probe), app: app({}, status) });
  assert.match(publicWarning(errors) ?? '', /^responds with 500 at \//);
  assert.deepEqual(
    transitions(undefined, errors)
      .filter(({ type }) => type === 'Warning')
      .map(({ reason }) => reason),
    ['LiveWithErrors'],
  );
  const again = look(undefined, errors);
  assert.ok(asked(again.decision).includes('probe'));
  assert.equal(publicWarning(again.status), publicWarning(errors));
  assert.equal(publicWarning(look({ responds: false, detail: 'refused' }, errors).status), publicWarning(errors));
  assert.equal(
    publicWarning(look({ responds: true, status: 200, detail: 'the response was HTTP 200' }, errors).status),
    undefined,
  );
});

test('what the last attempt to reach an app came to is said in a sentence', () => {
  const said = (probe: ProbeResult | undefined): string | undefined =>
    outcome(probed(probe)).status.conditions?.find(({ type }) => type === 'Ready')?.message;
  const begin = 'Probing https://hello.apps.test/ through the gateway.';
  assert.equal(said(undefined), begin);
  assert.equal(
    said({ responds: false, isDoubtful: true, detail: 'there was no response within 5 s' }),
    `${begin} At the last attempt, there was no response within 5 s.`,
  );
});

function publicWarning(status: HostedAppStatus): string | undefined {
  const reported = publicStatus({ spec: app().spec, status });
  return reported.status === 'live' ? reported.warning : undefined;
}
