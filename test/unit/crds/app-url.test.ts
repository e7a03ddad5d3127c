// Host names and URLs of apps.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { appHost, appUrl } from '../../../crds/app-url.ts';

test('an app is a subdomain of the domain of the apps; the usual port is left out', () => {
  const site = { domain: 'apps.example.net', port: 443 };
  assert.equal(appHost('hello', site), 'hello.apps.example.net');
  assert.equal(appUrl('hello', site), 'https://hello.apps.example.net/');
  assert.equal(appUrl('hello', { ...site, port: 8443 }), 'https://hello.apps.example.net:8443/');
});
