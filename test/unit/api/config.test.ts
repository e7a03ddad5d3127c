// The settings of the API: what they become, and that all that is wrong is said at once.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readApiConfig } from '../../../api/config.ts';

const least = {
  MOORAGE_BASE_DOMAIN: 'moorage.localhost',
  MOORAGE_GIT_ALLOWED_HOSTS: 'GitHub.com, git.example.org:8443',
  MOORAGE_CALLER_SALT: 'x'.repeat(64),
};

test('defaults', () => {
  const config = readApiConfig(least);
  assert.equal(config.baseUrl, 'https://moorage.localhost');
  assert.deepEqual(config.hosts, { allowed: ['github.com', 'git.example.org:8443'], insecure: [] });
  assert.deepEqual([config.port, config.internalPort, config.submissionsPerDay], [8080, 9090, 20]);
});

test('another port stands in the base URL', () => {
  assert.equal(readApiConfig({ ...least, MOORAGE_EXTERNAL_PORT: '8443' }).baseUrl, 'https://moorage.localhost:8443');
});

test('apps answer below the base domain, or below one of their own', () => {
  assert.deepEqual(readApiConfig(least).site, { domain: 'moorage.localhost', port: 443 });
  assert.deepEqual(
    readApiConfig({ ...least, MOORAGE_APPS_DOMAIN: 'example.net', MOORAGE_EXTERNAL_PORT: '8443' }).site,
    {
      domain: 'example.net',
      port: 8443,
    },
  );
});

test('trusted proxies', () => {
  const { trustedProxies } = readApiConfig({ ...least, MOORAGE_TRUSTED_PROXIES: '10.244.0.0/16,fd00::/8' });
  assert.equal(trustedProxies.check('10.244.3.4'), true);
  assert.equal(trustedProxies.check('10.245.3.4'), false);
  assert.equal(trustedProxies.check('fd00::1', 'ipv6'), true);
});

test('everything that is wrong is named', () => {
  const wrong = {
    MOORAGE_BASE_DOMAIN: 'https://x',
    MOORAGE_GIT_ALLOWED_HOSTS: ' , ',
    MOORAGE_CALLER_SALT: 'short',
    MOORAGE_TRUSTED_PROXIES: '10.0.0.0/33',
    MOORAGE_PORT: '70000',
  };
  assert.throws(
    () => readApiConfig(wrong),
    (error: Error) => {
      for (const name of Object.keys(wrong)) assert.match(error.message, new RegExp(`${name}[.0-9]*: `));
      return true;
    },
  );
});
