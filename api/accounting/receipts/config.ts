// Configuration of receipts, read from the environment: the key that signs them, and those that once did.
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { readConfig } from '../../../lib/config.ts';
import { defineSetting, kinds } from '../../../lib/settings.ts';
import { type KeySet, toPublicKey } from './format/signature.ts';

export interface ReceiptSettings {
  /** The signing key; without it, nothing is signed. */
  readonly key: KeyObject | undefined;
  /** Public keys: that of the key, then the earlier ones. */
  readonly keys: KeySet;
}

/** PEM in an environment variable may have lost its line breaks to `\n`. */
const pem = z.string().transform((text) => text.replaceAll('\\n', '\n').trim());

const privateKey = pem.transform((text, context) =>
  readKey(
    text,
    createPrivateKey,
    context,
    'must be a PKCS#8 private key of Ed25519 in PEM: openssl genpkey -algorithm ed25519',
  ),
);
const publicKeys = pem.transform((text, context) =>
  (text.match(/-----BEGIN PUBLIC KEY-----[^-]+-----END PUBLIC KEY-----/g) ?? [text]).map((one) =>
    readKey(
      one,
      createPublicKey,
      context,
      'must be public keys of Ed25519 in PEM, one below the other: openssl pkey -pubout',
    ),
  ),
);

function readKey(
  text: string,
  read: (text: string) => KeyObject,
  context: z.RefinementCtx,
  message: string,
): KeyObject {
  try {
    const key = read(text);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // Said below.
  }
  context.addIssue({ code: 'custom', message, input: 'hidden' });
  return z.NEVER;
}

/** Every variable of receipts. */
export const environment = z.object({
  MOORAGE_RECEIPT_KEY: privateKey
    .optional()
    .describe(
      'Ed25519 private key (PKCS#8, PEM) that signs days of the ledger, charges and statements. Without it, nothing is signed.',
    ),
  MOORAGE_RECEIPT_PUBLIC_KEYS: defineSetting(
    { ...kinds.text(z.string(), publicKeys.optional()), unset: '' },
    {
      value: 'receipts.publicKeys',
      description:
        'Public keys (PEM, one below the other) of earlier keys, still published so that what they signed can be checked.',
      omitEmpty: true,
    },
  ),
});

/** Reads the settings. @throws Error that names every variable that is wrong. */
export function readReceiptSettings(variables: NodeJS.ProcessEnv = process.env): ReceiptSettings {
  const read = readConfig(environment, variables);
  const key = read.MOORAGE_RECEIPT_KEY;
  const all = [...(key === undefined ? [] : [key]), ...(read.MOORAGE_RECEIPT_PUBLIC_KEYS ?? [])].map(toPublicKey);
  const byName = new Map(all.map((one) => [one.kid, one]));
  return { key, keys: { keys: [...byName.values()] } };
}
