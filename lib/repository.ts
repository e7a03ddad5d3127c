// Parses the address of a git repository, or of a package of a registry, once: from the text that someone typed into one
// normalized value.
import { createHash } from 'node:crypto';

/** A repository address in normal form. Two spellings of one repository give equal `url`s. */
export interface Repository {
  /**
   * `https://host[:port]/owner/name` (or http, only where `insecureHosts` allows), no `.git`, no credentials. For a
   * package, the address of its page.
   */
  readonly url: string;
  readonly host: string;
  readonly owner: string;
  readonly name: string;
  /** The address for git, as it was written: some servers know a repository only with its `.git`. */
  readonly cloneUrl: string;
  /** Its host is reached by plain http. */
  readonly insecure: boolean;
  /** Set for a package, which is not a git repository; its releases count as commits. */
  readonly package?: PackageName | undefined;
  /** Only its deploy key opens it: git reads it over SSH, and nothing of its source is public. */
  readonly isPrivate?: boolean;
}

export const packageRegistries = ['npm', 'pypi'] as const;
export type PackageRegistry = (typeof packageRegistries)[number];

/** A package of a registry, by its name there: `@scope/name` or `name`. */
export interface PackageName {
  readonly registry: PackageRegistry;
  readonly name: string;
}

/** Which git servers may be used: configuration, never the caller's choice. */
export interface GitHosts {
  /** `host` or `host:port`, lower case. The first one completes a bare `owner/name`. */
  readonly allowed: readonly string[];
  /** Those among `allowed` that are reached by plain http. */
  readonly insecure: readonly string[];
}

/** Thrown for a repository that is rejected; `message` says why and `fix` what to write instead. */
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
  const packaged = parsePackage(trimmed, hosts);
  if (packaged?.branch !== undefined)
    throw new RepositoryError('the address names a version', 'Leave the version out: the newest one is hosted.');
  if (packaged !== undefined) return packaged.repository;
  const [defaultHost] = hosts.allowed;
  if (/^[^/:@\s]+\/[^/:@\s]+$/.test(trimmed) && defaultHost !== undefined)
    return parseParts(defaultHost, trimmed.split('/'), hosts);
  const url = parseUrl(trimmed, hosts);
  const host = url.host.toLowerCase();
  if (!hosts.allowed.includes(host)) {
    throw new RepositoryError(
      `the git host ${host} is not allowed here`,
      `Use a repository on one of the allowed hosts: ${hosts.allowed.join(', ')}.`,
    );
  }
  return parseParts(
    host,
    url.pathname.split('/').filter((part) => part !== ''),
    hosts,
    trimmed,
  );
}

/** A repository as people copy its address, with the branch or version that the address of a page names. */
export interface RepositoryAddress {
  readonly repository: Repository;
  readonly branch?: string | undefined;
}

/** Pages of a branch: GitHub and Bitbucket, GitLab, Gitea and Forgejo. */
const branchPage = /^(\/[^/]+\/[^/]+)\/(?:(?:-\/)?(?:tree|blob)|src\/branch|src)\/(.+?)\/?$/;
/** Query parameters that only choose what a page shows. */
const pageParameters = /^(tab|utm_[a-z]+)$/;

/**
 * Parses a copied address: what {@link parseRepository} accepts, and addresses without a protocol, of git over SSH, of a
 * branch (…/tree/main), and with the query or fragment of a page (?tab=readme, #readme). The version of a package is
 * returned as its branch.
 * @throws RepositoryError
 */
export function parseAddress(text: string, hosts: GitHosts): RepositoryAddress {
  const packaged = parsePackage(text.trim(), hosts);
  if (packaged !== undefined) return packaged;
  const address = addProtocol(text.trim(), hosts);
  if (!URL.canParse(address)) return { repository: parseRepository(address, hosts) };
  const url = new URL(address);
  url.hash = '';
  for (const name of [...url.searchParams.keys()]) if (pageParameters.test(name)) url.searchParams.delete(name);
  const [, path, branch] = branchPage.exec(url.pathname) ?? [];
  if (path === undefined || branch === undefined) return { repository: parseRepository(url.href, hosts) };
  url.pathname = path;
  return { repository: parseRepository(url.href, hosts), branch: decodePath(branch) };
}

