// Signs the certificates of own domains of apps on the one-machine node, as cert-manager does elsewhere: for each Gateway that names
// this issuer, a Secret with a certificate of its own.
import { copyFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { gateways, secrets } from '../../controller/objects/kinds.ts';
import type { Client } from '../../lib/kubernetes/index.ts';
import { ensureAuthority, ensureCertificate, type Authority } from '../../localnode/node/control-plane/certificates.ts';
import { node } from '../../localnode/node/settings.ts';
import { paths } from '../../localnode/paths.ts';

/** The parts of a Gateway that a certificate is made from. */
const requested = z.object({
  metadata: z.object({ annotations: z.object({ 'cert-manager.io/cluster-issuer': z.literal(node.domainsIssuer) }) }),
  spec: z.object({
    listeners: z.array(
      z.object({
        hostname: z.string(),
        tls: z.object({ certificateRefs: z.array(z.object({ name: z.string() })).length(1) }),
      }),
    ),
  }),
});

/** Where certificates and their authority are kept. */
export interface IssuerFolders {
  /** Survives `down`, so that a program that trusts the authority continues to do so. */
  readonly authority: string;
  readonly certificates: string;
  /** File to which the certificate of the authority is copied. */
  readonly published: string;
}

const nodeFolders: IssuerFolders = {
  authority: join(paths.cache, 'authority'),
  certificates: join(paths.state, 'domains'),
  published: paths.domainsAuthority,
};

/** Makes the certificates that Gateways lack, and renews those that expire soon. Returns the domains that got one. */
export async function issueDomainCertificates(client: Client, folders = nodeFolders): Promise<string[]> {
  const issued: string[] = [];
  for await (const gateway of client.listAll(gateways, { namespace: node.domainsNamespace })) {
    for (const { hostname, tls } of requested.safeParse(gateway).data?.spec.listeners ?? []) {
      const name = tls.certificateRefs[0]?.name ?? '';
      const files = await ensureCertificate(folders.certificates, await ensureDomainsAuthority(folders), {
        // A subject has 64 characters at most; the domain is among the names.
        ...{ name, commonName: name, names: [hostname], usage: ['serverAuth'] },
      });
      if (await writeCertificate(client, name, files)) issued.push(hostname);
    }
  }
  return issued;
}

/** It may sign any name, and so is another authority than the one that browsers of this machine may trust. */
async function ensureDomainsAuthority({ authority: folder, published }: IssuerFolders): Promise<Authority> {
  const authority = await ensureAuthority(folder, {
    name: 'domains-ca',
    commonName: 'Moorage local authority of domains',
  });
  await mkdir(join(published, '..'), { recursive: true });
  await copyFile(authority.certificate, published);
  return authority;
}

/** Returns false if the Secret has this certificate already. */
async function writeCertificate(client: Client, name: string, { certificate, key }: Authority): Promise<boolean> {
  const [cert, privateKey] = await Promise.all([certificate, key].map((file) => readFile(file)));
  const data = { 'tls.crt': cert?.toString('base64') ?? '', 'tls.key': privateKey?.toString('base64') ?? '' };
  const ref = { name, namespace: node.domainsNamespace };
  const existing = await client.get(secrets, ref);
  if (existing?.data?.['tls.crt'] === data['tls.crt']) return false;
  if (existing !== undefined) await client.delete(secrets, ref);
  await client.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: ref, type: 'kubernetes.io/tls', data });
  return true;
}
