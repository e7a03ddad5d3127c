// The chain of a day: each link hashes the one before it, so that none can be changed, left out or moved unseen.
import { createHash } from 'node:crypto';

/** What the chain of a day begins with. `day`: like 2026-11-23. */
export function chainStart(day: string): Buffer {
  return createHash('sha256').update(day).digest();
}

export function chainNext(previous: Uint8Array, leafHash: Uint8Array): Buffer {
  return createHash('sha256').update(previous).update(leafHash).digest();
}

/** Days are chained too: each names the digest of the one before. */
export function dayAfter(day: string): string {
  return new Date(Date.parse(day) + 86_400_000).toISOString().slice(0, 10);
}
