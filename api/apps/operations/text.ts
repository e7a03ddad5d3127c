// Text that strangers wrote for agents to read, made plain and short: nothing in it is hidden.
import { createHash } from 'node:crypto';

/** Control characters, what shows nothing (zero width, tags, marks of direction), and halves of characters. */
const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}]+/gu;

export function plainText(given: unknown, limit: number): string {
  if (typeof given !== 'string') return '';
  const text = given
    .slice(0, limit * 2)
    .replaceAll(hidden, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

/** What clients such as Claude Desktop and Codex accept as the name of a tool. */
export const maxNameLength = 64;
/** Between the app and its operation. A slug has no underscore, so the first one separates. */
export const nameSeparator = '__';
/** A longer slug is cut and gets a hash, so that an operation has at least 22 characters. */
const maxPrefix = 40;

/** The part of its operations' names that stands for an app. */
export function toNamePrefix(slug: string): string {
  if (slug.length <= maxPrefix) return slug;
  const hash = createHash('sha256').update(slug).digest('hex').slice(0, 8);
  return `${slug.slice(0, maxPrefix - hash.length - 1)}-${hash}`;
}

export interface OperationName {
  /** `<slug>__<operation>`. */
  readonly name: string;
  /** `<slug>.<operation>`, as it was named before: no longer listed, but still called. */
  readonly formerName: string;
}

/** Names of operations: fit for every client, each one different, the same each time. */
export class Names {
  readonly #former = new Set<string>();
  readonly #taken = new Set<string>();
  readonly #slug: string;
  readonly #prefix: string;

  constructor(slug: string) {
    this.#slug = slug;
    this.#prefix = `${toNamePrefix(slug)}${nameSeparator}`;
  }

  next(wanted: string): OperationName {
    const base =
      plainText(wanted, 200)
        .normalize('NFKD')
        .replaceAll(/[^A-Za-z0-9_-]+/g, '_')
        .replaceAll(/^_+|_+$/g, '')
        .slice(0, 56) || 'operation';
    return {
      name: `${this.#prefix}${takeUnused(base, this.#taken, maxNameLength - this.#prefix.length)}`,
      formerName: `${this.#slug}.${takeUnused(base, this.#former)}`,
    };
  }
}

/** The name itself or, where it is taken, the name with a number. Some clients ignore case. */
function takeUnused(base: string, taken: Set<string>, limit = Number.POSITIVE_INFINITY): string {
  for (let count = 1; ; count += 1) {
    const suffix = count === 1 ? '' : `_${count}`;
    const name = `${base.slice(0, limit - suffix.length)}${suffix}`;
    if (taken.has(name.toLowerCase())) continue;
    taken.add(name.toLowerCase());
    return name;
  }
}
