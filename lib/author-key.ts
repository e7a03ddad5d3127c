// The key with which an author reads his statements: he keeps it, and commits a hash of it to his repository.
import { createHash, randomBytes } from 'node:crypto';

const prefix = 'moorage-author-';
const keyForm = /^moorage-author-[A-Za-z0-9_-]{43}$/;
const lineForm = /^moorage-author-sha256-([0-9a-f]{64})$/;

/** Hashes that are read in a file. */
export const maximumAuthorKeys = 5;

/** A new key, 256 bits of chance. */
export function newAuthorKey(): string {
  return `${prefix}${randomBytes(32).toString('base64url')}`;
}

export function isAuthorKey(text: string): boolean {
  return keyForm.test(text);
}

/**
 * What the line of a key in a repository holds: SHA-256 of the repository and the key, 64 hexadecimal digits. A fork or a
 * repository made from a template has the file too, and there the line stands for nothing.
 *
 * @param repository host, owner and name, like github.com/octo/hello; case does not matter
 */
export function hashOfKey(key: string, repository: string): string {
  return createHash('sha256').update(`moorage author line\n${repository.toLowerCase()}\n${key}`).digest('hex');
}

/** What lines held before they named their repository. They open nothing any more, and their authors are shown the new line. */
export function unboundHashOfKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** The line of the ownership file of a repository that stands for a key. Who reads it cannot make the key of it. */
export function lineOfKey(key: string, repository: string): string {
  return `${prefix}sha256-${hashOfKey(key, repository)}`;
}

/** Hashes in the text of the ownership file, the first ones. */
export function keyHashesIn(text: string): string[] {
  const hashes = text.split(/\s+/).flatMap((word) => lineForm.exec(word)?.[1] ?? []);
  return [...new Set(hashes)].slice(0, maximumAuthorKeys);
}