const sshAddresses = [
  /^git@(?<host>[^/:@\s]+):(?!\d+\/)\/?(?<path>\S+)$/,
  /^(?:git\+)?ssh:\/\/git@(?<host>[^/:@\s]+)(?::\d+)?\/(?<path>\S+)$/,
];

/** Turns git@host:owner/name, ssh://git@host/owner/name and host/owner/name into the https address of that repository. */
function addProtocol(text: string, hosts: GitHosts): string {
  for (const pattern of sshAddresses) {
    const { host, path } = pattern.exec(text)?.groups ?? {};
    if (host !== undefined && path !== undefined) return `${chooseScheme(host, hosts)}://${host}/${path}`;
  }
  const [first = '', ...rest] = text.split('/');
  const isHost = hosts.allowed.includes(first.toLowerCase()) || /^[^@:\s]+\.[^@:\s]+$/.test(first);
  return isHost && rest.length > 1 ? `${chooseScheme(first, hosts)}://${text}` : text;
}

function chooseScheme(host: string, { insecure }: GitHosts): string {
  return insecure.includes(host.toLowerCase()) ? 'http' : 'https';
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** The repository, or why it is rejected. */
export function readRepository(text: string, hosts: GitHosts): Repository | RepositoryError {
  try {
    return parseRepository(text, hosts);
  } catch (error) {
    if (error instanceof RepositoryError) return error;
    throw error;
  }
}

/** The repository, as one that only its deploy key opens if `isPrivate` is set. */
export function markPrivate(repository: Repository, isPrivate: boolean | undefined): Repository {
  return isPrivate === true ? { ...repository, isPrivate } : repository;
}

/**
 * The repository of an address that was accepted before, such as the one in a HostedApp. Normalizes it even if its host
 * is no longer allowed.
 */
export function parseAcceptedRepository(address: string): Repository {
  for (const registry of registries) {
    const name = registry.findName(address)?.name;
    if (name !== undefined) return toPackage(registry, name);
  }
  const { protocol, host, pathname } = new URL(address);
  const [owner = '', ...rest] = pathname.split('/').filter((part) => part !== '');
  return toNormalForm({ host, owner, name: rest.join('/'), insecure: protocol === 'http:', cloneUrl: address });
}

/** Short stable hash of a normalized repository url, fit for a label value. */
export function hashRepository(url: string): string {
  return createHash('sha256').update(url.toLowerCase()).digest('hex').slice(0, 32);
}

function parseUrl(text: string, hosts: GitHosts): URL {
  const example = `Write it as owner/name or https://${hosts.allowed[0] ?? 'host'}/owner/name.`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new RepositoryError('the repository is neither owner/name nor a URL', example);
  if (!isProtocolAllowed(url, hosts))
    throw new RepositoryError(`the protocol ${url.protocol.replace(':', '')} is not supported`, example);
  if (url.username !== '' || url.password !== '')
    throw new RepositoryError(
      'the URL contains credentials',
      'Remove them. A private repository is read with a deploy key, not with a password or a token.',
    );
  if (url.search !== '' || url.hash !== '')
    throw new RepositoryError('the URL contains a query or a fragment', example);
  return url;
}

function isProtocolAllowed(url: URL, hosts: GitHosts): boolean {
  return url.protocol === 'https:' || (url.protocol === 'http:' && hosts.insecure.includes(url.host.toLowerCase()));
}

function parseParts(host: string, parts: readonly string[], hosts: GitHosts, cloneUrl?: string): Repository {
  const [owner, rawName] = parts;
  const name = rawName === undefined ? undefined : removeSuffix(rawName);
  if (parts.length !== 2 || owner === undefined || name === undefined || !segment.test(owner) || !segment.test(name)) {
    throw new RepositoryError(
      'the repository path is not owner/name',
      `Write it as owner/name or https://${host}/owner/name.`,
    );
  }
  return toNormalForm({ host, owner, name, insecure: hosts.insecure.includes(host), cloneUrl });
}

function toNormalForm(
  parts: Omit<Repository, 'url' | 'cloneUrl'> & { readonly cloneUrl?: string | undefined },
): Repository {
  const { host, owner, insecure, cloneUrl } = parts;
  const name = removeSuffix(parts.name);
  const url = `${insecure ? 'http' : 'https'}://${host}/${owner}/${name}`;
  return { url, host, owner, name, cloneUrl: cloneUrl ?? url, insecure };
}

// Packages: npm:@scope/name, pypi:name, and the addresses of their pages.

interface Registry {
  readonly registry: PackageRegistry;
  readonly host: string;
  readonly page: string;
  /** The whole of a name; it becomes part of the addresses at which the registry is asked. */
  readonly name: RegExp;
  /** Separates the version from the name in `npm:name@version`. */
  readonly versionMark: RegExp;
  /** The name and version in the address of a page. */
  findName(address: string): { name: string; version?: string | undefined } | undefined;
}

const registries: readonly Registry[] = [
  {
    registry: 'npm',
    host: 'npmjs.com',
    page: 'https://www.npmjs.com/package/',
    name: /^(?:@[a-z0-9][a-z0-9._-]{0,99}\/)?[a-z0-9][a-z0-9._-]{0,99}$/i,
    versionMark: /(?!^)@/,
    findName: (address) =>
      matchPage(/^https:\/\/(?:www\.)?npmjs\.com\/package\/((?:@[^/?#]+\/)?[^/?#]+)(?:\/v\/([^/?#]+))?/, address),
  },
  {
    registry: 'pypi',
    host: 'pypi.org',
    page: 'https://pypi.org/project/',
    name: /^[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9])?$/i,
    versionMark: /==|@/,
    findName: (address) => matchPage(/^https:\/\/(?:www\.)?pypi\.org\/project\/([^/?#]+)(?:\/([^/?#]+))?/, address),
  },
];

/** Hosts whose repositories are packages. */
export const registryHosts: readonly string[] = registries.map(({ host }) => host);

function matchPage(page: RegExp, address: string): { name: string; version?: string | undefined } | undefined {
  const [, name, version] = page.exec(address) ?? [];
  return name === undefined ? undefined : { name: decodePath(name), version };
}

function parsePackage(text: string, { allowed }: GitHosts): RepositoryAddress | undefined {
  for (const registry of registries) {
    const prefix = `${registry.registry}:`;
    const [start = '', version] = text.slice(prefix.length).trim().split(registry.versionMark);
    const found = text.toLowerCase().startsWith(prefix) ? { name: start, version } : registry.findName(text);
    if (found === undefined) continue;
    if (!allowed.includes(registry.host))
      throw new RepositoryError(
        `packages of ${registry.host} are not allowed here`,
        `Use a repository on one of the allowed hosts: ${allowed.join(', ')}.`,
      );
    if (!registry.name.test(found.name))
      throw new RepositoryError(
        `${found.name} is not the name of a package`,
        `Write it as ${registry.registry === 'npm' ? 'npm:@scope/name or npm:name' : 'pypi:name'}.`,
      );
    return {
      repository: toPackage(registry, found.name),
      ...(found.version === undefined ? {} : { branch: found.version }),
    };
  }
  return undefined;
}

/** The owner of a package without a scope is the package itself: nothing says who else publishes under that account. */
function toPackage({ registry, host, page }: Registry, text: string): Repository {
  // PyPI treats these spellings as one name.
  const name = registry === 'pypi' ? text.toLowerCase().replaceAll(/[-_.]+/g, '-') : text;
  const [owner = name, short = name] = name.split('/');
  const url = `${page}${name}`;
  return { url, host, owner, name: short, cloneUrl: url, insecure: false, package: { registry, name } };
}

const removeSuffix = (name: string): string => name.replace(/(?:\.git)+$/i, '');
