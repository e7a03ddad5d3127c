// Passes the build's log on to the container's, up to a limit, and keeps its end for the verdict.
import { Tail } from '../process.ts';

export class BuildLog {
  readonly #write: (chunk: Buffer) => void;
  readonly #limit: number;
  readonly #tail = new Tail(256 * 1024);
  #passed = 0;
  #cut = false;

  constructor(write: (chunk: Buffer) => void, limit: number) {
    this.#write = write;
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    this.#tail.add(chunk);
    const room = this.#limit - this.#passed;
    if (room > 0) this.#write(chunk.length > room ? chunk.subarray(0, room) : chunk);
    this.#passed += Math.min(room, chunk.length);
    if (chunk.length <= room || this.#cut) return;
    this.#cut = true;
    this.#write(Buffer.from(`\n[the log is longer than ${this.#limit} bytes; the rest is not shown]\n`));
  }

  /** The last part, whether passed on or not. */
  end(): string {
    return this.#tail.text();
  }
}
