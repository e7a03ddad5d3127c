// The sign-in of authors in a browser: a cookie that holds the author key, or the account of a forge, sealed by this installation for an hour. Nothing is
// stored, so every replica reads it, and removing the key's line from the repository ends it.
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import { type SignInAttempt, signInAttempt } from '../apps/index.ts';
import type { Language } from './language.ts';
import { derivePurposeKey, isSameSecret, openText, sealText } from '../../lib/sealed-text.ts';

/** A signed-in author. */
export interface Session {
  /** The author key, a token, or a sealed account. */
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
  /** The Set-Cookie header that keeps a sign-in at a forge while it is in progress. */
  beginAttempt(attempt: SignInAttempt, language: Language | undefined): string;
  /** Reads it; undefined if this browser has begun none, or it has expired. */
  readAttempt(
    headers: Headers,
  ): { readonly attempt: SignInAttempt; readonly language?: Language | undefined } | undefined;
  /** The Set-Cookie header that removes it. */
  endAttempt(): string;
}

/** A browser accepts a cookie with this prefix only over HTTPS, and sends it to this host alone, not to subdomains. */
const cookieName = '__Host-moorage-author';
const attributes = 'Path=/; Secure; HttpOnly; SameSite=Strict';
const lifetimeSeconds = 3_600;
/** Lax: the way back from a forge begins at another site. The cookie opens nothing by itself. */
const [attemptCookie, attemptAttributes] = ['__Host-moorage-sign-in', 'Path=/; Secure; HttpOnly; SameSite=Lax'];
const attemptSeconds = 600;
const sealedAttempt = z.strictObject({
  attempt: signInAttempt,
  language: z.enum(['en', 'zh']).optional(),
  expires: z.int(),
});
const sealedSession = z.strictObject({ key: z.string(), expires: z.int() });

/** @param secret of the installation; keys for this purpose alone are derived from it */
export function createSessions(secret: string, now: () => number = Date.now): Sessions {
  const derive = (use: string): Buffer => derivePurposeKey(secret, `moorage author session ${use}`);
  const [sealKey, csrfKey, attemptKey] = [derive('seal'), derive('csrf'), derive('attempt')];

  return {
    read(headers) {
      const value = readCookie(headers.get('cookie'), cookieName);
      const text = value === undefined ? undefined : openText(value, { key: sealKey });
      if (value === undefined || text === undefined) return undefined;
      const { key, expires } = sealedSession.parse(JSON.parse(text));
      if (expires <= now()) return undefined;
      return { key, csrf: createHmac('sha256', csrfKey).update(value).digest('base64url') };
    },
    isGenuine: ({ csrf }, token = '') => isSameSecret(token, csrf),
    begin(key) {
      const session = JSON.stringify({ key, expires: now() + lifetimeSeconds * 1000 });
      const value = sealText(session, { key: sealKey });
      return `${cookieName}=${value}; Max-Age=${lifetimeSeconds}; ${attributes}`;
    },
    end: () => `${cookieName}=; Max-Age=0; ${attributes}`,
    beginAttempt(attempt, language) {
      const expires = now() + attemptSeconds * 1000;
      const value = sealText(JSON.stringify({ attempt, language, expires }), { key: attemptKey });
      return `${attemptCookie}=${value}; Max-Age=${attemptSeconds}; ${attemptAttributes}`;
    },
    readAttempt(headers) {
      const value = readCookie(headers.get('cookie'), attemptCookie);
      const text = value === undefined ? undefined : openText(value, { key: attemptKey });
      if (text === undefined) return undefined;
      const { expires, ...attempt } = sealedAttempt.parse(JSON.parse(text));
      return expires > now() ? attempt : undefined;
    },
    endAttempt: () => `${attemptCookie}=; Max-Age=0; ${attemptAttributes}`,
  };
}

function readCookie(header: string | null, name: string): string | undefined {
  const found = (header ?? '').split(';').find((part) => part.trim().startsWith(`${name}=`));
  return found?.trim().slice(name.length + 1);
}
