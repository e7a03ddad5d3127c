// Masks secrets in text that others may read: crash logs, build logs, statuses and events.
import { escapePattern } from './values.ts';

/** Masks the secrets in a text. */
export type SecretMask = (text: string) => string;

export interface MaskOptions {
  /** Known values. Short ones are not masked: that would blank out ordinary words. */
  readonly values: readonly (string | undefined)[];
  /**
   * Variables whose values are secret and not known here. The text after their names is masked, and so is every word
   * that looks random.
   */
  readonly variables?: readonly string[];
}

/** What a secret is replaced with. */
export const secretReplacement = '[secret]';
const replacement = secretReplacement;
const minLength = 6;
/** A truncated text may begin in the middle of a secret. This many characters of a secret's end are enough to mask it. */
const minTail = 8;

/** Creates the mask for one app. */
export function createSecretMask({ values, variables = [] }: MaskOptions): SecretMask {
  const forms = [...new Set(values.flatMap(listSecretForms))].sort((a, b) => b.length - a.length);
  const assigned =
    variables.length === 0
      ? undefined
      : new RegExp(
          `(\\b(?:${variables.map(escapePattern).join('|')})\\b["']?\\s{0,3}[:=]\\s{0,3}["'\`]?)[^\\s"'\`,;)}\\]]+`,
          'g',
        );
  return (text) => {
    let masked = maskTail(text, forms);
    for (const form of forms) masked = masked.replaceAll(form, replacement);
    masked = maskCredentials(masked);
    if (assigned === undefined) return masked;
    return masked
      .replace(assigned, `$1${replacement}`)
      .replace(words, (word) => (isLikelyRandom(word) ? replacement : word));
  };
}

/** Masks passwords in URLs, and keys of a well-known form. Whatever they belong to, they are never shown on purpose. */
export function maskCredentials(text: string): string {
  return text
    .replace(/(\b[a-z][a-z0-9+.-]{0,20}:\/\/[^\s:/@'"]{0,100}:)[^\s/@'"]{1,500}(?=@)/gi, `$1${replacement}`)
    .replace(
      /\b(?:sk-[A-Za-z0-9_-]{8,}|moorage-[a-z0-9-]{1,63}\.[A-Za-z0-9_-]{43}|gh[pousr]_[A-Za-z0-9]{20,})/g,
      replacement,
    )
    .replace(/(\bBearer )[A-Za-z0-9._~+/=-]{8,}/g, `$1${replacement}`);
}

/** Names of variables that hold secrets by convention. */
export function isSecretName(name: string): boolean {
  return /(?:KEY|TOKEN|SECRET|PASS(?:WORD|WD|PHRASE)?|PWD|CREDENTIALS?|AUTH|DSN|PRIVATE|SALT)(?:$|_)/i.test(name);
}

/** A value as programs print it: plain, in a URL, in JSON, in base64. None of a value that is too short to be masked. */
export function listSecretForms(value: string | undefined): string[] {
  if (value === undefined || value.length < minLength) return [];
  const base64 = Buffer.from(value).toString('base64');
  return [
    value,
    encodeURIComponent(value),
    JSON.stringify(value).slice(1, -1),
    base64,
    base64.replace(/=+$/, ''),
    Buffer.from(value).toString('base64url'),
  ];
}

function maskTail(text: string, forms: readonly string[]): string {
  const start = /^…?\s*/.exec(text)?.[0] ?? '';
  const rest = text.slice(start.length);
  let longest = 0;
  for (const form of forms)
    for (let length = Math.min(form.length - 1, rest.length); length >= minTail && length > longest; length -= 1)
      if (rest.startsWith(form.slice(-length))) longest = length;
  return longest === 0 ? text : `${start}${replacement}${rest.slice(longest)}`;
}

const words = /[A-Za-z0-9_+/=-]{16,}/g;

/** Random letters and digits: neither a word, a path, a number nor a compound name. */
function isLikelyRandom(word: string): boolean {
  const parts = word.split(/[_+/=-]/);
  return parts.some(
    (part) => part.length >= 12 && /\d/.test(part) && /[A-Za-z]/.test(part) && measureEntropy(part) > 3,
  );
}

function measureEntropy(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  return [...counts.values()].reduce((sum, count) => sum - (count / text.length) * Math.log2(count / text.length), 0);
}

const newline = 10;
const maxLine = 64 * 1024;

/** Passes on output masked and line by line, since a program may write a line in pieces. */
export class MaskedLines {
  readonly #mask: SecretMask;
  readonly #print: (text: string) => void;
  #rest: Buffer = Buffer.alloc(0);

  constructor(mask: SecretMask, print: (text: string) => void) {
    this.#mask = mask;
    this.#print = print;
  }

  write(chunk: Uint8Array | string): void {
    const bytes = Buffer.concat([this.#rest, Buffer.from(chunk as Uint8Array)]);
    // A line that never ends is passed on at a maximum length, so that it does not fill the memory.
    const end = bytes.length > maxLine ? bytes.length : bytes.lastIndexOf(newline) + 1;
    this.#rest = bytes.subarray(end);
    if (end > 0) this.#print(this.#mask(bytes.subarray(0, end).toString('utf8')));
  }

  /** Passes on what is left. */
  end(): void {
    if (this.#rest.length > 0) this.#print(this.#mask(this.#rest.toString('utf8')));
    this.#rest = Buffer.alloc(0);
  }
}
