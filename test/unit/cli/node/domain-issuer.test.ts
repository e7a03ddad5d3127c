// The issuer of the one-machine node: a certificate of its own for each domain, and none for Gateways that name another issuer.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'vitest';
import { issueDomainCertificates, type IssuerFolders } from '../../../../cli/node/domain-issuer.ts';
import type { Client, KubeObject, Manifest } from '../../../../lib/kubernetes/index.ts';

let folder: string;
let folders: IssuerFolders;
const secrets = new Map<string, Manifest & { data: Record<string, string> }>();

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'moorage-issuer-'));
  folders = { authority: join(folder, 'a'), certificates: join(folder, 'c'), published: join(folder, 'p', 'ca.crt') };
  secrets.clear();
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const createGateway = (name: string, hostname: string, issuer: string): object => ({
  metadata: { name, annotations: { 'cert-manager.io/cluster-issuer': issuer } },
  spec: { listeners: [{ name: 'https', hostname, tls: { certificateRefs: [{ name }] } }] },
});

/** The part of a client that the issuer uses. */
function createClient(gateways: readonly object[]): Client {
  return {
    listAll: () => gateways,
    get: (_resource: unknown, { name }: { name: string }) => Promise.resolve(secrets.get(name)),
    create: (_resource: unknown, manifest: never) => {
      const { metadata } = manifest as KubeObject;
      assert.ok(!secrets.has(metadata.name));
      secrets.set(metadata.name, manifest);
      return Promise.resolve(manifest);
    },
    delete: (_resource: unknown, { name }: { name: string }) => Promise.resolve(secrets.delete(name)),
  } as unknown as Client;
}

function readCertificate(name: string): X509Certificate {
  return new X509Certificate(Buffer.from(secrets.get(name)?.data['tls.crt'] ?? '', 'base64'));
}

test('signs one certificate for each domain, once, and replaces a Secret with another one', async () => {
  const long = `${'a'.repeat(60)}.${'b'.repeat(60)}.example.com`;
  const client = createClient([
    createGateway('domain-1', 'shop.example.com', 'moorage-local'),
    createGateway('domain-2', long, 'moorage-local'),
    createGateway('domain-3', 'other.example.com', 'letsencrypt'),
  ]);
  assert.deepEqual(await issueDomainCertificates(client, folders), ['shop.example.com', long]);
  assert.deepEqual([...secrets.keys()], ['domain-1', 'domain-2']);
  const authority = new X509Certificate(await readFile(folders.published));
  const [first, second] = [readCertificate('domain-1'), readCertificate('domain-2')];
  assert.deepEqual([first.subjectAltName, second.subjectAltName], ['DNS:shop.example.com', `DNS:${long}`]);
  assert.ok(first.verify(authority.publicKey) && !first.ca);
  assert.deepEqual(await issueDomainCertificates(client, folders), []);
  secrets.set('domain-1', { data: { 'tls.crt': '' } } as never);
  assert.deepEqual(await issueDomainCertificates(client, folders), ['shop.example.com']);
});
