// Callers: the right hop of X-Forwarded-For, one caller per network, and hashes that reveal nothing.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { toAddressPrefix, resolveClientAddress, identifyCaller, toNetworkPrefix } from '../../../../api/http/caller.ts';
import { createBlockList } from '../../../../lib/subnets.ts';

const trusted = createBlockList(['10.0.0.0/8', 'fd00::/8']);
const rules = { salt: 'salt', trustedProxies: trusted };
const attributes = { peer: '203.0.113.9', forwardedFor: undefined, authorization: undefined };

for (const [name, peer, forwarded, client] of [
  ['no proxy', '203.0.113.9', undefined, '203.0.113.9'],
  ['header of a stranger is ignored', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
  ['trusted proxy', '10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['forged hops on the left are ignored', '10.1.2.3', '1.1.1.1, 198.51.100.1', '198.51.100.1'],
  ['chain of trusted proxies', '10.1.2.3', '198.51.100.1, 10.9.9.9', '198.51.100.1'],
  ['all trusted', '10.1.2.3', '10.4.4.4', '10.4.4.4'],
  ['trusted proxy without header', '10.1.2.3', undefined, '10.1.2.3'],
  ['nonsense in the header', '10.1.2.3', 'unknown', '10.1.2.3'],
  ['nonsense behind a real hop', '10.1.2.3', '1.1.1.1, evil', '10.1.2.3'],
  ['mapped peer', '::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['IPv6 proxy and client', 'fd00::1', '2001:db8::7', '2001:db8::7'],
  ['port and brackets', '10.1.2.3', '[2001:db8::7]:443', '2001:db8::7'],
  ['port', '10.1.2.3', '198.51.100.1:5000', '198.51.100.1'],
  ['no peer', undefined, '198.51.100.1', ''],
] as const) {
  test(`client address: ${name}`, () => {
    assert.equal(resolveClientAddress(peer, forwarded, trusted), client);
  });
}

for (const [address, prefix] of [
  ['203.0.113.9', '203.0.113.0/24'],
  ['2001:db8:1:2ff::7', '2001:db8:1:200::/56'],
  ['2001:db8::', '2001:db8:0:0::/56'],
  ['::1', '0:0:0:0::/56'],
  ['', 'unknown'],
  ['evil', 'unknown'],
] as const) {
  test(`prefix of ${address === '' ? 'nothing' : address}`, () => {
    assert.equal(toAddressPrefix(address), prefix);
  });
}

test('hashes addresses of one network to one caller, and other networks to others', () => {
  fc.assert(
    fc.property(fc.ipV6(), fc.bigInt(0n, (1n << 72n) - 1n), (address, rest) => {
      const [a = '', b = '', c = '', d = ''] = toAddressPrefix(address).split(':');
      const bytes = (Number.parseInt(d, 16) & 0xff00) | Number(rest >> 64n);
      const tail = [48n, 32n, 16n, 0n].map((shift) => ((rest >> shift) & 0xffffn).toString(16));
      const sibling = [a, b, c, bytes.toString(16), ...tail].join(':');
      assert.equal(toAddressPrefix(sibling), toAddressPrefix(address));
      const stranger = [a, b, c, (bytes ^ 0x100).toString(16), ...tail].join(':');
      assert.notEqual(toAddressPrefix(stranger), toAddressPrefix(address));
    }),
  );
});

test('derives a hash from salt and network that fits a label and reveals neither', () => {
  const caller = identifyCaller(attributes, rules);
  assert.match(caller.hash, /^[0-9a-f]{32}$/);
  assert.equal(identifyCaller({ ...attributes, peer: '203.0.113.200' }, rules).hash, caller.hash);
  assert.notEqual(identifyCaller({ ...attributes, peer: '203.0.114.9' }, rules).hash, caller.hash);
  assert.notEqual(identifyCaller(attributes, { ...rules, salt: 'pepper' }).hash, caller.hash);
});

test('ignores an invented key and identifies a caller by a genuine one', () => {
  const withKey = { ...attributes, authorization: 'Bearer sk-1' };
  assert.deepEqual(identifyCaller(withKey, rules), identifyCaller(attributes, rules));
  const genuine = { ...rules, isGenuineKey: (key: string) => key === 'sk-1' };
  assert.equal(identifyCaller(withKey, genuine).kind, 'key');
  assert.equal(identifyCaller({ ...withKey, authorization: 'Bearer sk-2' }, genuine).kind, 'address');
});

test('hashes the /64 of an IPv6 caller, and none for an IPv4 caller', () => {
  const from = (peer: string): ReturnType<typeof identifyCaller> => identifyCaller({ ...attributes, peer }, rules);
  const [one, other] = [from('2001:db8:1:100::1'), from('2001:db8:1:101::1')];
  assert.equal(one.hash, other.hash);
  assert.notEqual(one.subnet, other.subnet);
  assert.equal(one.subnet, from('2001:db8:1:100:ffff::1').subnet);
  assert.equal(from('203.0.113.9').subnet, undefined);
});

test('keeps the network with a key and across the /56s of one /48', () => {
  const from = (peer: string, authorization?: string): string =>
    identifyCaller({ ...attributes, peer, authorization }, { ...rules, isGenuineKey: () => true }).network;
  assert.equal(from('2001:db8:1:100::1'), from('2001:db8:1:ff00::1', 'Bearer sk-1'));
  assert.notEqual(from('2001:db8:1::1'), from('2001:db8:2::1'));
  assert.equal(from('203.0.113.1', 'Bearer sk-1'), from('203.0.113.200', 'Bearer sk-2'));
  assert.deepEqual(['2001:db8:1:100::1', '203.0.113.9', 'x'].map(toNetworkPrefix), [
    '2001:db8:1::/48',
    '203.0.113.0/24',
    'unknown',
  ]);
});
