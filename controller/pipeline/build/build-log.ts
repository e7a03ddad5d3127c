// Passes the log of a build on without the builder's own chatter, and collects what planned steps report in it.
import type { Finding } from '../../../crds/hosted-app.ts';
import { OutputTail } from '../../../lib/child-process.ts';
import { parseReport } from '../plan/build-warnings.ts';

/** Transfer progress, and the cache that a first build does not have yet: of no use to an author. */
const chatter = [
  /^#\d+ (?:sha256:|extracting sha256:|resolve |transferring |writing |preparing |sending cache|pushing |exporting (?:layers|manifest|config|attestation))/,
  /^#\d+ (?:\.\.\.$|\[auth\] |importing cache manifest |ERROR: failed to configure registry cache importer)/,
  /^ > importing cache manifest |^------$/,
];
const maximumHeld = 64 * 1024;

export class BuildLog {
  readonly #write: (chunk: Buffer) => void;
  readonly #limit: number;
  readonly #prefix: string;
  readonly #tail = new OutputTail(256 * 1024);
  #held = Buffer.alloc(0);
  #passed = 0;
  #cut = false;

  constructor(write: (chunk: Buffer) => void, limit: number, prefix = '') {
    this.#write = write;
    this.#limit = limit;
    this.#prefix = prefix;
  }

  add(chunk: Buffer): void {
    this.#tail.add(chunk);
    const text = Buffer.concat([this.#held, chunk]);
    const end = text.length > maximumHeld ? text.length : text.lastIndexOf('\n') + 1;
    this.#held = text.subarray(end);
    this.#pass(text.subarray(0, end));
  }

  /** Flushes the last, partial line. @returns the end of the log, including lines that were filtered out */
  end(): string {
    this.#pass(this.#held);
    this.#held = Buffer.alloc(0);
    return this.#tail.toText();
  }

  #pass(lines: Buffer): void {
    if (lines.length === 0) return;
    const output = Buffer.from(
      lines
        .toString('latin1')
        .split(/(?<=\n)/)
        .filter((line) => !chatter.some((each) => each.test(line.trimEnd())))
        // Blank lines part the steps of one build, which they do not do where several are mixed.
        .filter((line) => this.#prefix === '' || line.trim() !== '')
        .map((line) => this.#prefix + line)
        .join(''),
      'latin1',
    );
    const room = this.#limit - this.#passed;
    if (room > 0 && output.length > 0) this.#write(output.length > room ? output.subarray(0, room) : output);
    this.#passed += Math.min(room, output.length);
    if (output.length <= room || this.#cut) return;
    this.#cut = true;
    this.#write(Buffer.from(`\n[the log is longer than ${this.#limit} bytes; the rest is not shown]\n`));
  }
}

const maximumLineLength = 4_096;
const maximumReports = 5;

/** Collects step reports from log chunks. Keeps the first of each kind. */
export class StepReports {
  readonly #found = new Map<string, Finding>();
  #held = '';

  add(chunk: Buffer): void {
    const lines = (this.#held + chunk.toString('latin1')).split('\n');
    this.#held = (lines.pop() ?? '').slice(0, maximumLineLength);
    for (const line of lines) {
      const finding = parseReport(line.trimEnd());
      if (finding !== undefined && this.#found.size < maximumReports && !this.#found.has(finding.rule))
        this.#found.set(finding.rule, finding);
    }
  }

  get findings(): Finding[] {
    return [...this.#found.values()];
  }
}
