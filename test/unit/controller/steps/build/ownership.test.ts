// Which tokens of a repository are believed, and what of it stays with the next commits.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'vitest';
import { readOwnership } from '../../../../../controller/pipeline/clone/clone.ts';
import { cloneResult, terminationMessageLimit } from '../../../../../controller/pipeline/contract.ts';
import { formatTermination } from '../../../../../controller/pipeline/message.ts';
import type { Draft } from '../../../../../controller/reconcile/outcome.ts';
import { recordOwnership } from '../../../../../controller/steps/build/ownership.ts';
import { ownershipFile, sealContact } from '../../../../../lib/ownership-file.ts';
import { app, snapshotOf } from '../../../../support/operator/scenario.ts';

const secret = 's'.repeat(32);
const hosted = app();
const { repo } = hosted.spec.source;
const ours = sealContact('me@example.org', repo, secret);
const since = '2025-01-01T00:00:00Z';

function recorded(review: Parameters<typeof recordOwnership>[2], before?: Draft['ownership']): Draft['ownership'] {
  const draft: Draft = before === undefined ? {} : { ownership: before };
  const snapshot = snapshotOf(hosted);
  recordOwnership({ ...snapshot, config: { ...snapshot.config, ownershipSecret: secret } }, draft, review);
  return draft.ownership;
}

test('a token for this repository is believed, others beside it are passed over', () => {
  const copied = sealContact('other@example.org', 'https://git.test/else/where', secret);
  const forged = sealContact('mallory@example.org', repo, 'x'.repeat(32));
  assert.equal(recorded({ ownership: [copied, forged, ours] })?.contact, 'me@example.org');
  assert.equal(recorded({ ownership: [copied, forged, 'moorage-owner-'] }), undefined);
  assert.equal(recorded({}), undefined);
});

test('attack: the commit of a branch, a tag or a pull request says nothing of whose the app is', () => {
  const kept = { authorKeys: ['a'.repeat(64)], ownership: { since } };
  for (const revision of ['refs/pull/5/head', 'feature', 'f'.repeat(40)]) {
    const snapshot = snapshotOf({ ...hosted, spec: { ...hosted.spec, source: { ...hosted.spec.source, revision } } });
    const draft: Draft = { ...kept };
    recordOwnership({ ...snapshot, config: { ...snapshot.config, ownershipSecret: secret } }, draft, {
      ownership: [ours],
      authorKeys: ['b'.repeat(64)],
    });
    assert.deepEqual(draft, kept, revision);
  }
});

test('without the secret none is believed', () => {
  const draft: Draft = {};
  const { config, ...snapshot } = snapshotOf(hosted);
  const { ownershipSecret: _none, ...without } = config;
  recordOwnership({ ...snapshot, config: without }, draft, { ownership: [ours] });
  assert.equal(draft.ownership, undefined);
});

test('that the author has spoken is kept with its first time; his contact is that of the newest commit', () => {
  assert.deepEqual(recorded({ ownership: [ours] }, { since }), { since, contact: 'me@example.org' });
  assert.deepEqual(recorded({}, { since, contact: 'old@example.org' }), { since });
  const settings = { author: { contact: 'file@example.org' } };
  assert.equal(recorded({ settings })?.contact, undefined);
  assert.ok(recorded({ settings })?.since !== undefined);
});

test('the clone reads the file itself, never through a link, and what it reports fits', () => {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-ownership-'));
  try {
    const file = join(folder, ownershipFile);
    assert.deepEqual(readOwnership(folder), {});
    const longest = sealContact(`https://${'€'.repeat(192)}`, repo, secret);
    writeFileSync(file, [longest, longest, longest, ours].join('\n'));
    const { ownership = [] } = readOwnership(folder);
    assert.equal(ownership.length, 3);
    const message = formatTermination({ commit: 'a'.repeat(64), files: 1e9, bytes: 1e15, ownership });
    assert.ok(Buffer.byteLength(message) <= terminationMessageLimit);
    assert.deepEqual(cloneResult.parse(JSON.parse(message)).ownership, ownership);
    writeFileSync(join(folder, 'elsewhere'), ours);
    rmSync(file);
    symlinkSync('elsewhere', file);
    assert.deepEqual(readOwnership(folder), {});
    rmSync(file);
    mkdirSync(file);
    assert.deepEqual(readOwnership(folder), {});
  } finally {
    rmSync(folder, { recursive: true });
  }
});
