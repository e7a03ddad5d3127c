// Links that add a licence to a repository which was rejected for having none, by git server.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { type LicenseOffer, offerLicense } from '../../../../api/apps/license-offer.ts';
import { toStatusView } from '../../../../api/apps/status-view.ts';
import { sampleApp } from '../../../support/api/sample.ts';

const missing = {
  rule: 'license/missing',
  message: 'No licence was found, so only the author has the right to run it.',
};
const commit = 'a'.repeat(40);

function offer(repo: string, reference = 'refs/heads/main', rejection = missing): LicenseOffer {
  const offered = offerLicense(sampleApp('chat', repo, { source: { commit, reference } }), rejection, 2026);
  assert.ok(offered);
  return offered;
}

test('offers three templates of GitHub on the branch that is built', () => {
  assert.deepEqual(offer('https://github.com/octo/chat', 'refs/heads/feature/a b'), {
    links: [
      {
        title: 'MIT',
        url: 'https://github.com/octo/chat/community/license/new?branch=feature%2Fa+b&template=mit',
      },
      {
        title: 'Apache-2.0',
        url: 'https://github.com/octo/chat/community/license/new?branch=feature%2Fa+b&template=apache-2.0',
      },
      {
        title: 'GPL-3.0',
        url: 'https://github.com/octo/chat/community/license/new?branch=feature%2Fa+b&template=gpl-3.0',
      },
    ],
  });
});

test('opens a new file LICENSE on GitLab, which offers the text, and on Gitea and Forgejo with a text', () => {
  const [gitlab, codeberg] = [offer('https://gitlab.com/octo/chat'), offer('https://codeberg.org/octo/chat')];
  assert.deepEqual(gitlab.links, [
    {
      title: 'LICENSE',
      url: 'https://gitlab.com/octo/chat/-/new/main?file_name=LICENSE&commit_message=Add+LICENSE',
    },
  ]);
  assert.equal(gitlab.text, undefined);
  assert.equal(codeberg.links[0]?.url, 'https://codeberg.org/octo/chat/_new/main?filename=LICENSE');
  assert.match(codeberg.text ?? '', /^MIT License\n\nCopyright \(c\) 2026 octo\n/);
  assert.equal(
    offer('https://forgejo.test/octo/chat', 'refs/heads/a/b').links[0]?.url,
    'https://forgejo.test/octo/chat/_new/a/b?filename=LICENSE',
  );
});

test('offers only a text for an unknown git server, and no link to a tag', () => {
  const unknown = offer('https://git.test/octo/chat');
  assert.deepEqual(unknown.links, []);
  assert.match(unknown.text ?? '', /^MIT License/);
  assert.deepEqual(offer('https://codeberg.org/octo/chat', 'refs/tags/v1').links, []);
  assert.equal(
    offer('https://github.com/octo/chat', commit).links[0]?.url,
    'https://github.com/octo/chat/community/license/new?template=mit',
  );
});

test('offers a licence where the operator has to approve a missing one, and for no other rejection', () => {
  assert.equal(
    offer('https://github.com/octo/chat', 'refs/heads/main', { ...missing, rule: 'license/approval' }).links.length,
    3,
  );
  const terms = { rule: 'license/approval', message: 'The licence is BUSL-1.1, which is not an open-source licence.' };
  assert.equal(offerLicense(sampleApp('chat', 'https://github.com/octo/chat'), terms), undefined);
  assert.equal(offerLicense(sampleApp('chat'), undefined), undefined);
});

test('is part of the status of a rejected commit', () => {
  const status = {
    phase: 'Rejected' as const,
    since: '2026-01-01T00:00:05Z',
    source: { commit, reference: 'refs/heads/main' },
    rejection: { ...missing, fix: 'Add a LICENSE file.' },
  };
  const linkBase = {
    baseUrl: 'https://moorage.test',
    site: { domain: 'apps.test', port: 443 },
    defaultHost: 'github.com',
  };
  const view = toStatusView(sampleApp('chat', 'https://github.com/octo/chat', status), linkBase);
  assert.equal(view.status, 'rejected');
  assert.equal(view.license?.links.length, 3);
  const other = { ...status, rejection: { rule: 'run/crashed', message: 'The app crashed.', fix: 'Fix it.' } };
  assert.equal(toStatusView(sampleApp('chat', 'https://github.com/octo/chat', other), linkBase).license, undefined);
});
