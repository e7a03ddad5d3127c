// The certificate of the local gateway: an authority of its own, kept in the cache so that a browser which trusts it
// goes on doing so.
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { paths } from '../paths.ts';
import { ensureAuthority, ensureCertificate, type Authority } from './certificates.ts';
import { node } from './settings.ts';

/** Makes the authority and the wildcard certificate, and puts the authority's certificate where a person finds it. */
export async function ensureGatewayCertificate(): Promise<Authority> {
  const folder = join(paths.cache, 'authority');
  const authority = await ensureAuthority(folder, 'ca', 'Moorage local authority');
  await mkdir(paths.local, { recursive: true });
  await copyFile(authority.certificate, paths.authority);
  return await ensureCertificate(folder, authority, {
    name: 'wildcard',
    commonName: node.baseDomain,
    names: [node.baseDomain, `*.${node.baseDomain}`],
    usage: ['serverAuth'],
  });
}
