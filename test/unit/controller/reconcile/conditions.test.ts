// What the reconciler says in each situation: the full list of conditions, the phase, and what it asks for.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { ProbeResult, Snapshot } from '../../../../controller/reconcile/snapshot.ts';
import { listTransitions } from '../../../../controller/reconcile/status.ts';
import type { HostedAppStatus } from '../../../../crds/hosted-app.ts';
import { toPublicStatus } from '../../../../crds/public-status.ts';
import {
  app,
  createBuiltStatus,
  createDeployed,
  createLiveStatus,
  decideStatus,
  first,
  listActions,
  second,
} from '../../../support/operator/scenario.ts';
import { probed, scenarios } from './conditions.cases.ts';

for (const scenario of scenarios) {
  test(scenario.name, () => {
    const { status, conditions: said, decision } = decideStatus(scenario.snapshot);
    assert.deepEqual(said, scenario.conditions);
    assert.equal(status.phase, scenario.phase);
    assert.deepEqual(listActions(decision), scenario.asks);
    assert.equal(status.served?.commit, scenario.served);
    assert.equal(status.rejection?.rule, scenario.rule);
    assert.equal(toPublicStatus({ spec: scenario.snapshot.app.spec, status }).status, scenario.public);
  });

  test(`${scenario.name}: a second reconcile changes nothing`, () => {
    const before = decideStatus(scenario.snapshot).status;
    const snapshot = {
      ...scenario.snapshot,
      app: { ...scenario.snapshot.app, status: before },
      poll: undefined,
      page: undefined,
      now: new Date(scenario.snapshot.now.getTime() + 1500),
    };
    const after = decideStatus(snapshot).status;
    assert.deepEqual(after, before);
  });
}

test('reports errors of a live app with an event, retries the probe, and clears the report once it succeeds', () => {
  const errors = decideStatus(
    liveAndProbed({ responds: true, status: 500, detail: 'the response was HTTP 500' }),
  ).status;
  const look = (probe: ProbeResult | undefined, status: HostedAppStatus): ReturnType<typeof decideStatus> =>
    decideStatus({ ...probed(probe), app: app({}, status) });
  assert.match(publicWarning(errors) ?? '', /^responds with 500 at \//);
  assert.deepEqual(
    listTransitions(undefined, errors)
      .filter(({ type }) => type === 'Warning')
      .map(({ reason }) => reason),
    ['RespondsWithErrors'],
  );
  const again = look(undefined, errors);
  assert.ok(listActions(again.decision).includes('probe'));
  assert.equal(publicWarning(again.status), publicWarning(errors));
  assert.equal(publicWarning(look({ responds: false, detail: 'refused' }, errors).status), publicWarning(errors));
  assert.equal(
    publicWarning(look({ responds: true, status: 200, detail: 'the response was HTTP 200' }, errors).status),
    undefined,
  );
});

test('an app whose URL fails is not Live until a probe succeeds, and is probed again soon', () => {
  const well = { responds: true, status: 200, detail: 'the response was HTTP 200' };
  const look = (probe: ProbeResult | undefined, status: HostedAppStatus): ReturnType<typeof decideStatus> =>
    decideStatus({ ...probed(probe), app: app({}, status) });
  const live = decideStatus(liveAndProbed(well));
  assert.equal(live.status.phase, 'Live');
  assert.equal(live.decision.outcomes.Published?.afterMs, 60_000);
  const failures: ProbeResult[] = [
    { responds: true, status: 500, detail: 'the response was HTTP 500' },
    { responds: false, status: 503, detail: 'the response was HTTP 503' },
    { responds: false, detail: 'the request failed: connect ECONNREFUSED' },
  ];
  for (const failure of failures) {
    const failing = look(failure, live.status);
    assert.equal(failing.status.phase, 'Failing', failure.detail);
    assert.equal(failing.decision.outcomes.Published?.afterMs, 10_000);
    // Between two probes nothing new is known.
    assert.equal(look(undefined, failing.status).status.phase, 'Failing', failure.detail);
    assert.equal(look(well, failing.status).status.phase, 'Live', failure.detail);
  }
  // A slow page, and one that the app does not have, say nothing about the app.
  const slow = { responds: false, isDoubtful: true, detail: 'there was no response within 5 s' };
  assert.equal(look(slow, live.status).status.phase, 'Live');
});

test('reports that the gateway is away while a new release is probed, and names the release that served before', () => {
  const of = app({}, { ...createLiveStatus(first), ...createBuiltStatus(second), phase: 'Deploying' });
  const look = (probe: ProbeResult): HostedAppStatus =>
    decideStatus({ ...probed(probe), app: of, ...createDeployed(of) }).status;
  const away = look({ responds: false, detail: 'the request failed: connect ECONNREFUSED' });
  assert.equal(away.phase, 'Failing');
  assert.equal(away.served?.commit, first);
  const failing = look({ responds: true, status: 500, detail: 'the response was HTTP 500' });
  assert.deepEqual([failing.phase, failing.served?.commit], ['Routing', first]);
  const works = look({ responds: true, status: 200, detail: 'the response was HTTP 200' });
  assert.deepEqual([works.phase, works.served?.commit], ['Live', second]);
});

test('reports a release that its URL rejects with an event', () => {
  const { snapshot } = scenarios.find(({ rule }) => rule === 'run/no-page') ?? assert.fail('no such scenario');
  const notes = listTransitions(snapshot.app.status, decideStatus(snapshot).status);
  assert.deepEqual(
    notes.map(({ type, reason }) => `${type} ${reason}`),
    ['Warning AppResponds404'],
  );
});

test('sets the observed generation of the spec in every condition', () => {
  for (const { snapshot } of scenarios) {
    const { status } = decideStatus(snapshot);
    const generations = (status.conditions ?? []).map(({ observedGeneration }) => observedGeneration);
    assert.deepEqual([...new Set(generations)], [snapshot.app.metadata.generation]);
  }
});

test('confirms the status at least every ten minutes, and does not write it in between', () => {
  const { snapshot } = scenarios.find(({ phase }) => phase === 'Live') ?? assert.fail('no live app');
  const before = decideStatus(snapshot).status;
  const after = (seconds: number): string | undefined =>
    decideStatus({
      ...snapshot,
      app: { ...snapshot.app, status: before },
      now: new Date(snapshot.now.getTime() + seconds * 1000),
    }).status.checkedAt;
  assert.equal(before.checkedAt, snapshot.now.toISOString().replace(/\.\d+Z$/, 'Z'));
  assert.equal(after(599), before.checkedAt);
  assert.notEqual(after(600), before.checkedAt);
});

test('describes the result of the last attempt to reach an app in a sentence', () => {
  const said = (probe: ProbeResult | undefined): string | undefined =>
    decideStatus(probed(probe)).status.conditions?.find(({ type }) => type === 'Ready')?.message;
  const begin = 'Probing https://hello.apps.test/ through the gateway.';
  assert.equal(said(undefined), begin);
  assert.equal(
    said({ responds: false, isDoubtful: true, detail: 'there was no response within 5 s' }),
    `${begin} At the last attempt, there was no response within 5 s.`,
  );
});

function liveAndProbed(probe: ProbeResult | undefined): Snapshot {
  return { ...probed(probe), app: app({}, createLiveStatus(first)) };
}

function publicWarning(status: HostedAppStatus): string | undefined {
  const reported = toPublicStatus({ spec: app().spec, status });
  return reported.status === 'live' ? reported.warning : undefined;
}
