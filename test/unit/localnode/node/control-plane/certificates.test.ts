// Certificate authorities: what a local one can sign, and for how long.
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, test } from 'vitest';
import { ensureAuthority, ensureCertificate } from '../../../../../localnode/node/control-plane/certificates.ts';
import { run } from '../../../../../localnode/shell.ts';

const folder = mkdtempSync(join(tmpdir(), 'moorage-authority-'));
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});
const spec = { name: 'ca', commonName: 'an authority', permitted: ['moorage.localhost', 'moorage-apps.localhost'] };

test('a stolen key of the local authority cannot sign for other sites', async () => {
  const authority = await ensureAuthority(folder, spec);
  const leaf = async (name: string): Promise<string> => {
    const { certificate } = await ensureCertificate(folder, authority, {
      name: name.replace('*', 'any'),
      commonName: 'a site',
      names: [name],
      usage: ['serverAuth'],
    });
    return await run('openssl', ['verify', '-CAfile', authority.certificate, certificate]).then(
      () => 'trusted',
      (error: unknown) => String(error),
    );
  };
  assert.equal(await leaf('moorage.localhost'), 'trusted');
  assert.equal(await leaf('*.moorage.localhost'), 'trusted');
  assert.equal(await leaf('*.moorage-apps.localhost'), 'trusted');
  assert.match(await leaf('bank.example'), /permitted subtree violation/);
});

test('cannot sign another authority, and expires within two years', async () => {
  const { certificate } = await ensureAuthority(folder, spec);
  assert.match(await run('openssl', ['x509', '-in', certificate, '-noout', '-text']), /CA:TRUE, pathlen:0/);
  const { validTo } = new X509Certificate(readFileSync(certificate));
  assert.ok(Date.parse(validTo) - Date.now() <= 730 * 86_400_000);
});

test('is kept between runs of `up`, and replaced if it could sign more', async () => {
  const { certificate } = await ensureAuthority(folder, spec);
  const kept = readFileSync(certificate, 'utf8');
  await ensureAuthority(folder, spec);
  assert.equal(readFileSync(certificate, 'utf8'), kept);
  writeFileSync(join(folder, 'ca.spec'), 'made before there were limits');
  await ensureAuthority(folder, spec);
  assert.notEqual(readFileSync(certificate, 'utf8'), kept);
});
