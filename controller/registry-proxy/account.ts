// The installation's account at its registry: read from a dockerconfigjson, sent as a password or exchanged for tokens.
import { z } from 'zod';

export interface Upstream {
  /** Base URL, without a path. */
  readonly url: string;
  /** `user:password` in base64; absent: the registry asks for none. */
  readonly credentials?: string | undefined;
}

/** The value of the header `Authorization` for requests to some repositories; absent: none. */
export type Authorize = (scopes: readonly string[]) => Promise<string | undefined>;

const tokenAnswer = z.object({
  token: z.string().optional(),
  access_token: z.string().optional(),
  expires_in: z.number().optional(),
});

/** The authentication scheme, from the registry's answer to a request without credentials. */
type Scheme = { readonly kind: 'none' } | { readonly kind: 'basic' } | TokenServer;
interface TokenServer {
  readonly kind: 'token';
  readonly realm: string;
  readonly service?: string;
}

/** A token is renewed this long before it expires. */
const spareMilliseconds = 30_000;
/** Lifetime of a token that does not state one, by the specification. */
const usualSeconds = 60;
const askMilliseconds = 30_000;

/** Discovers the authentication scheme once, and keeps tokens until shortly before they expire. */
export function createAuthorizer(upstream: Upstream, now: () => number = Date.now): Authorize {
  let scheme: Promise<Scheme> | undefined;
  const tokens = new Map<string, { readonly value: string; readonly until: number }>();
  return async (scopes) => {
    if (upstream.credentials === undefined) return undefined;
    scheme ??= discoverScheme(upstream.url).catch((error: unknown) => {
      scheme = undefined;
      throw error;
    });
    const knownScheme = await scheme;
    if (knownScheme.kind === 'none') return undefined;
    if (knownScheme.kind === 'basic') return `Basic ${upstream.credentials}`;
    const key = scopes.join(' ');
    const cached = tokens.get(key);
    if (cached !== undefined && cached.until > now()) return `Bearer ${cached.value}`;
    for (const [each, { until }] of tokens) if (until <= now()) tokens.delete(each);
    const { value, seconds } = await requestToken(knownScheme, scopes, upstream.credentials);
    tokens.set(key, { value, until: now() + seconds * 1000 - spareMilliseconds });
    return `Bearer ${value}`;
  };
}

async function discoverScheme(url: string): Promise<Scheme> {
  const answer = await fetch(`${url}/v2/`, { redirect: 'manual', signal: AbortSignal.timeout(askMilliseconds) });
  await answer.body?.cancel();
  if (answer.status < 400) return { kind: 'none' };
  const challenge = answer.headers.get('www-authenticate') ?? '';
  if (/^basic\b/i.test(challenge)) return { kind: 'basic' };
  const [realm, service] = ['realm', 'service'].map((name) => new RegExp(`\\b${name}="([^"]*)"`).exec(challenge)?.[1]);
  if (answer.status === 401 && /^bearer\b/i.test(challenge) && realm !== undefined)
    return { kind: 'token', realm, ...(service === undefined ? {} : { service }) };
  throw new Error(`the registry answered ${answer.status} to /v2/ and did not say how to authenticate`);
}

async function requestToken(
  scheme: TokenServer,
  scopes: readonly string[],
  credentials: string,
): Promise<{ value: string; seconds: number }> {
  const url = new URL(scheme.realm);
  if (scheme.service !== undefined) url.searchParams.set('service', scheme.service);
  for (const scope of scopes) url.searchParams.append('scope', scope);
  const answer = await fetch(url, {
    headers: { authorization: `Basic ${credentials}` },
    signal: AbortSignal.timeout(askMilliseconds),
  });
  if (!answer.ok) {
    await answer.body?.cancel();
    throw new Error(`the token server of the registry answered ${answer.status}`);
  }
  const { token, access_token, expires_in } = tokenAnswer.parse(await answer.json());
  const value = token ?? access_token;
  if (value === undefined) throw new Error('the token server of the registry gave no token');
  return { value, seconds: expires_in ?? usualSeconds };
}

const entry = z.object({
  auth: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
});
const dockerConfig = z.object({ auths: z.record(z.string(), entry).default({}) });

/**
 * `user:password` in base64 for a registry; undefined when the file has none for it, as for a registry that asks for
 * none.
 *
 * @throws Error when the text is no dockerconfigjson.
 */
export function findCredentials(host: string, text: string): string | undefined {
  const { auths } = dockerConfig.parse(JSON.parse(text));
  const credentials = Object.entries(auths).find(([name]) => parseHost(name) === host)?.[1];
  if (credentials === undefined) return undefined;
  if (credentials.auth !== undefined && credentials.auth !== '') return credentials.auth;
  return credentials.username === undefined
    ? undefined
    : Buffer.from(`${credentials.username}:${credentials.password ?? ''}`).toString('base64');
}

/** Docker's files name a registry by its host or by a URL. */
function parseHost(name: string): string {
  return name.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
}
