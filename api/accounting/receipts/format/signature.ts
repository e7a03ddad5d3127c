// Signs documents with Ed25519: a detached JSON Web Signature (RFC 7515, appendix F), with keys published as a JSON Web Key Set.
import { createPublicKey, type KeyObject } from 'node:crypto';
import { FlattenedSign, flattenedVerify } from 'jose';
import { z } from 'zod';
import { computeDigest, toCanonicalJson } from './hashes.ts';

export const signature = z.strictObject({
  protected: z.string().describe('The protected header, in base64url: alg EdDSA and the kid of the key.'),
  signature: z.string().describe('The signature, in base64url.'),
});

/** A document with a signature over all its other members. */
export type Signed<Document> = Document & { readonly signature: z.output<typeof signature> };

const header = z.strictObject({ alg: z.literal('EdDSA'), kid: z.string() });

export async function signDocument<Document extends object>(
  document: Document,
  key: KeyObject,
): Promise<Signed<Document>> {
  const { kid } = toPublicKey(key);
  const signed = await new FlattenedSign(Buffer.from(toCanonicalJson(document)))
    .setProtectedHeader({ alg: 'EdDSA', kid })
    .sign(key);
  return { ...document, signature: { protected: signed.protected ?? '', signature: signed.signature } };
}

/** A document as its schema has it, or what is wrong with it or its signature. */
export type SignedReading<T> = { readonly value: T; readonly fault?: never } | { readonly fault: string };

/** Reads a document that has to be signed by one of these keys. */
export async function readSigned<T>(schema: z.ZodType<T>, document: unknown, keys: KeySet): Promise<SignedReading<T>> {
  const parsed = schema.safeParse(document);
  const fault =
    (await findSignatureFault(document, keys)) ?? (parsed.success ? undefined : describeShapeFault(parsed.error));
  if (fault !== undefined || !parsed.success) return { fault: fault ?? 'it is not readable' };
  return { value: parsed.data };
}

export function describeShapeFault(error: z.ZodError): string {
  const [issue] = error.issues;
  return `it is not as it should be: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`;
}

/** What is wrong with the signature of a document; undefined where it is right. */
export async function findSignatureFault(document: unknown, keys: KeySet): Promise<string | undefined> {
  const parsed = z.looseObject({ signature }).safeParse(document);
  if (!parsed.success) return 'it has no signature';
  const { signature: signatureMember, ...rest } = parsed.data;
  if (!isBase64url(signatureMember.protected) || !isBase64url(signatureMember.signature))
    return 'its signature is not base64url';
  const parsedHeader = parseHeader(signatureMember.protected);
  if (parsedHeader === undefined) return 'its signature has another header than alg EdDSA and kid';
  const key = findKey(keys, parsedHeader.kid);
  if (key === undefined) return `it is signed by the key ${parsedHeader.kid}, which is not among the known ones`;
  try {
    await flattenedVerify(
      { ...signatureMember, payload: Buffer.from(toCanonicalJson(rest)).toString('base64url') },
      key,
      {
        algorithms: ['EdDSA'],
      },
    );
    return undefined;
  } catch {
    return 'its signature is not of this content: something in it was changed';
  }
}

/** Only the one text that stands for the bytes: decoders pass over bits that the last character has too many. */
function isBase64url(text: string): boolean {
  return Buffer.from(text, 'base64url').toString('base64url') === text;
}

function parseHeader(text: string): z.output<typeof header> | undefined {
  try {
    return header.parse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8')));
  } catch {
    return undefined;
  }
}

const publicKey = z.looseObject({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: z.string().describe('The public key, in base64url.'),
  kid: z.string().describe('Its RFC 7638 thumbprint, which signatures use as its name.'),
  alg: z.literal('EdDSA'),
  use: z.literal('sig'),
});
export type PublicKey = z.output<typeof publicKey>;

export const keySet = z.object({ keys: z.array(publicKey) });
export type KeySet = z.output<typeof keySet>;

/** The public half of a key, as it is published. @throws TypeError for a key that is not Ed25519 */
export function toPublicKey(key: KeyObject): PublicKey {
  const { x } = (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'jwk' });
  if (key.asymmetricKeyType !== 'ed25519' || x === undefined) throw new TypeError('the key is not an Ed25519 key');
  return { kty: 'OKP', crv: 'Ed25519', x, kid: computeThumbprint(x), alg: 'EdDSA', use: 'sig' };
}

/** RFC 7638 hashes the required members in the order of their names, which is the canonical form. */
function computeThumbprint(x: string): string {
  return Buffer.from(computeDigest({ crv: 'Ed25519', kty: 'OKP', x }), 'hex').toString('base64url');
}

/** The key of this name; undefined where there is none, or one that only says so. */
export function findKey(keys: KeySet, kid: string): PublicKey | undefined {
  return keys.keys.find((key) => key.kid === kid && computeThumbprint(key.x) === kid);
}
