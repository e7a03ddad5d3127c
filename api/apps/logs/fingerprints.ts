// Recognizes secret values in text without keeping them: a value is remembered as keyed hashes, and text is searched by a
// rolling hash. So what an app prints of the values that its author has set is masked, although nobody here can read them.
import { createHmac, hkdfSync } from 'node:crypto';
import { z } from 'zod';
import { listSecretForms, type SecretMask, secretReplacement } from '../../../lib/secret-mask.ts';
import { type OpenLedger, prefixStatements } from '../../billing/index.ts';

/** A value as it is remembered. Without the key, it says only how long the value is. */
export interface Fingerprint {
  /** In UTF-16 code units. */
  readonly length: number;
  /** Rolling hash of the first characters. */
  readonly prefix: number;
  /** Rolling hash of all of them. */
  readonly rolling: number;
  /** HMAC-SHA-256, in hexadecimal digits. It decides; the hashes only say where to compute it. */
  readonly hmac: string;
}

/** Shorter values are not masked: they are parts of ordinary words. */
export const minimumSecretLength = 8;

/**
 * The largest prime below 2^26, so that a product of two hashes is exact in a double. One position in 67 million is a false
 * candidate, which its HMAC rejects.
 */
const modulus = 67_108_859;

/** @returns undefined for a value that is too short */
export function createFingerprint(value: string, key: string): Fingerprint | undefined {
  if (value.length < minimumSecretLength) return undefined;
  const { base, sign } = deriveHashes(key);
  const sums = sumHashes(value, base);
  return {
    length: value.length,
    prefix: sums[minimumSecretLength] ?? 0,
    rolling: sums[value.length] ?? 0,
    hmac: sign(value),
  };
}

/** Fingerprints with the same first characters, by length. */
interface Candidates {
  readonly length: number;
  /** The base to the power of the length. */
  readonly power: number;
  /** HMACs by rolling hash. */
  readonly values: Map<number, Set<string>>;
}

/**
 * Creates a mask for the values of these fingerprints. Its time is linear in the text: each position costs one comparison,
 * and those with the first characters of a value one more for each length of such values.
 */
export function createFingerprintMask(fingerprints: readonly Fingerprint[], key: string): SecretMask {
  if (fingerprints.length === 0) return (text) => text;
  const { base, sign } = deriveHashes(key);
  const byPrefix = new Map<number, Candidates[]>();
  /** Which low bits of a prefix occur: cheaper to ask than the map. */
  const lowBits = new Uint8Array(65_536);
  for (const { length, prefix, rolling, hmac } of fingerprints) {
    const candidates = byPrefix.get(prefix) ?? [];
    byPrefix.set(prefix, candidates);
    lowBits[prefix % lowBits.length] = 1;
    let ofLength = candidates.find((one) => one.length === length);
    if (ofLength === undefined)
      candidates.push((ofLength = { length, power: computePower(base, length), values: new Map() }));
    ofLength.values.set(rolling, (ofLength.values.get(rolling) ?? new Set()).add(hmac));
  }
  for (const candidates of byPrefix.values()) candidates.sort((a, b) => b.length - a.length);
  const prefixPower = computePower(base, minimumSecretLength);

  return (text) => {
    const last = text.length - minimumSecretLength;
    if (last < 0) return text;
    const sums = sumHashes(text, base);
    const hashAt = (start: number, length: number, power: number): number => {
      const hash = (sums[start + length] ?? 0) - (((sums[start] ?? 0) * power) % modulus);
      return hash < 0 ? hash + modulus : hash;
    };
    /** Length of the longest value that starts here; 0 if none does. */
    const findValue = (start: number, maskedEnd: number): number => {
      const prefix = hashAt(start, minimumSecretLength, prefixPower);
      if (lowBits[prefix % lowBits.length] === 0) return 0;
      for (const { length, power, values } of byPrefix.get(prefix) ?? []) {
        if (start + length > text.length) continue;
        const hmacs = values.get(hashAt(start, length, power));
        if (hmacs === undefined) continue;
        // One that overlaps another is taken without proof: otherwise the repetition of a letter would take a proof for each.
        if (start < maskedEnd || hmacs.has(sign(text.slice(start, start + length)))) return length;
      }
      return 0;
    };
    let masked = '';
    let end = 0;
    for (let start = 0; start <= last; start += 1) {
      const length = findValue(start, end);
      if (length === 0) continue;
      if (start >= end) masked += `${text.slice(end, start)}${secretReplacement}`;
      end = Math.max(end, start + length);
    }
    return end === 0 ? text : masked + text.slice(end);
  };
}

