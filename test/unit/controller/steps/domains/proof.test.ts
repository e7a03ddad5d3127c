// The lookup of proofs, at a real DNS server: which answers prove a domain, which say that there is no proof, and which say nothing.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import {
  createDomainLookup,
  type DomainAnswer,
  findDomainProof,
} from '../../../../../controller/steps/domains/proof.ts';
import { formatDomainProof } from '../../../../../crds/domains.ts';
import { type DnsServer, startDnsServer } from '../../../../support/dns-server.ts';

const site = { domain: 'apps.test', port: 443 };
const [mine, other] = [
  { name: 'mine', uid: 'uid-1' },
  { name: 'mine', uid: 'uid-2' },
];
const domain = 'shop.example.com';
const { txt, cname } = formatDomainProof(mine, domain, site);
let dns: DnsServer;

beforeAll(async () => {
  dns = await startDnsServer();
});
afterAll(() => dns.stop());
beforeEach(() => {
  dns.records.clear();
  dns.failing.clear();
});

async function ask(of = domain): Promise<DomainAnswer> {
  const { byName } = await createDomainLookup([dns.address])([of]);
  return byName[of] ?? assert.fail('no answer');
}

test('finds the TXT record and the alias, in any case, among other records', async () => {
  dns.records.set(`TXT ${txt.name}`, txt.value);
  assert.equal(findDomainProof(await ask(), mine, domain, site), 'txt');
  dns.records.clear();
  dns.records.set(`CNAME ${cname.name}`, cname.value.toUpperCase());
  assert.equal(findDomainProof(await ask(), mine, domain, site), 'cname');
});

test('records of another app, of an earlier app of this name, or of another domain prove nothing', async () => {
  dns.records.set(`TXT ${txt.name}`, txt.value);
  dns.records.set(`CNAME ${cname.name}`, cname.value);
  assert.equal(findDomainProof(await ask(), other, domain, site), undefined);
  dns.records.set('TXT _moorage.other.example.com', txt.value);
  dns.records.set('CNAME other.example.com', cname.value);
  assert.equal(findDomainProof(await ask('other.example.com'), mine, 'other.example.com', site), undefined);
  // The host name of the app proves nothing: a later app of this name would get the domain.
  dns.records.set('CNAME plain.example.com', 'mine.apps.test');
  assert.equal(findDomainProof(await ask('plain.example.com'), mine, 'plain.example.com', site), undefined);
});

test('a name that does not exist is an answer; a server that fails or is silent is none', async () => {
  assert.deepEqual(await ask(), { texts: [], aliases: [], error: undefined });
  dns.failing.add(domain);
  assert.deepEqual(await ask(), { texts: [], aliases: [], error: 'ESERVFAIL' });
  dns.records.set(`TXT ${txt.name}`, txt.value);
  const half = await ask();
  assert.deepEqual([half.error, findDomainProof(half, mine, domain, site)], ['ESERVFAIL', 'txt']);
  const { byName } = await createDomainLookup(['127.0.0.1:1'])([domain]);
  assert.match(byName[domain]?.error ?? '', /^E(CONNREFUSED|TIMEOUT)$/);
});

test('the records are the same at each replica, fit into DNS, and differ by app and domain', () => {
  const longest = { name: `a${'b'.repeat(39)}`, uid: 'u' };
  const [label = ''] = formatDomainProof(longest, domain, site).cname.value.split('.');
  assert.ok(label.length <= 63, label);
  const values = [mine, other].flatMap((app) =>
    [domain, 'www.example.com'].map((name) => formatDomainProof(app, name, site).txt.value),
  );
  assert.equal(new Set(values).size, 4);
  assert.deepEqual(formatDomainProof({ ...mine }, domain, site), { txt, cname });
});
