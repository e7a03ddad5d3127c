// What came of running code, in any language, and what it wrote meanwhile.

export interface Fault {
  readonly name: string;
  readonly message: string;
  readonly line: number | null;
  readonly stack: string;
}

export interface Outcome {
  readonly ok: boolean;
  readonly value: unknown;
  readonly value_type: string;
  readonly value_text: string;
  readonly error: Fault | null;
}

export interface Log {
  readonly level: string;
  readonly text: string;
}

export function failure(error: Fault): Outcome {
  return { ok: false, value: null, value_type: 'undefined', value_text: '', error };
}

/** Text that streams wrote, up to a number of characters: an entry for what one stream wrote until another did. */
export class Logs {
  truncated = false;
  readonly #entries: { level: string; text: string }[] = [];
  #left: number;

  constructor(maxCharacters: number) {
    this.#left = maxCharacters;
  }

  add(level: string, text: string): void {
    const kept = text.slice(0, this.#left);
    this.#left -= kept.length;
    if (kept.length < text.length) this.truncated = true;
    if (kept === '') return;
    const last = this.#entries.at(-1);
    if (last?.level === level) last.text += kept;
    else this.#entries.push({ level, text: kept });
  }

  /** Without the line end of the last line of each. */
  get entries(): readonly Log[] {
    return this.#entries.map(({ level, text }) => ({ level, text: text.replace(/\n$/, '') }));
  }
}
