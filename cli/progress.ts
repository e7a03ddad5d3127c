// Steps in progress: the live lines of a terminal, and the plain lines that a log gets at intervals.
import type { Step } from '../localnode/steps.ts';

interface Running {
  begun: number;
  /** What the step reported last. */
  progress: string;
  /** When a log last got a line on it. */
  logged: number | undefined;
}

/** A step that ends sooner needs no line but its last. */
const slowAfterMs = 3_000;
const logEveryMs = 30_000;

/** Such as `0.4 s`, `12 s` or `3 min 20 s`. */
export function formatElapsed(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** One line on a step, in the columns that all of them share: time since the start, mark, name, time of the step. */
export function formatLine(total: number, mark: string, name: string, elapsed: number, detail: string): string {
  const columns = [formatElapsed(total).padStart(12), mark.padEnd(2), name.padEnd(34)].join('  ');
  return `${columns} ${formatElapsed(elapsed).padStart(10)}  ${detail}`.trimEnd();
}

/** Keeps what each running step does. Times are milliseconds of one clock. */
export class Progress {
  readonly #begun: number;
  readonly #running = new Map<Step, Running>();
  #total = 0;
  #ended = 0;

  constructor(now: number) {
    this.#begun = now;
  }

  plan(total: number): void {
    this.#total = total;
  }

  start(step: Step, now: number): void {
    this.#running.set(step, { begun: now, progress: '', logged: undefined });
  }

  update(step: Step, progress: string): void {
    const running = this.#running.get(step);
    if (running !== undefined) running.progress = progress;
  }

  end(step: Step): void {
    if (this.#running.delete(step)) this.#ended += 1;
  }

  /** For a terminal: a line for each running step that is slow, and how many steps have ended. */
  live(now: number): string[] {
    const slow = [...this.#running].filter(([, { begun }]) => now - begun >= slowAfterMs);
    if (slow.length === 0) return [];
    return [...slow.map(([step, running]) => this.#line(step, running, now)), this.#count(now)];
  }

  /** For a log: the lines that are due, each step's first soon and then one at each interval. */
  due(now: number): string[] {
    const due = [...this.#running].filter(
      ([, { begun, logged }]) => now - (logged ?? begun) >= (logged === undefined ? slowAfterMs : logEveryMs),
    );
    for (const [, running] of due) running.logged = now;
    return due.map(([step, running]) => this.#line(step, running, now));
  }

  #line({ name }: Step, { begun, progress }: Running, now: number): string {
    return formatLine(now - this.#begun, '…', name, now - begun, progress);
  }

  #count(now: number): string {
    return `${formatElapsed(now - this.#begun).padStart(12)}      ${this.#ended} of ${this.#total} steps done`;
  }
}
