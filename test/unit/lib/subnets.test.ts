// One list closes what is not the public internet: to tools, to apps and to builds.
import assert from 'node:assert/strict';
import { isIP } from 'node:net';
import { describe, test } from 'vitest';
import { createAddressCheck } from '../../../api/tools/fetch/guard.ts';
import { readOperatorConfig } from '../../../controller/config.ts';
import { closedCidrs, closeAlso, createSubnetMatcher } from '../../../lib/subnets.ts';
import special from '../../../lib/special-addresses.json' with { type: 'json' };

const isPublic = createAddressCheck([]);
const inPolicies = createSubnetMatcher(closedCidrs);

describe('attack: addresses of clouds and reserved ranges', () => {
  for (const address of [
    '168.63.129.16',
    '169.254.169.254',
    '100.100.100.200',
    '192.0.0.192',
    '192.0.0.9',
    '192.88.99.1',
    '192.31.196.1',
    '198.18.0.1',
    '203.0.113.1',
    '240.0.0.1',
    '255.255.255.255',
    '0.0.0.0',
    '224.0.0.1',
    'fd00:ec2::254',
    'fd20:ce::254',
    '2001::1',
    '2002:a00:1::',
    '2001:db8::1',
    '3fff::1',
    '5f00::1',
    '100::1',
    'fec0::1',
    'ff02::1',
    '::1',
    '::',
    '::10.0.0.1',
    '::ffff:0:127.0.0.1',
    '64:ff9b:1::1',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::a83f:8110',
    '64:ff9b::7f00:1',
  ])
    test(`${address} is closed to tools and to pods`, () => {
      assert.equal(isPublic(address), false);
      assert.equal(inPolicies(address), true);
    });
});

test('closes the first and last address of every block except the translator itself', () => {
  for (const { cidr } of special.sources.flatMap(({ blocks }) => blocks)) {
    if (cidr === '64:ff9b::/96') continue;
    const [first = ''] = cidr.split('/');
    assert.equal(isPublic(first), false, cidr);
    // What is mapped is IPv4 by the time that a policy sees it.
    if (cidr !== '::ffff:0:0/96') assert.equal(inPolicies(first), true, cidr);
  }
});

test('leaves the public internet open by IPv4, IPv6 and a translator', () => {
  for (const address of [
    '8.8.8.8',
    '1.1.1.1',
    '168.63.129.15',
    '168.63.129.17',
    '172.15.255.255',
    '172.32.0.1',
    '100.63.255.255',
    '192.0.1.1',
    '223.255.255.255',
    '2606:4700::1111',
    '2a00:1450:4001::1',
    '2001:4860:4860::8888',
    '64:ff9b::808:808',
  ]) {
    assert.equal(isPublic(address), true, address);
    assert.equal(inPolicies(address), false, address);
  }
});

test('contains no block that Kubernetes rejects or that lies within another', () => {
  assert.deepEqual(closedCidrs, [...new Set(closedCidrs)]);
  for (const cidr of closedCidrs) {
    const [address = '', length] = cidr.split('/');
    assert.ok(!address.includes('.') || isIP(address) === 4, `${cidr} is IPv4 within IPv6`);
    const wider: string[] = closedCidrs.filter((other): boolean => {
      if (other === cidr || isIP(other.split('/')[0] ?? '') !== isIP(address)) return false;
      return Number(other.split('/')[1]) < Number(length) && createSubnetMatcher([other])(address);
    });
    assert.deepEqual(wider, [], cidr);
  }
});

test('an installation can only add to the closed blocks', () => {
  assert.deepEqual(closeAlso(['51.1.0.0/16', '10.0.0.0/8']), [...closedCidrs, '51.1.0.0/16']);
  assert.equal(createAddressCheck(['51.1.0.0/16'])('51.1.2.3'), false);
  const { installation } = readOperatorConfig({
    MOORAGE_IMAGE: 'moorage:1',
    MOORAGE_BASE_DOMAIN: 'apps.example.org',
    MOORAGE_PIPELINE_IMAGE: 'pipeline:1',
    MOORAGE_REGISTRY_HOST: 'registry.example.org',
    MOORAGE_CLOSED_CIDRS: '51.1.0.0/16',
    MOORAGE_PUSH_TOKEN_SECRET: 'push-token-secret-of-tests-0123456789',
  });
  assert.deepEqual(installation.run.closedCidrs, closeAlso(['51.1.0.0/16']));
});
