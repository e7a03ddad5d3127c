// Creates certificate authorities and certificates with openssl, and renews them well before they expire.
import { X509Certificate } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rename, rm, writeFile, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { computeContentKey, readText, writeText } from '../../files.ts';
import { run } from '../../shell.ts';

export interface CertificateSpec {
  /** File name without extension. */
  name: string;
  commonName: string;
  organization?: string;
  /** DNS names that it is valid for. */
  names?: readonly string[];
  /** IP addresses that it is valid for. */
  addresses?: readonly string[];
  usage: readonly ('serverAuth' | 'clientAuth')[];
}

export interface Authority {
  certificate: string;
  key: string;
}

const dayMs = 86_400_000;
const authorityDays = 730;
/** Browsers reject server certificates that are valid for longer than 398 days. */
const certificateDays = 397;
const renewBeforeDays = 60;

/** Returns true if the certificate is missing, unreadable, or expires within the renewal window. */
export function shouldRenew(pem: string | undefined, now: Date): boolean {
  if (pem === undefined) return true;
  try {
    return Date.parse(new X509Certificate(pem).validTo) - now.getTime() < renewBeforeDays * dayMs;
  } catch {
    return true;
  }
}

export interface AuthoritySpec {
  /** File name without extension. */
  name: string;
  commonName: string;
  /** Domains that it may sign, including all subdomains; any if absent. */
  permitted?: readonly string[];
}

/**
 * Formats openssl's configuration: the authority signs no other authority, and nothing outside its permitted domains.
 */
export function formatAuthorityRequest({ commonName, permitted }: AuthoritySpec): string {
  return [
    '[req]',
    'prompt=no',
    'distinguished_name=subject',
    'x509_extensions=authority',
    '[subject]',
    `CN=${commonName}`,
    '[authority]',
    'basicConstraints=critical,CA:TRUE,pathlen:0',
    'keyUsage=critical,keyCertSign,cRLSign',
    'subjectKeyIdentifier=hash',
    ...(permitted === undefined
      ? []
      : [`nameConstraints=critical,${permitted.map((name) => `permitted;DNS:${name}`).join(',')}`]),
    '',
  ].join('\n');
}

/**
 * Creates the authority `<folder>/<name>.{crt,key}` unless it exists and does not expire soon. Replaces one that may
 * sign more than is permitted.
 */
export async function ensureAuthority(folder: string, spec: AuthoritySpec): Promise<Authority> {
  const authority = { certificate: join(folder, `${spec.name}.crt`), key: join(folder, `${spec.name}.key`) };
  const stamp = join(folder, `${spec.name}.spec`);
  const request = formatAuthorityRequest(spec);
  const key = computeContentKey([request, String(authorityDays)]);
  if (
    (spec.permitted === undefined || (await readText(stamp)) === key) &&
    !shouldRenew(await readText(authority.certificate), new Date()) &&
    (await readText(authority.key)) !== undefined
  )
    return authority;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeText(join(folder, `${spec.name}.cnf`), request);
  await run('openssl', [
    ...['req', '-x509', '-config', join(folder, `${spec.name}.cnf`)],
    ...['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', String(authorityDays)],
    ...['-keyout', `${authority.key}.draft`, '-out', `${authority.certificate}.draft`],
  ]);
  await chmod(`${authority.key}.draft`, 0o600);
  await rename(`${authority.key}.draft`, authority.key);
  await rename(`${authority.certificate}.draft`, authority.certificate);
  await writeText(stamp, key);
  return authority;
}

/** Formats openssl's extension file. */
export function formatExtensions(spec: CertificateSpec): string {
  const alternatives = [
    ...(spec.names ?? []).map((name) => `DNS:${name}`),
    ...(spec.addresses ?? []).map((address) => `IP:${address}`),
  ];
  return [
    'basicConstraints=critical,CA:FALSE',
    'keyUsage=critical,digitalSignature',
    `extendedKeyUsage=${spec.usage.join(',')}`,
    ...(alternatives.length === 0 ? [] : [`subjectAltName=${alternatives.join(',')}`]),
    '',
  ].join('\n');
}

