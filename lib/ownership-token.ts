// The token by which an author proves that a repository is his: he asks for it with his contact, and commits it. It holds
// the contact sealed for that repository, so that nothing is stored, and so that it is worth nothing anywhere else.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** At the top level of the repository; a token a line, so that several installations can have theirs. */
export const ownershipFile = '.moorage-owner';

const prefix = 'moorage-owner-';
const form = /^moorage-owner-[A-Za-z0-9_-]{40,900}$/;
const algorithm = 'aes-256-gcm';
const [nonceBytes, tagBytes] = [12, 16];

/** Tokens that are looked at in a file, and bytes of it. */
const maximumTokens = 3;
export const maximumOwnershipBytes = 4096;

/** The first tokens of the file, by form alone. */
export function tokensIn(text: string): string[] {
  return text
    .split(/\s+/)
    .filter((word) => form.test(word))
    .slice(0, maximumTokens);
}

/**
 * Seals a contact for a repository (its normal URL). Each call gives another token, so that nobody who guesses a contact
 * can compare.
 */
export function sealContact(contact: string, repository: string, secret: string): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, keyOf(secret), nonce).setAAD(boundTo(repository));
  const sealed = Buffer.concat([cipher.update(contact, 'utf8'), cipher.final()]);
  return `${prefix}${Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')}`;
}

/** The contact in a token; undefined when it was not sealed by this secret for this repository. */
export function openContact(token: string, repository: string, secret: string): string | undefined {
  if (!form.test(token)) return undefined;
  const bytes = Buffer.from(token.slice(prefix.length), 'base64url');
  const [nonce, tag, sealed] = [
    bytes.subarray(0, nonceBytes),
    bytes.subarray(nonceBytes, nonceBytes + tagBytes),
    bytes.subarray(nonceBytes + tagBytes),
  ];
  try {
    const decipher = createDecipheriv(algorithm, keyOf(secret), nonce, { authTagLength: tagBytes });
    decipher.setAAD(boundTo(repository)).setAuthTag(tag);
    return Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

/** Of two spellings, as of two apps of one repository, neither is another one. */
function boundTo(repository: string): Buffer {
  return Buffer.from(repository.toLowerCase());
}

/** A key for this alone: the secret makes the tokens of apps as well. */
function keyOf(secret: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', 'moorage ownership token 1', 32));
}
