// Whose contact counts: the operator's of the installation, the author's, and only without either a submitter's.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { authorContact } from '../../../crds/author-contact.ts';
import { spec, type HostedAppStatus } from '../../../crds/hosted-app.ts';

const since = '2026-01-01T00:00:00Z';
const filed: HostedAppStatus = {
  settings: { commit: 'a', values: JSON.stringify({ author: { contact: 'file@example.org' } }) },
};
const proven: HostedAppStatus = { ownership: { since, contact: 'token@example.org' } };

function of(fields: object, status?: HostedAppStatus): string {
  const found = authorContact({
    spec: spec.parse({ source: { repo: 'https://git.example/a/b' }, ...fields }),
    ...(status === undefined ? {} : { status }),
  });
  return found === undefined ? 'none' : `${found.contact} ${found.from} ${found.verified}`;
}

const claimed = { submission: { contact: 'mallory@example.org' } };

test('what was submitted counts as long as nobody else has said anything, and is not verified', () => {
  assert.equal(of({}), 'none');
  assert.equal(of(claimed), 'mallory@example.org submission false');
  assert.equal(of(claimed, {}), 'mallory@example.org submission false');
});

test('the author wins over it, moorage.yaml over the token', () => {
  assert.equal(of(claimed, proven), 'token@example.org .moorage-owner true');
  assert.equal(of(claimed, { ...filed, ownership: { since } }), 'file@example.org moorage.yaml true');
  assert.equal(of(claimed, { ...filed, ...proven }), 'file@example.org moorage.yaml true');
});

test('the operator of the installation wins over all', () => {
  const said = { ...claimed, author: { contact: 'ops@example.org' } };
  assert.equal(of(said, { ...filed, ...proven }), 'ops@example.org HostedApp true');
});

test('an author who takes his contact back does not put that of the submitter in its place', () => {
  assert.equal(of(claimed, { ownership: { since } }), 'none');
});
