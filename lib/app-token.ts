// The token by which a hosted app calls /v1: made of the app's identity and a secret of the platform, so that it is
// stored nowhere but with the app.
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The app that a token is for. A new UID, as of an app removed and made again, gives a new token. */
export interface AppIdentity {
  readonly name: string;
  readonly uid: string;
}

const form = /^moorage-([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\.([A-Za-z0-9_-]{43})$/;

/** The token of an app. `secret` has at least 32 characters; a new one makes all tokens anew. */
export function appToken(app: AppIdentity, secret: string): string {
  return `moorage-${app.name}.${createHmac('sha256', secret).update(`moorage app token 1\n${app.name}\n${app.uid}`).digest('base64url')}`;
}

/** The name of the app that a token says it is for; undefined when it is no such token. Nothing is proven by it. */
export function appNameIn(token: string): string | undefined {
  return form.exec(token)?.[1];
}

/** Whether the token is that of the app, in constant time. */
export function isTokenOf(token: string, app: AppIdentity, secret: string): boolean {
  const [given, right] = [Buffer.from(token), Buffer.from(appToken(app, secret))];
  return given.length === right.length && timingSafeEqual(given, right);
}
