// Signatures of documents: a detached JSON Web Signature (RFC 7515, appendix F) over the canonical form of the rest.
import type { KeyObject } from 'node:crypto';
import { FlattenedSign, flattenedVerify } from 'jose';
import { z } from 'zod';
import { canonical } from './canonical.ts';
import { type KeySet, keyNamed, publicKeyOf } from './keys.ts';

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
  const { kid } = publicKeyOf(key);
  const signed = await new FlattenedSign(Buffer.from(canonical(document)))
    .setProtectedHeader({ alg: 'EdDSA', kid })
    .sign(key);
  return { ...document, signature: { protected: signed.protected ?? '', signature: signed.signature } };
}

/** A document as its schema has it, or what is wrong with it or its signature. */
export type SignedReading<T> = { readonly value: T; readonly fault?: never } | { readonly fault: string };

/** Reads a document that has to be signed by one of these keys. */
export async function readSigned<T>(schema: z.ZodType<T>, document: unknown, keys: KeySet): Promise<SignedReading<T>> {
  const read = schema.safeParse(document);
  const fault = (await signatureFault(document, keys)) ?? (read.success ? undefined : shapeFault(read.error));
  if (fault !== undefined || !read.success) return { fault: fault ?? 'it is not readable' };
  return { value: read.data };
}

export function shapeFault(error: z.ZodError): string {
  const [issue] = error.issues;
  return `it is not as it should be: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`;
}

/** What is wrong with the signature of a document; undefined where it is right. */
export async function signatureFault(document: unknown, keys: KeySet): Promise<string | undefined> {
  const read = z.looseObject({ signature }).safeParse(document);
  if (!read.success) return 'it has no signature';
  const { signature: given, ...rest } = read.data;
  if (!isBase64url(given.protected) || !isBase64url(given.signature)) return 'its signature is not base64url';
  const named = headerOf(given.protected);
  if (named === undefined) return 'its signature has another header than alg EdDSA and kid';
  const key = keyNamed(keys, named.kid);
  if (key === undefined) return `it is signed by the key ${named.kid}, which is not among the known ones`;
  try {
    await flattenedVerify({ ...given, payload: Buffer.from(canonical(rest)).toString('base64url') }, key, {
      algorithms: ['EdDSA'],
    });
    return undefined;
  } catch {
    return 'its signature is not of this content: something in it was changed';
  }
}

/** Only the one text that stands for the bytes: decoders pass over bits that the last character has too many. */
function isBase64url(text: string): boolean {
  return Buffer.from(text, 'base64url').toString('base64url') === text;
}

function headerOf(text: string): z.output<typeof header> | undefined {
  try {
    return header.parse(JSON.parse(Buffer.from(text, 'base64url').toString('utf8')));
  } catch {
    return undefined;
  }
}
