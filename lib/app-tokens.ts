// Creates and checks the tokens of one app: its key for /v1, and those that open its repositories in the
// registry. Each is an HMAC over the app's identity with a secret of the platform, so that the platform stores none of them.
import { createHmac } from 'node:crypto';
import { isSameSecret } from './sealed-text.ts';

/** The app that a token is for. An app that is removed and created again has a new UID, and so new tokens. */
export interface AppIdentity {
  readonly name: string;
  readonly uid: string;
}

const appTokenForm = /^moorage-([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\.([A-Za-z0-9_-]{43})$/;

/** The token that an app sends to /v1. `secret` has at least 32 characters; a new secret replaces every token. */
export function createAppToken({ name, uid }: AppIdentity, secret: string): string {
  return `moorage-${name}.${sign(`moorage app token 1\n${name}\n${uid}`, secret)}`;
}

/** The app that a token names; undefined for a text of another form. This proves nothing: call `isAppToken` as well. */
export function parseAppName(token: string): string | undefined {
  return appTokenForm.exec(token)?.[1];
}

/** Whether the token is that of the app, in constant time. */
export function isAppToken(token: string, app: AppIdentity, secret: string): boolean {
  return isSameSecret(token, createAppToken(app, secret));
}

/** What a token opens the repositories for. A token for one purpose cannot be used for the other. */
export type TokenPurpose = 'push' | 'prune';

const registryTokenForm =
  /^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([A-Za-z0-9_-]{43})$/;

/** The token with which an app's builds push. `secret` has at least 32 characters. */
export function createPushToken(app: AppIdentity, secret: string): string {
  return createRegistryToken('push', app, secret);
}

/** The token with which the operator removes images and caches of an app that are no longer kept. No pod is given it. */
export function createPruneToken(app: AppIdentity, secret: string): string {
  return createRegistryToken('prune', app, secret);
}

/** The app and the purpose that a token was made for; undefined if this secret did not make it. In constant time. */
export function parseRegistryToken(
  token: string,
  secret: string,
): (AppIdentity & { readonly purpose: TokenPurpose }) | undefined {
  const [, name, uid] = registryTokenForm.exec(token) ?? [];
  if (name === undefined || uid === undefined) return undefined;
  // Both purposes are compared every time, so that the time taken does not say which one it is.
  const [purpose] = (['push', 'prune'] as const).filter((each) =>
    isSameSecret(token, createRegistryToken(each, { name, uid }, secret)),
  );
  return purpose === undefined ? undefined : { name, uid, purpose };
}

function createRegistryToken(purpose: TokenPurpose, { name, uid }: AppIdentity, secret: string): string {
  return `${name}.${uid}.${sign(`moorage ${purpose} token 1\n${name}\n${uid}`, secret)}`;
}

function sign(text: string, secret: string): string {
  return createHmac('sha256', secret).update(text).digest('base64url');
}
