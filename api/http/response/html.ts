// HTML from templates: whatever is put into one is escaped, unless it is HTML itself.
import { escapeHtml } from '../../../lib/values.ts';

/** Text that is HTML. */
export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

type Value = Html | string | number | readonly Value[];

export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(String.raw({ raw: strings }, ...values.map(escapeValue)));
}

/** Text that is trusted to be HTML, such as a constant. */
export function trustHtml(text: string): Html {
  return new Html(text);
}

function escapeValue(value: Value): string {
  if (value instanceof Html) return value.toString();
  if (typeof value === 'object') return value.map(escapeValue).join('');
  return escapeHtml(String(value));
}
