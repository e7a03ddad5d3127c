// Names uploads for builds: the registry's own address of an upload, which has any form, sealed with its repository.
import { createHmac, timingSafeEqual } from 'node:crypto';

function seal(repository: string, target: string, secret: string): Buffer {
  return createHmac('sha256', secret).update(`moorage upload 1\n${repository}\n${target}`).digest().subarray(0, 16);
}

/** The name of an upload. `target` is its path and query at the registry. */
export function uploadName(repository: string, target: string, secret: string): string {
  return `${Buffer.from(target).toString('base64url')}.${seal(repository, target, secret).toString('base64url')}`;
}

/** Path and query of an upload at the registry; undefined when the name was not given out for this repository. */
export function uploadTarget(repository: string, name: string, secret: string): string | undefined {
  const [encoded = '', mac = ''] = name.split('.');
  const target = Buffer.from(encoded, 'base64url').toString();
  const [given, right] = [Buffer.from(mac, 'base64url'), seal(repository, target, secret)];
  return given.length === right.length && timingSafeEqual(given, right) ? target : undefined;
}
