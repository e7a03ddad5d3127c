// Keeps the last bytes of a stream, so that a program that prints without end takes no more memory than that.

/** Keeps the last bytes of a stream. */
export class OutputTail {
  readonly #limit: number;
  #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes > 2 * this.#limit) this.#compact();
  }

  text(): string {
    this.#compact();
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  #compact(): void {
    const all = Buffer.concat(this.#chunks);
    const kept = all.length > this.#limit ? Buffer.from(all.subarray(all.length - this.#limit)) : all;
    this.#chunks = [kept];
    this.#bytes = kept.length;
  }
}
