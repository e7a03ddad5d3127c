// Seals texts that leave the platform and come back, such as ownership tokens and the sessions of authors, and compares secrets.
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';

const algorithm = 'aes-256-gcm';
const [nonceBytes, tagBytes] = [12, 16];

/** A key for one purpose alone, so that what is sealed for one is worth nothing for another. */
export function derivePurposeKey(secret: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', purpose, 32));
}

/** What a text is sealed with. */
export interface Seal {
  /** 32 bytes. */
  readonly key: Buffer;
  /** What the text belongs to; it opens only with the same. */
  readonly context?: string;
}

/** Encrypts and authenticates a text, as base64url. Each call gives another result. */
export function sealText(text: string, { key, context = '' }: Seal): string {
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv(algorithm, key, nonce).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
}

/** The text that was sealed; undefined if it was not sealed with this key for this context. */
export function openText(sealedText: string, { key, context = '' }: Seal): string | undefined {
  const bytes = Buffer.from(sealedText, 'base64url');
  const [nonce, tag, sealed] = [
    bytes.subarray(0, nonceBytes),
    bytes.subarray(nonceBytes, nonceBytes + tagBytes),
    bytes.subarray(nonceBytes + tagBytes),
  ];
  try {
    const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes });
    decipher.setAAD(Buffer.from(context)).setAuthTag(tag);
    return Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

/** Whether two secrets are equal. The time that it takes says nothing about either of them, not even its length. */
export function isSameSecret(given: string | Buffer, expected: string | Buffer): boolean {
  const [one, other] = [given, expected].map((secret) => createHash('sha256').update(secret).digest());
  return one !== undefined && other !== undefined && timingSafeEqual(one, other);
}