/** Keys for this purpose alone: the same secret makes other tokens of the API. */
function deriveHashes(key: string): { readonly base: number; readonly sign: (value: string) => string } {
  const derived = Buffer.from(hkdfSync('sha256', key, '', 'moorage log fingerprints 1', 38));
  const signing = derived.subarray(0, 32);
  // Larger than any code unit, so that no two values of one character collide.
  const base = 65_536 + (derived.readUIntBE(32, 6) % (modulus - 65_536));
  return { base, sign: (value) => createHmac('sha256', signing).update(value).digest('hex') };
}

/** Hashes of all beginnings of a text, the empty one first. */
function sumHashes(text: string, base: number): Float64Array {
  const sums = new Float64Array(text.length + 1);
  let sum = 0;
  for (let index = 0; index < text.length; index += 1) {
    sum = (sum * base + text.charCodeAt(index)) % modulus;
    sums[index + 1] = sum;
  }
  return sums;
}

function computePower(base: number, exponent: number): number {
  let power = 1;
  for (let count = 0; count < exponent; count += 1) power = (power * base) % modulus;
  return power;
}

/** Fingerprints of an app that are kept. The oldest are forgotten first. */
const maximumFingerprints = 1_000;

const defineStatement = prefixStatements('secret-fingerprints');
const statements = {
  add: defineStatement(
    'add',
    `insert into author.secret_fingerprint (app, name, length, prefix, rolling, hmac)
      select $1, $2, f.length, f.prefix, f.rolling, f.hmac
        from jsonb_to_recordset($3) f (length int, prefix int, rolling int, hmac text)
      on conflict (app, hmac) do update set name = excluded.name, created_at = now()`,
    z.unknown(),
  ),
  trim: defineStatement(
    'trim',
    `delete from author.secret_fingerprint where app = $1 and hmac in (
        select hmac from author.secret_fingerprint where app = $1 order by created_at desc, hmac offset $2
      )`,
    z.unknown(),
  ),
  list: defineStatement(
    'list',
    `select length, prefix, rolling, hmac from author.secret_fingerprint where app = $1`,
    z.object({ length: z.int(), prefix: z.int(), rolling: z.int(), hmac: z.string() }),
  ),
} as const;

/**
 * Remembers a value that the author of an app has set, so that its log shows it nowhere: neither plain nor as programs encode
 * it, and of several lines none. Call it before the app gets the value. Earlier values stay masked.
 *
 * @param app its UID
 */
export async function rememberSecret(
  database: OpenLedger['database'],
  app: string,
  name: string,
  value: string,
  key: string,
): Promise<void> {
  const lines = value.split(/\r?\n/).map((line) => line.trim());
  const forms = new Set([value, ...lines].flatMap(listSecretForms));
  const found = [...forms].flatMap((form) => createFingerprint(form, key) ?? []).slice(0, maximumFingerprints);
  if (found.length === 0) return;
  await database.transaction(async (transaction) => {
    await transaction.query(statements.add, [app, name, JSON.stringify(found)]);
    await transaction.query(statements.trim, [app, maximumFingerprints]);
  });
}

/** The fingerprints of an app. */
export async function listFingerprints(database: OpenLedger['database'], app: string): Promise<Fingerprint[]> {
  return database.query(statements.list, [app]);
}
