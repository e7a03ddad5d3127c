// Counts the calls of functions in programs that a walk starts, each of them a process.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { Profiler } from 'node:inspector';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { type Calls, toCallsByKey } from './entered.ts';

const preload = pathToFileURL(join(import.meta.dirname, 'count-calls.ts')).href;

export class ProgramCounter {
  readonly #folder = mkdtempSync(join(tmpdir(), 'moorage-walks-'));
  /** How often the calls of a process were taken. */
  readonly #taken = new Map<number, number>();

  /** What a program needs in its environment to be counted. */
  get variables(): Readonly<Record<'NODE_OPTIONS' | 'MOORAGE_WALKS', string>> {
    return { NODE_OPTIONS: `--import=${preload}`, MOORAGE_WALKS: this.#folder };
  }

  /** Returns the calls of a running process since the last time. */
  async take(pid: number): Promise<Calls> {
    const count = this.#taken.get(pid) ?? 0;
    this.#taken.set(pid, count + 1);
    const file = join(this.#folder, `${pid}-${count}.json`);
    process.kill(pid, 'SIGUSR2');
    while (!existsSync(file)) await sleep(20);
    return this.#read(file);
  }

  /** Runs work in which one program starts and ends, and returns the calls of that program. */
  async during(work: () => Promise<void>): Promise<Calls> {
    const before = new Set(readdirSync(this.#folder));
    await work();
    const files = readdirSync(this.#folder).filter((name) => !before.has(name));
    const calls = files.map((name) => this.#read(join(this.#folder, name)));
    return new Map(calls.flatMap((one) => [...one]));
  }

  stop(): void {
    rmSync(this.#folder, { recursive: true });
  }

  #read(file: string): Calls {
    return toCallsByKey(JSON.parse(readFileSync(file, 'utf8')) as Profiler.ScriptCoverage[]);
  }
}