/**
 * Creates `<folder>/<name>.{crt,key}`, signed by the authority, unless one for the same spec and authority exists and
 * does not expire soon.
 */
export async function ensureCertificate(
  folder: string,
  authority: Authority,
  spec: CertificateSpec,
): Promise<Authority> {
  const certificate = { certificate: join(folder, `${spec.name}.crt`), key: join(folder, `${spec.name}.key`) };
  const stamp = join(folder, `${spec.name}.spec`);
  const key = computeContentKey([JSON.stringify(spec), (await readText(authority.certificate)) ?? '']);
  const current = await readText(certificate.certificate);
  if (
    (await readText(stamp)) === key &&
    !shouldRenew(current, new Date()) &&
    (await readText(certificate.key)) !== undefined
  )
    return certificate;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const scratch = await mkdtemp(join(tmpdir(), 'moorage-certificate-'));
  try {
    const toScratchPath = (name: string): string => join(scratch, name);
    await writeFile(toScratchPath('extensions'), formatExtensions(spec));
    const subject = `${spec.organization === undefined ? '' : `/O=${spec.organization}`}/CN=${spec.commonName}`;
    await run('openssl', [
      'req',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-subj',
      subject,
      '-keyout',
      toScratchPath('key'),
      '-out',
      toScratchPath('request'),
    ]);
    await run('openssl', [
      ...[
        'x509',
        '-req',
        '-in',
        toScratchPath('request'),
        '-CA',
        authority.certificate,
        '-CAkey',
        authority.key,
        '-days',
        String(certificateDays),
      ],
      ...[
        '-set_serial',
        `0x${(await run('openssl', ['rand', '-hex', '16'])).replace(/^./, '1')}`,
        '-extfile',
        toScratchPath('extensions'),
        '-out',
        toScratchPath('certificate'),
      ],
    ]);
    await writeText(certificate.key, (await readText(toScratchPath('key'))) ?? '', 0o600);
    await writeText(certificate.certificate, (await readText(toScratchPath('certificate'))) ?? '');
    await writeText(stamp, key);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return certificate;
}

/** Creates the key pair that signs service account tokens: `<folder>/service-account.{key,pub}`. */
export async function ensureServiceAccountKeys(folder: string): Promise<{ key: string; publicKey: string }> {
  const keys = { key: join(folder, 'service-account.key'), publicKey: join(folder, 'service-account.pub') };
  if ((await readText(keys.publicKey)) !== undefined) return keys;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const key = await run('openssl', ['genrsa', '2048']);
  await writeText(keys.key, `${key}\n`, 0o600);
  await writeText(keys.publicKey, `${await run('openssl', ['rsa', '-in', keys.key, '-pubout'])}\n`);
  return keys;
}

export interface KubeconfigSource {
  server: string;
  /** PEM files. */
  authority: string;
  certificate: string;
  key: string;
  context: string;
  namespace?: string;
}

/** Writes the file, readable only by its owner, with all certificates embedded. Returns its text. */
export async function writeKubeconfig(path: string, source: KubeconfigSource): Promise<string> {
  const [authority, certificate, key] = await Promise.all(
    [source.authority, source.certificate, source.key].map((file) => readFile(file)),
  );
  const text = stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': source.context,
      clusters: [
        {
          name: source.context,
          cluster: { server: source.server, 'certificate-authority-data': authority?.toString('base64') },
        },
      ],
      users: [
        {
          name: source.context,
          user: {
            'client-certificate-data': certificate?.toString('base64'),
            'client-key-data': key?.toString('base64'),
          },
        },
      ],
      contexts: [
        {
          name: source.context,
          context: {
            cluster: source.context,
            user: source.context,
            ...(source.namespace === undefined ? {} : { namespace: source.namespace }),
          },
        },
      ],
    },
    { lineWidth: 0 },
  );
  await writeText(path, text, 0o600);
  return text;
}
