// What the sign-in providers of an installation may be, and what an error says of them.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readSignInProviders } from '../../../../../api/apps/sign-in/config.ts';

const github = {
  ...{ id: 'github', label: 'GitHub', forge: 'github', issuer: 'https://github.com' },
  ...{ clientId: 'abc', clientSecret: 'do not show' },
};
const read = (value: unknown): ReturnType<typeof readSignInProviders> =>
  readSignInProviders({ MOORAGE_SIGN_IN_PROVIDERS: typeof value === 'string' ? value : JSON.stringify(value) });

test('derives the API, the host and the scopes of a provider from its kind', () => {
  const gitlab = { ...github, id: 'gitlab', forge: 'gitlab', issuer: 'https://gitlab.example.org' };
  const gitea = { ...github, id: 'codeberg', forge: 'gitea', issuer: 'https://codeberg.org/', scopes: 'openid' };
  const enterprise = { ...github, id: 'ghe', issuer: 'https://git.example.org:8443' };
  assert.deepEqual(
    read([github, gitlab, gitea, enterprise]).map(({ apiUrl, host, scopes }) => [apiUrl, host, scopes]),
    [
      ['https://api.github.com', 'github.com', ''],
      ['https://gitlab.example.org/api/v4', 'gitlab.example.org', 'openid read_api'],
      ['https://codeberg.org/api/v1', 'codeberg.org', 'openid'],
      ['https://git.example.org:8443/api/v3', 'git.example.org:8443', ''],
    ],
  );
  assert.deepEqual(readSignInProviders({}), []);
});

test.each<[unknown, RegExp]>([
  ['not JSON: do not show', /must be a JSON list of providers/],
  [[], /JSON list/],
  [[{ ...github, issuer: 'http://forge.example.org' }], /0\.issuer: must be an https address/],
  [[{ ...github, issuer: 'http://localhost.example.org' }], /0\.issuer/],
  [[{ ...github, apiUrl: 'http://api.example.org' }], /0\.apiUrl/],
  [[{ ...github, id: 'Git Hub' }], /0\.id/],
  [[{ ...github, forge: 'bitbucket' }], /0\.forge/],
  [[{ ...github, secret: 'do not show' }], /JSON list/],
  [[github, github], /each id once: github/],
])('refuses %j, and never quotes a secret', (value, pattern) => {
  assert.throws(
    () => read(value),
    (error: unknown) => error instanceof Error && pattern.test(error.message) && !error.message.includes('do not show'),
  );
});
