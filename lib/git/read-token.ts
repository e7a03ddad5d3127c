// Tokens that let a build read one repository of the git server inside the cluster, and no other. The git server checks
// them with the secret that they were made with. Its image has no packages, and of this project only `gitServerFiles`.
import { createHmac } from 'node:crypto';
import { isSameSecret } from '../sealed-text.ts';

const form = /^1\.(\d{1,12})\.[A-Za-z0-9_-]{43}$/;

/** Path of a repository on its server, like `owner/name`. */
export function toRepositoryPath(url: string): string {
  return new URL(url).pathname.replace(/^\/+|\/+$/g, '').replace(/\.git$/, '');
}

/** Makes the token for `owner/name`, good until `expires`, from a secret of at least 32 characters. */
export function createReadToken(path: string, secret: string, expires: Date): string {
  return signRead(path, secret, Math.floor(expires.getTime() / 1000));
}

function signRead(path: string, secret: string, seconds: number): string {
  const mac = createHmac('sha256', secret).update(`moorage git read token 1\n${path}\n${seconds}`).digest('base64url');
  return `1.${seconds}.${mac}`;
}

/** Whether a token opens `owner/name` at this time. In constant time. */
export function canRead(token: string, path: string, secret: string, now: Date): boolean {
  const seconds = Number(form.exec(token)?.[1] ?? 0);
  if (seconds * 1000 <= now.getTime()) return false;
  return isSameSecret(token, signRead(path, secret, seconds));
}
