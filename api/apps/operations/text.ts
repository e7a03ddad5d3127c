// Text that strangers wrote for agents to read, made plain and short: nothing in it is hidden.

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

/** Names of operations: fit for every client, each one different, the same each time. */
export class Names {
  readonly #taken = new Set<string>();
  readonly #slug: string;

  constructor(slug: string) {
    this.#slug = slug;
  }

  next(wanted: string): string {
    const base =
      plainText(wanted, 200)
        .normalize('NFKD')
        .replaceAll(/[^A-Za-z0-9_-]+/g, '_')
        .replaceAll(/^_+|_+$/g, '')
        .slice(0, 56) || 'operation';
    for (let count = 1; ; count += 1) {
      const name = count === 1 ? base : `${base}_${count}`;
      // Some clients ignore case.
      if (this.#taken.has(name.toLowerCase())) continue;
      this.#taken.add(name.toLowerCase());
      return `${this.#slug}.${name}`;
    }
  }
}
