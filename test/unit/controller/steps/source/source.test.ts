// What the operator does when the repository of an app becomes private.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  identifySource,
  resolveRevision,
  type RevisionFailure,
} from '../../../../../controller/steps/source/source.ts';
import { annotations } from '../../../../../crds/names.ts';
import { markPrivate, parseRepository } from '../../../../../lib/repository.ts';
import {
  app,
  config,
  createPolledStatus,
  createSnapshot,
  decideStatus,
  first,
  listActions,
} from '../../../../support/operator/scenario.ts';

const open = app({}, createPolledStatus(first));
const closed = { ...open, spec: { ...open.spec, source: { ...open.spec.source, private: true } } };

test('polls a repository that became private with its key, and keeps the commit that it knows', () => {
  assert.ok(!listActions(decideStatus(createSnapshot(open)).decision).includes('poll'));
  const { decision, status } = decideStatus(createSnapshot(closed));
  assert.ok(listActions(decision).includes('poll'));
  assert.equal(status.source?.commit, first);
});

test('keeps the commit while the deploy key is refused, and says what to do', async () => {
  const repository = markPrivate(parseRepository(open.spec.source.repo, config.gitHosts), true);
  // There is no key, which is how a server without a host key is reported.
  const poll = await resolveRevision({ repository });
  assert.ok(!poll.ok && !poll.final);
  const refused: RevisionFailure = {
    ok: false,
    final: true,
    reason: 'DeployKeyRefused',
    rule: 'source/deploy-key-refused',
    message: 'The git server does not accept the deploy key.',
    fix: 'Add it.',
  };
  for (const result of [poll, refused]) {
    const { status } = decideStatus(createSnapshot(closed, { repository, poll: result }));
    const resolved = status.conditions?.find(({ type }) => type === 'SourceResolved');
    assert.equal(resolved?.status, 'False');
    assert.equal(resolved.reason, result.reason);
    assert.equal(status.source?.commit, first);
    assert.equal(status.source.polledFor, identifySource(closed));
  }
});

test('identifies polls of public repositories as before there were private ones', () => {
  const polled = { ...open, metadata: { ...open.metadata, annotations: { [annotations.poll]: 'now' } } };
  assert.match(identifySource(open), /^[0-9a-f]{12}$/);
  assert.equal(identifySource(polled).split('-')[0], identifySource(open));
  const both = { ...closed, metadata: polled.metadata };
  assert.equal(new Set([open, polled, closed, both].map(identifySource)).size, 4);
});
