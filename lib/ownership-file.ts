// Reads and writes the lines of `.moorage-owner`, the file that shows who the author of a repository is: ownership tokens,
// which hold their contact, and hashes of the keys with which they read their statements.
import { createHash, randomBytes } from 'node:crypto';
import { derivePurposeKey, openText, type Seal, sealText } from './sealed-text.ts';

/** At the top level of the repository; one token or key per line, so that several installations can have theirs. */
export const ownershipFile = '.moorage-owner';

/** Bytes of the file that are read. */
export const maximumOwnershipBytes = 4096;

// Ownership tokens. An author asks for one with their contact and commits it. It holds the contact sealed for that
// repository, so that nothing is stored, and so that it is worth nothing anywhere else.

const tokenPrefix = 'moorage-owner-';
const tokenForm = /^moorage-owner-[A-Za-z0-9_-]{40,900}$/;
const maximumTokens = 3;

/** The first tokens of the file, judged by their form alone. */
export function findOwnershipTokens(text: string): string[] {
  return text
    .split(/\s+/)
    .filter((word) => tokenForm.test(word))
    .slice(0, maximumTokens);
}

/**
 * Seals a contact for a repository (its normal URL). Each call gives another token, so that a guessed contact cannot be
 * confirmed by comparing tokens.
 */
export function sealContact(contact: string, repository: string, secret: string): string {
  return `${tokenPrefix}${sealText(contact, createSeal(repository, secret))}`;
}

/** The contact in a token; undefined if it was not sealed by this secret for this repository. */
export function openContact(token: string, repository: string, secret: string): string | undefined {
  if (!tokenForm.test(token)) return undefined;
  return openText(token.slice(tokenPrefix.length), createSeal(repository, secret));
}

/**
 * The same secret makes the tokens of apps. Two spellings that differ in case, as two apps of one repository may have them, are the
 * same repository.
 */
function createSeal(repository: string, secret: string): Seal {
  return { key: derivePurposeKey(secret, 'moorage ownership token 1'), context: repository.toLowerCase() };
}

// Author keys. The author keeps the key and commits a hash of it; a reader of the line cannot derive the key.

const keyPrefix = 'mak-';
/** Keys of earlier versions have the longer prefix, and stay valid. */
const keyForm = /^(?:mak|moorage-author)-[A-Za-z0-9_-]{43}$/;
const linePrefix = 'moorage-author-sha256-';
const keyLineForm = /^moorage-author-sha256-([0-9a-f]{64})$/;

/** Hashes that are read from a file. */
export const maximumAuthorKeys = 5;

/** A new key of 256 random bits. */
export function createAuthorKey(): string {
  return `${keyPrefix}${randomBytes(32).toString('base64url')}`;
}

export function isAuthorKey(text: string): boolean {
  return keyForm.test(text);
}

/**
 * SHA-256 of the repository and the key, as 64 hexadecimal digits. The hash names the repository because a fork, or a
 * repository made from a template, has the file too; there the line has no effect.
 *
 * @param repository host, owner and name, like github.com/octo/hello; case does not matter
 */
export function hashAuthorKey(key: string, repository: string): string {
  return createHash('sha256').update(`moorage author line\n${repository.toLowerCase()}\n${key}`).digest('hex');
}

/** The hash in lines from before they named their repository. It opens nothing; authors with one are shown the new line. */
export function hashUnboundAuthorKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** The line that stands for a key in the ownership file of a repository. */
export function formatAuthorKeyLine(key: string, repository: string): string {
  return `${linePrefix}${hashAuthorKey(key, repository)}`;
}

/** The first key hashes in the text of the ownership file. */
export function findAuthorKeyHashes(text: string): string[] {
  const hashes = text.split(/\s+/).flatMap((word) => keyLineForm.exec(word)?.[1] ?? []);
  return [...new Set(hashes)].slice(0, maximumAuthorKeys);
}

// Author tokens. The owner of an app makes them with their key, for programs and for people who only read.

const authorTokenPrefix = 'mat-';
const authorTokenForm = /^mat-[A-Za-z0-9_-]{43}$/;

/** A new token of 256 random bits. */
export function createAuthorToken(): string {
  return `${authorTokenPrefix}${randomBytes(32).toString('base64url')}`;
}

export function isAuthorToken(text: string): boolean {
  return authorTokenForm.test(text);
}

/** SHA-256 of a token, as 64 hexadecimal digits. The token is random, so that nothing is gained by a slower hash. */
export function hashAuthorToken(token: string): string {
  return createHash('sha256').update(`moorage app token\n${token}`).digest('hex');
}
