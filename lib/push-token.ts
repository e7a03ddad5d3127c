// The tokens that open the repositories of one app in the registry: to its builds for pushing, to the operator for
// removing what is no longer kept. Neither can do the work of the other.
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The app that a token is for. A new UID, as of an app removed and made again, gives a new token. */
export interface PushIdentity {
  readonly name: string;
  readonly uid: string;
}

/** What a token opens the repositories for. */
export type TokenPurpose = 'push' | 'prune';

const form =
  /^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([A-Za-z0-9_-]{43})$/;

function tokenFor(purpose: TokenPurpose, { name, uid }: PushIdentity, secret: string): string {
  const mac = createHmac('sha256', secret).update(`moorage ${purpose} token 1\n${name}\n${uid}`).digest('base64url');
  return `${name}.${uid}.${mac}`;
}

/** The token of an app's builds, made of its identity and a secret of at least 32 characters, so that it is stored nowhere. */
export function pushToken(app: PushIdentity, secret: string): string {
  return tokenFor('push', app, secret);
}

/** The token by which the operator removes images and caches of an app; made in the same way, and given to no pod. */
export function pruneToken(app: PushIdentity, secret: string): string {
  return tokenFor('prune', app, secret);
}

/** The app and the purpose that a token was made for; undefined when the secret did not make it. In constant time. */
export function pushIdentityOf(
  token: string,
  secret: string,
): (PushIdentity & { readonly purpose: TokenPurpose }) | undefined {
  const [, name, uid] = form.exec(token) ?? [];
  if (name === undefined || uid === undefined) return undefined;
  const given = Buffer.from(token);
  const purposes = (['push', 'prune'] as const).filter((purpose) => {
    const right = Buffer.from(tokenFor(purpose, { name, uid }, secret));
    return given.length === right.length && timingSafeEqual(given, right);
  });
  return purposes[0] === undefined ? undefined : { name, uid, purpose: purposes[0] };
}
