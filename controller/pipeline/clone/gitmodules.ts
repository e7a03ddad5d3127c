// What .gitmodules says of a submodule: one address of an allowed git server, or why there is none.
import { isAbsolute } from 'node:path/posix';
import { readRepository, RepositoryError, type GitHosts, type Repository } from '../../../lib/repository.ts';
import { head, oneLine } from '../text.ts';

const maximumEntries = 5_000;

/** Addresses by path, as `git config --null --list` prints the file. */
export type Declarations = ReadonlyMap<string, readonly string[]>;

/** Reads `key\nvalue\0`. Of a key that is given twice both values count, so that two tools cannot read it differently. */
export function readDeclarations(listed: string): Declarations {
  const paths = new Lists();
  const urls = new Lists();
  for (const entry of listed.split('\0').slice(0, maximumEntries)) {
    const match = /^submodule\.([^\n]{1,500})\.(path|url)\n(.*)$/s.exec(entry);
    if (match === null) continue;
    const [, name = '', key = '', value = ''] = match;
    (key === 'path' ? paths : urls).add(name, [value]);
  }
  const declared = new Lists();
  for (const [name, values] of paths) for (const path of values) declared.add(path, urls.get(name) ?? []);
  return declared;
}

class Lists extends Map<string, readonly string[]> {
  add(key: string, values: readonly string[]): void {
    this.set(key, [...(this.get(key) ?? []), ...values]);
  }
}

/** The repository of a submodule, or why it is not fetched. `parent` is the address of the repository that names it. */
export function submoduleRepository(
  declared: Declarations,
  path: string,
  parent: string,
  hosts: GitHosts,
): Repository | string {
  const urls = new Set(declared.get(path));
  const [url] = urls;
  if (url === undefined) return '.gitmodules gives no address for it';
  if (urls.size > 1) return '.gitmodules gives several addresses for it';
  const address = absolute(url, parent);
  if (address === undefined) return `its address ${head(oneLine(url), 120)} is not one of a git server`;
  const found = readRepository(address, hosts);
  return found instanceof RepositoryError ? found.message : found;
}

/** A relative address is resolved against the repository; those for SSH and git are read as what they serve by https. */
function absolute(url: string, parent: string): string | undefined {
  if (/^\.{1,2}\//.test(url)) return inside(url, parent);
  if (/^https?:\/\//i.test(url)) return url;
  const [, host, path = ''] =
    /^(?:ssh:\/\/)?git@([A-Za-z0-9.-]{1,253})[:/]([^:]{1,300})$/.exec(url) ??
    /^git:\/\/([A-Za-z0-9.-]{1,253})\/([^:]{1,300})$/.exec(url) ??
    [];
  return host === undefined || isAbsolute(path) ? undefined : `https://${host}/${path}`;
}

function inside(url: string, parent: string): string | undefined {
  const base = `${parent.replace(/\/+$/, '')}/`;
  return URL.canParse(url, base) ? new URL(url, base).href : undefined;
}
