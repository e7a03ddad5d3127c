// The sign-in of authors in a browser: a cookie that holds the author key, sealed by this installation for an hour. Nothing is
// stored, so every replica reads it, and removing the key's line from the repository ends it.
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';

/** A signed-in author. */
export interface Session {
  /** The author key. */
  readonly key: string;
  /** Every form carries it, so that a page of another site, or a hosted app, cannot send one. */
  readonly csrf: string;
}

export interface Sessions {
  /** Reads the session of a request; undefined if there is none, or it has expired. */
  read(headers: Headers): Session | undefined;
  /** Whether a form carries the token of its session. */
  isGenuine(session: Session, token: string | undefined): boolean;
  /** The Set-Cookie header that begins a session. */
  begin(key: string): string;
  /** The Set-Cookie header that ends it. */
  end(): string;
}

/** A browser accepts a cookie with this prefix only over HTTPS, and sends it to this host alone, not to subdomains. */
const cookieName = '__Host-moorage-author';
const attributes = 'Path=/; Secure; HttpOnly; SameSite=Strict';
const lifetimeSeconds = 3_600;
const [nonceBytes, tagBytes] = [12, 16];
const sealedSession = z.strictObject({ key: z.string(), expires: z.int() });

/** @param secret of the installation; keys for this purpose alone are derived from it */
export function createSessions(secret: string, now: () => number = Date.now): Sessions {
  const derive = (purpose: string): Buffer =>
    Buffer.from(hkdfSync('sha256', secret, '', `moorage author session ${purpose}`, 32));
  const [sealKey, csrfKey] = [derive('seal'), derive('csrf')];

  function seal(text: string): string {
    const nonce = randomBytes(nonceBytes);
    const cipher = createCipheriv('aes-256-gcm', sealKey, nonce);
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
  }

  function open(value: string): string | undefined {
    const bytes = Buffer.from(value, 'base64url');
    if (bytes.length <= nonceBytes + tagBytes) return undefined;
    try {
      const decipher = createDecipheriv('aes-256-gcm', sealKey, bytes.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      });
      decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes));
      return Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()]).toString('utf8');
    } catch {
      return undefined;
    }
  }

  return {
    read(headers) {
      const value = readCookie(headers.get('cookie'), cookieName);
      const text = value === undefined ? undefined : open(value);
      if (value === undefined || text === undefined) return undefined;
      const { key, expires } = sealedSession.parse(JSON.parse(text));
      if (expires <= now()) return undefined;
      return { key, csrf: createHmac('sha256', csrfKey).update(value).digest('base64url') };
    },
    isGenuine({ csrf }, token = '') {
      const [expected, given] = [Buffer.from(csrf), Buffer.from(token)];
      return expected.length === given.length && timingSafeEqual(expected, given);
    },
    begin(key) {
      const value = seal(JSON.stringify({ key, expires: now() + lifetimeSeconds * 1000 }));
      return `${cookieName}=${value}; Max-Age=${lifetimeSeconds}; ${attributes}`;
    },
    end: () => `${cookieName}=; Max-Age=0; ${attributes}`,
  };
}

function readCookie(header: string | null, name: string): string | undefined {
  const found = (header ?? '').split(';').find((part) => part.trim().startsWith(`${name}=`));
  return found?.trim().slice(name.length + 1);
}
