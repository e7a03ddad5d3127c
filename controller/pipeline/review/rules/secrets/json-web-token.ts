// Separates JSON Web Tokens that open nothing from those that may.
import { createHmac } from 'node:crypto';
import { field, parseJson } from '../../../manifest.ts';

const token = /(eyJ[\w-]{5,4000})\.(eyJ[\w-]{5,8000})\.([\w-]{0,2000})/g;

/** Secrets that manuals sign their samples with. */
const knownSecrets = [
  'secret',
  'your-256-bit-secret',
  'your-384-bit-secret',
  'your-512-bit-secret',
  'a-string-secret-at-least-256-bits-long',
  'super-secret-jwt-token-with-at-least-32-characters-long',
  'your-super-secret-jwt-token-with-at-least-32-characters-long',
  'changeme',
  'password',
  'test',
];
const hashes: Readonly<Record<string, string>> = { HS256: 'sha256', HS384: 'sha384', HS512: 'sha512' };

/**
 * Is every token in the text one that may be public: made for browsers (the anonymous role of Supabase), known to
 * everybody (the keys of a local Supabase, the sample of jwt.io, a signature by a known secret), or past its time?
 * False when there is none.
 * @param now seconds since 1970
 */
export function onlyPublicTokens(text: string, now: number): boolean {
  const found = [...text.matchAll(token)];
  return found.length > 0 && found.every((match) => isPublic(match, now));
}

function isPublic([, header = '', payload = '', signature = '']: RegExpMatchArray, now: number): boolean {
  const claims = read(payload);
  const expires = field(claims, 'exp');
  return (
    field(claims, 'role') === 'anon' ||
    field(claims, 'iss') === 'supabase-demo' ||
    (field(claims, 'sub') === '1234567890' && field(claims, 'name') === 'John Doe') ||
    (typeof expires === 'number' && expires < now) ||
    isSignedByKnown(header, payload, signature)
  );
}

function read(part: string): unknown {
  return parseJson(Buffer.from(part, 'base64url').toString('utf8'));
}

function isSignedByKnown(header: string, payload: string, signature: string): boolean {
  const algorithm = field(read(header), 'alg');
  if (algorithm === 'none') return true;
  const hash = typeof algorithm === 'string' ? hashes[algorithm] : undefined;
  if (hash === undefined) return false;
  return knownSecrets.some(
    (secret) => createHmac(hash, secret).update(`${header}.${payload}`).digest('base64url') === signature,
  );
}
