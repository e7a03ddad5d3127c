// The certificate of the local gateway: its authority is kept in the cache, so that a browser that trusts it continues
// to do so.
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { paths } from '../../paths.ts';
import { ensureAuthority, ensureCertificate, type Authority } from '../control-plane/certificates.ts';
import { node } from '../settings.ts';

const domains = [node.baseDomain, node.appsDomain];

/** Makes the authority and the wildcard certificate, and copies the authority's certificate beside the source. */
export async function ensureGatewayCertificate(): Promise<Authority> {
  const folder = join(paths.cache, 'authority');
  const authority = await ensureAuthority(folder, {
    name: 'ca',
    commonName: 'Moorage local authority',
    // Whoever trusts it trusts it for nothing else.
    permitted: domains,
  });
  await mkdir(paths.local, { recursive: true });
  await copyFile(authority.certificate, paths.authority);
  return await ensureCertificate(folder, authority, {
    name: 'wildcard',
    commonName: node.baseDomain,
    names: domains.flatMap((domain) => [domain, `*.${domain}`]),
    usage: ['serverAuth'],
  });
}
