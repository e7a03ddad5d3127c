// Passes the build's log on to the container's, without the builder's own chatter, up to a limit; keeps its end whole
// for the verdict.
import { OutputTail } from '../../../lib/output-tail.ts';

/** Progress of transfers, and the cache that a first build does not have yet: nothing that an author can use. */
const chatter = [
  /^#\d+ (?:sha256:|extracting sha256:|resolve |transferring |writing |preparing |sending cache|pushing |exporting (?:layers|manifest|config|attestation))/,
  /^#\d+ (?:\.\.\.$|\[auth\] |importing cache manifest |ERROR: failed to configure registry cache importer)/,
  /^ > importing cache manifest |^------$/,
];
const maximumHeld = 64 * 1024;

export class BuildLog {
  readonly #write: (chunk: Buffer) => void;
  readonly #limit: number;
  readonly #tail = new OutputTail(256 * 1024);
  #held = Buffer.alloc(0);
  #passed = 0;
  #cut = false;

  constructor(write: (chunk: Buffer) => void, limit: number) {
    this.#write = write;
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    this.#tail.add(chunk);
    const text = Buffer.concat([this.#held, chunk]);
    const end = text.length > maximumHeld ? text.length : text.lastIndexOf('\n') + 1;
    this.#held = text.subarray(end);
    this.#pass(text.subarray(0, end));
  }

  /** Passes on what is left of the last line. @returns the last part of the log, whether passed on or not */
  end(): string {
    this.#pass(this.#held);
    this.#held = Buffer.alloc(0);
    return this.#tail.text();
  }

  #pass(lines: Buffer): void {
    if (lines.length === 0) return;
    const kept = Buffer.from(
      lines
        .toString('latin1')
        .split(/(?<=\n)/)
        .filter((line) => !chatter.some((each) => each.test(line.trimEnd())))
        .join(''),
      'latin1',
    );
    const room = this.#limit - this.#passed;
    if (room > 0 && kept.length > 0) this.#write(kept.length > room ? kept.subarray(0, room) : kept);
    this.#passed += Math.min(room, kept.length);
    if (kept.length <= room || this.#cut) return;
    this.#cut = true;
    this.#write(Buffer.from(`\n[the log is longer than ${this.#limit} bytes; the rest is not shown]\n`));
  }
}
