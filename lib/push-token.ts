// The token by which the builds of one app push: it opens that app's repositories in the registry, and nothing else.
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The app that a token is for. A new UID, as of an app removed and made again, gives a new token. */
export interface PushIdentity {
  readonly name: string;
  readonly uid: string;
}

const form =
  /^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([A-Za-z0-9_-]{43})$/;

/** The token of an app, made of its identity and a secret of at least 32 characters, so that it is stored nowhere. */
export function pushToken({ name, uid }: PushIdentity, secret: string): string {
  const mac = createHmac('sha256', secret).update(`moorage push token 1\n${name}\n${uid}`).digest('base64url');
  return `${name}.${uid}.${mac}`;
}

/** The app that a token was made for; undefined when the secret did not make it. In constant time. */
export function pushIdentityOf(token: string, secret: string): PushIdentity | undefined {
  const [, name, uid] = form.exec(token) ?? [];
  if (name === undefined || uid === undefined) return undefined;
  const [given, right] = [Buffer.from(token), Buffer.from(pushToken({ name, uid }, secret))];
  return given.length === right.length && timingSafeEqual(given, right) ? { name, uid } : undefined;
}
