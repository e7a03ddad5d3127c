// Which names an author can give to an app, in any script, and which are refused, each by its reason.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { formatDomainName, readDomainName } from '../../../lib/domain-names.ts';

const platform = ['moorage.corp.example.org', 'apps.example.net'];
const read = (text: string): string => {
  const result = readDomainName(text, platform);
  return typeof result === 'string' ? result : `refused: ${result.message}`;
};

test.each([
  ['shop.example.com', 'shop.example.com'],
  [' Shop.Example.COM. ', 'shop.example.com'],
  ['example.com', 'example.com'],
  ['bücher.example.com', 'xn--bcher-kva.example.com'],
  ['xn--bcher-kva.example.com', 'xn--bcher-kva.example.com'],
  ['пример.рф', 'xn--e1afmkfd.xn--p1ai'],
  ['me.github.io', 'me.github.io'],
  // Next to the platform, in the same organization.
  ['tool.corp.example.org', 'tool.corp.example.org'],
  ['notapps.example.net', 'notapps.example.net'],
])('accepts %j as %s', (text, name) => {
  assert.equal(read(text), name);
});

test.each([
  ['*.example.com', /wildcard/],
  ['127.0.0.1', /IP address/],
  ['0x7f.1', /IP address/],
  ['2130706433', /IP address/],
  ['１２７.0.0.1', /IP address/],
  ['[::1]', /IP address/],
  ['::1', /not a domain name|IP address/],
  ['localhost', /internal name/],
  ['api.moorage-system.svc', /internal name/],
  ['api.moorage-system.svc.cluster.local', /internal name/],
  ['metadata.google.internal', /internal name/],
  ['x.localhost', /internal name/],
  ['com', /internal name|public suffix/],
  ['co.uk', /public suffix/],
  ['github.io', /public suffix/],
  ['shop.nosuchtld', /no public top-level/],
  ['moorage.corp.example.org', /belongs to this platform/],
  ['x.moorage.corp.example.org', /belongs to this platform/],
  ['corp.example.org', /belongs to this platform/],
  ['hello.apps.example.net', /belongs to this platform/],
  ['APPS.example.net.', /belongs to this platform/],
  ['https://example.com', /not a domain name/],
  ['example.com:443', /not a domain name/],
  ['example.com/path', /not a domain name/],
  ['user@example.com', /not a domain name/],
  ['a b.example.com', /not a domain name/],
  ['under_score.example.com', /not a domain name/],
  ['-a.example.com', /not a domain name/],
  ['ab--cd.example.com', /not a domain name/],
  ['xn--a.example.com', /not a domain name/],
  ['ex%61mple.com', /not a domain name/],
  ['a..example.com', /not a domain name/],
  [`${'a'.repeat(64)}.example.com`, /not a domain name/],
  [`${'a.'.repeat(120)}example.com`, /not a domain name/],
  ['', /not a domain name/],
])('refuses %j', (text, reason) => {
  assert.match(read(text), /^refused: /);
  assert.match(read(text), reason);
});

test('shows a name in its own script', () => {
  assert.equal(formatDomainName('xn--bcher-kva.example.com'), 'bücher.example.com');
});
