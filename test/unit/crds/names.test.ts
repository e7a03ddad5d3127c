// Slugs are DNS labels for any repository name, and apps have a host name and a URL.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { parseDuration } from '../../../lib/values.ts';
import { toDnsLabel, formatAppHost, formatAppUrl } from '../../../crds/names.ts';

test('makes a readable label of any name', () => {
  assert.equal(toDnsLabel('My_Cool.App'), 'my-cool-app');
  assert.equal(toDnsLabel('Über--chat'), 'u-ber-chat');
  assert.equal(toDnsLabel('!!!'), '');
});

test('every text gives a DNS label or nothing', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) =>
      /^([a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?)?$/.test(toDnsLabel(text)),
    ),
  );
});

test('parses durations and rejects other texts', () => {
  assert.equal(parseDuration('1h30m'), 5_400_000);
  assert.equal(parseDuration('90s'), 90_000);
  for (const wrong of ['', '5', '5 m', '1s1m', '-1s']) assert.throws(() => parseDuration(wrong), RangeError);
});

test('an app is a subdomain of the apps domain, and its URL omits the default port', () => {
  const site = { domain: 'apps.example.net', port: 443 };
  assert.equal(formatAppHost('hello', site), 'hello.apps.example.net');
  assert.equal(formatAppUrl('hello', site), 'https://hello.apps.example.net/');
  assert.equal(formatAppUrl('hello', { ...site, port: 8443 }), 'https://hello.apps.example.net:8443/');
});
