// Reads what an author typed as a repository and makes one normalized address of it.
import { createHash } from 'node:crypto';

/** A repository address in normal form. Two spellings of one repository give equal `url`s. */
export interface Repository {
  /** `https://host[:port]/owner/name` (or http, only where `insecureHosts` allows), no `.git`, no credentials. */
  readonly url: string;
  readonly host: string;
  readonly owner: string;
  readonly name: string;
}

/** Which git servers may be used: configuration, never the caller's choice. */
export interface GitHosts {
  /** `host` or `host:port`, lower case. The first one completes a bare `owner/name`. */
  readonly allowed: readonly string[];
  /** Those among `allowed` that are spoken to by plain http. */
  readonly insecure: readonly string[];
}

/** Thrown for a repository that is refused; `message` says why and `fix` what to write instead. */
export class RepositoryError extends Error {
  override readonly name = 'RepositoryError';
  readonly fix: string;
  constructor(message: string, fix: string) {
    super(message);
    this.fix = fix;
  }
}

const segment = /^[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9_-])?$/;

/**
 * Parses `owner/name` or a full URL into a {@link Repository}.
 * @throws RepositoryError for other protocols, unknown hosts, credentials, queries, deeper paths or odd characters.
 */
export function parseRepository(text: string, hosts: GitHosts): Repository {
  const trimmed = text.trim();
  const [defaultHost] = hosts.allowed;
  if (/^[^/:@\s]+\/[^/:@\s]+$/.test(trimmed) && defaultHost !== undefined)
    return fromParts(defaultHost, trimmed.split('/'), hosts);
  const url = parseUrl(trimmed, hosts);
  const host = url.host.toLowerCase();
  if (!hosts.allowed.includes(host)) {
    throw new RepositoryError(
      `git host ${host} is not one that is hosted from here`,
      `use a repository on one of: ${hosts.allowed.join(', ')}`,
    );
  }
  return fromParts(
    host,
    url.pathname.split('/').filter((part) => part !== ''),
    hosts,
  );
}

/** Short stable hash of a normalized repository url, fit for a label value. */
export function repositoryHash(url: string): string {
  return createHash('sha256').update(url.toLowerCase()).digest('hex').slice(0, 32);
}

function parseUrl(text: string, hosts: GitHosts): URL {
  const example = `write it as owner/name or https://${hosts.allowed[0] ?? 'host'}/owner/name`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new RepositoryError('this is neither owner/name nor a URL', example);
  if (!protocolAllowed(url, hosts))
    throw new RepositoryError(`protocol ${url.protocol.replace(':', '')} is not accepted`, example);
  if (url.username !== '' || url.password !== '')
    throw new RepositoryError('the URL carries credentials', 'remove them; only public repositories are hosted');
  if (url.search !== '' || url.hash !== '') throw new RepositoryError('the URL carries a query or fragment', example);
  return url;
}

function protocolAllowed(url: URL, hosts: GitHosts): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && hosts.insecure.includes(url.host.toLowerCase()));
}

function fromParts(host: string, parts: readonly string[], hosts: GitHosts): Repository {
  const [owner, rawName] = parts;
  const name = rawName?.replace(/(?:\.git)+$/i, '');
  if (parts.length !== 2 || owner === undefined || name === undefined || !segment.test(owner) || !segment.test(name)) {
    throw new RepositoryError(
      'the repository path is not owner/name',
      `write it as owner/name or https://${host}/owner/name`,
    );
  }
  const protocol = hosts.insecure.includes(host) ? 'http' : 'https';
  return { url: `${protocol}://${host}/${owner}/${name}`, host, owner, name };
}
