// Separates JSON Web Tokens that open nothing from those that may.
import { field, parseJson } from '../../../manifest.ts';

const token = /eyJ[\w-]{5,4000}\.(eyJ[\w-]{5,8000})\.[\w-]{0,2000}/g;

/**
 * Is every token in the text one that may be public: made for browsers (the anonymous role of Supabase), known to
 * everybody
 * (the keys of a local Supabase, the sample of jwt.io), or past its time? False when there is none.
 * @param now seconds since 1970
 */
export function onlyPublicTokens(text: string, now: number): boolean {
  const claims = [...text.matchAll(token)].map((match) =>
    parseJson(Buffer.from(match[1] ?? '', 'base64url').toString('utf8')),
  );
  return claims.length > 0 && claims.every((each) => isPublic(each, now));
}

function isPublic(claims: unknown, now: number): boolean {
  const expires = field(claims, 'exp');
  return (
    field(claims, 'role') === 'anon' ||
    field(claims, 'iss') === 'supabase-demo' ||
    (field(claims, 'sub') === '1234567890' && field(claims, 'name') === 'John Doe') ||
    (typeof expires === 'number' && expires < now)
  );
}
