// Keys of receipts: Ed25519, published as a JSON Web Key Set, each named by its thumbprint (RFC 7638).
import { createPublicKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { digestOf } from './canonical.ts';

const publicKey = z.looseObject({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: z.string().describe('The public key, in base64url.'),
  kid: z.string().describe('Its RFC 7638 thumbprint, by which signatures name it.'),
  alg: z.literal('EdDSA'),
  use: z.literal('sig'),
});
export type PublicKey = z.output<typeof publicKey>;

export const keySet = z.object({ keys: z.array(publicKey) });
export type KeySet = z.output<typeof keySet>;

/** The public half of a key, as it is published. @throws TypeError for a key that is not Ed25519 */
export function publicKeyOf(key: KeyObject): PublicKey {
  const { x } = (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'jwk' });
  if (key.asymmetricKeyType !== 'ed25519' || x === undefined) throw new TypeError('the key is not an Ed25519 key');
  return { kty: 'OKP', crv: 'Ed25519', x, kid: thumbprint(x), alg: 'EdDSA', use: 'sig' };
}

/** RFC 7638 hashes the required members in the order of their names, which is the canonical form. */
function thumbprint(x: string): string {
  return Buffer.from(digestOf({ crv: 'Ed25519', kty: 'OKP', x }), 'hex').toString('base64url');
}

/** The key of this name; undefined where there is none, or one that only says so. */
export function keyNamed(keys: KeySet, kid: string): PublicKey | undefined {
  return keys.keys.find((key) => key.kid === kid && thumbprint(key.x) === kid);
}
