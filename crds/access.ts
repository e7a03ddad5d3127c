// Who may visit an app: everybody, holders of a key, or those who know a password. The author sets it in spec.control, and the
// activator enforces it. Neither a key nor the password is stored, only a hash of each.
import { createHash, randomBytes, scrypt } from 'node:crypto';
import { z } from 'zod';
import { isSameSecret } from '../lib/sealed-text.ts';
import { addRules, createPatternRule, listBy, timestamp } from './values.ts';

/** Header in which a visitor sends a key when the app itself uses Authorization. No app receives it. */
export const accessHeader = 'moorage-access';

/** Paths below this one, at every host name of an app, belong to the platform while the app is protected. */
export const signInPath = '/.moorage/sign-in';

export const maximumAccessKeys = 32;

export const accessKeyName = addRules(
  z.string().max(40),
  createPatternRule(
    '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
    'the name of a key must have lower-case letters, digits and inner hyphens only',
  ),
);

const accessKey = z.strictObject({
  name: accessKeyName.describe('Name of the key, which the author has chosen.'),
  hash: addRules(
    z.string().max(64),
    createPatternRule('^[0-9a-f]{64}$', 'hash must be a SHA-256 hash in hexadecimal digits'),
  ).describe('SHA-256 of the key, which has 256 random bits.'),
  createdAt: timestamp.max(40).describe('When the key was created.'),
});

/** The fields of spec.control. */
export const accessFields = {
  access: z
    .enum(['key', 'password'])
    .optional()
    .describe(
      'What visitors of the app need: a key, or the password or a key. Absent: nothing. Requests without it never reach the app.',
    ),
  accessPassword: addRules(
    z.string().max(80),
    createPatternRule(
      '^scrypt-1:[A-Za-z0-9_-]{22}:[A-Za-z0-9_-]{43}$',
      'accessPassword must be a hash that the API has made; set the password with PUT /api/apps/{slug}/access',
    ),
  )
    .optional()
    .describe('Salted scrypt hash of the password. The password is not stored.'),
  accessKeys: listBy(z.array(accessKey).max(maximumAccessKeys), 'name')
    .optional()
    .describe('The keys that open the app, as hashes.'),
};

const stored = z.object(accessFields);
type StoredAccess = z.output<typeof stored>;

/** What opens an app, identified by its hash. */
export type AccessCredential =
  { readonly kind: 'key'; readonly hash: string } | { readonly kind: 'password'; readonly hash: string };

/** No visitor is admitted. */
export const locked: AccessPolicy = { mode: 'locked', credentials: [] };

/** Undefined: anyone may visit the app. */
export interface AccessPolicy {
  /** `locked`: it could not be read, so no visitor is admitted. */
  readonly mode: 'key' | 'password' | 'locked';
  readonly credentials: readonly AccessCredential[];
}

/** Whether visitors of an app need something. Anything but an absent value protects it. */
export function isProtected({ control }: { readonly control?: { readonly access?: unknown } | undefined }): boolean {
  return control?.access !== undefined;
}

/**
 * Reads the policy from the section `control` of a HostedApp as the API server returns it. What cannot be read locks the
 * app: a policy of a later version must not open it.
 */
export function readAccessPolicy(control: unknown): AccessPolicy | undefined {
  if (control === undefined || control === null) return undefined;
  const { success, data } = stored.safeParse(control);
  if (!success) return locked;
  return data.access === undefined ? undefined : { mode: data.access, credentials: listCredentials(data) };
}

function listCredentials({ access, accessPassword, accessKeys = [] }: StoredAccess): AccessCredential[] {
  const keys = accessKeys.map(({ hash }) => ({ kind: 'key', hash }) as const);
  return access === 'password' && accessPassword !== undefined
    ? [{ kind: 'password', hash: accessPassword }, ...keys]
    : keys;
}

// Keys

const keyPrefix = 'mvk-';
const keyPattern = /^mvk-[A-Za-z0-9_-]{43}$/;

/** Creates a key of 256 random bits. */
export function createAccessKey(): string {
  return `${keyPrefix}${randomBytes(32).toString('base64url')}`;
}

/** Whether a text has the form of a key. */
export function isAccessKey(text: string): boolean {
  return keyPattern.test(text);
}

export function hashAccessKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

// Passwords

/** About 16 MiB and a fifth of a second of one core: as slow as OWASP recommends, with little memory. */
const scryptCost = { N: 16_384, r: 8, p: 5, maxmem: 64 * 1024 * 1024 } as const;
const [saltBytes, hashBytes] = [16, 32];

/** Longest password in characters, each of which has up to four bytes. */
export const longestPassword = 200;

/** Hashes a password with a new salt, so that the same password gives another hash each time. */
export async function hashAccessPassword(password: string): Promise<string> {
  const salt = randomBytes(saltBytes).toString('base64url');
  return formatPasswordHash(salt, await deriveKey(password, salt));
}

/** Whether a password is the one that was hashed. Takes as long if it is not. */
export async function verifyAccessPassword(password: string, hash: string): Promise<boolean> {
  const [, salt = ''] = hash.split(':');
  return isSameSecret(formatPasswordHash(salt, await deriveKey(password, salt)), hash);
}

function formatPasswordHash(salt: string, key: Buffer): string {
  return `scrypt-1:${salt}:${key.toString('base64url')}`;
}

/** The text is normalized, so that the same password from two keyboards is the same bytes. */
function deriveKey(password: string, salt: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), Buffer.from(salt, 'base64url'), hashBytes, scryptCost, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
}
