// Deploy keys, with which the platform reads private repositories over SSH. Each repository has its own key, derived from one
// secret of the installation, so that none is stored; and the host keys that identify git servers.
import { getKeys } from 'micro-key-producer/ssh.js';
import type { Repository } from '../repository.ts';
import { derivePurposeKey } from '../sealed-text.ts';

/** What the installation reads private repositories with. */
export interface DeployKeys {
  /** Every key is derived from it. */
  readonly secret: string;
  readonly hostKeys: readonly HostKey[];
}

/** A key that identifies a server, and the port of its SSH. */
export interface HostKey {
  readonly host: string;
  readonly port: number;
  /** Type and key, as in a line of known_hosts. */
  readonly key: string;
}

export interface DeployKey {
  /** A line for the form of a forge: type, key, comment. */
  readonly publicKey: string;
  /** As forges and ssh-keygen show it: SHA256:… */
  readonly fingerprint: string;
  /** In the format of OpenSSH. */
  readonly privateKey: string;
}

/** What git needs to read a repository over SSH. */
export interface SshRemote {
  /** Like ssh://git@github.com:22/owner/name.git. */
  readonly url: string;
  /** Lines of known_hosts for its server, and no other. */
  readonly knownHosts: string;
}

/** Derives the deploy key of a repository: the same one each time, and another one for each repository. */
export function deriveDeployKey({ url }: Repository, secret: string): DeployKey {
  const seed = derivePurposeKey(secret, `moorage deploy key 1\n${url.toLowerCase()}`);
  const { publicKey, fingerprint, privateKey } = getKeys(seed, 'moorage');
  return { publicKey, fingerprint, privateKey };
}

/** Finds how a repository is reached over SSH; undefined if no key of its server is known. */
export function findSshRemote(repository: Repository, hostKeys: readonly HostKey[]): SshRemote | undefined {
  if (repository.package !== undefined) return undefined;
  const { hostname } = new URL(repository.url);
  const ofHost = hostKeys.filter(({ host }) => host === hostname);
  const port = ofHost[0]?.port;
  if (port === undefined) return undefined;
  return {
    url: `ssh://git@${hostname}:${port}/${repository.owner}/${repository.name}.git`,
    knownHosts: ofHost
      .filter((each) => each.port === port)
      .map((each) => `${formatKnownHost(each)} ${each.key}\n`)
      .join(''),
  };
}

function formatKnownHost({ host, port }: HostKey): string {
  return port === 22 ? host : `[${host}]:${port}`;
}

/** Where a forge takes the deploy keys of a repository; undefined if its pages are not known. */
export function findDeployKeyPage({ host, owner, name }: Repository): string | undefined {
  const path = deployKeyPages[host];
  return path === undefined ? undefined : `https://${host}/${owner}/${name}${path}`;
}

const deployKeyPages: Readonly<Record<string, string>> = {
  'github.com': '/settings/keys/new',
  'gitlab.com': '/-/settings/repository#js-deploy-keys-settings',
  'codeberg.org': '/settings/keys',
  'bitbucket.org': '/admin/access-keys/',
};

/** A line of known_hosts with one name, such as `[git.example.org]:2222 ssh-ed25519 AAAA…`. */
export const hostKeyLine =
  /^(?:([a-z0-9.-]+)|\[([a-z0-9.-]+)\]:([0-9]{1,5})) ((?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)) [A-Za-z0-9+/]{40,1000}={0,2})$/;

/** Parses a {@link hostKeyLine}; undefined if it is another line. */
export function parseHostKey(line: string): HostKey | undefined {
  const [, plain, host = plain, port = '22', key] = hostKeyLine.exec(line.trim()) ?? [];
  if (host === undefined || key === undefined || Number(port) > 65_535) return undefined;
  return { host, port: Number(port), key };
}

/** The Ed25519 keys that the forges publish. A key that is set for one of these hosts replaces it. */
const publishedHostKeys: readonly string[] = [
  'github.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl',
  'gitlab.com ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf',
  'codeberg.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIVIC02vnjFyL+I4RHfvIGNtOgJMe769VTF1VR4EB3ZB',
  'bitbucket.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIazEu89wgQZ4bqs3d63QSMzYVa0MuJ2e2gKTKqu+UUO',
];

/** The keys of the well-known forges, and those that the operator of the installation has set. */
export function listHostKeys(configured: readonly HostKey[]): HostKey[] {
  const published = publishedHostKeys.flatMap((line) => parseHostKey(line) ?? []);
  return [...configured, ...published.filter(({ host }) => !configured.some((each) => each.host === host))];
}
