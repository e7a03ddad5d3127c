// Prints the progress of steps for a person, on a terminal or to a log, and the addresses of the finished cluster.
import { createLogUpdate } from 'log-update';
import { formatHttpsUrl, type GatewayPorts } from '../localnode/node/gateway/ports.ts';
import { node } from '../localnode/node/settings.ts';
import { paths } from '../localnode/paths.ts';
import type { Reporter, Step } from '../localnode/steps.ts';

export function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Where the lines go. */
export interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write: (text: string) => boolean;
}

interface Screen {
  print: (text: string) => void;
  /** Shows the steps in progress. */
  refresh: (progress: Progress, now: number) => void;
}

/** A terminal, whose last lines are rewritten in place. */
function createTerminal(output: NodeJS.WriteStream): Screen {
  const log = createLogUpdate(output);
  const fit = (line: string): string => line.slice(0, output.columns - 1);
  return {
    print: (text) => {
      log.persist(text);
    },
    refresh: (progress, now) => {
      const lines = progress.formatLive(now);
      if (lines.length > 0) log(lines.map(fit).join('\n'));
      else {
        log.clear();
        log.done();
      }
    },
  };
}

function createPlain(output: Output): Screen {
  return {
    print: (text) => output.write(`${text}\n`),
    refresh: (progress, now) => {
      for (const line of progress.formatDue(now)) output.write(`${line}\n`);
    },
  };
}

const isTerminal = (output: Output): output is NodeJS.WriteStream =>
  output.isTTY === true && process.env['TERM'] !== 'dumb';

/** Reports steps on a terminal, whose last lines are rewritten each second, or to a log, which gets whole lines. */
export function createLineReporter(output: Output = process.stdout, now: () => number = Date.now): Reporter {
  const begun = now();
  const progress = new Progress(begun);
  const screen = isTerminal(output) ? createTerminal(output) : createPlain(output);
  const refresh = (): void => {
    screen.refresh(progress, now());
  };
  let timer: NodeJS.Timeout | undefined;
  const end = (step: Step, milliseconds: number, mark: string, detail: string): void => {
    progress.end(step);
    screen.print(formatLine(now() - begun, mark, step.name, milliseconds, detail));
  };
  return {
    begin: (steps) => {
      progress.plan(steps.length);
      timer = setInterval(refresh, 1_000).unref();
    },
    reportStart: (step) => {
      progress.start(step, now());
    },
    reportProgress: (step, text) => {
      progress.update(step, text);
    },
    reportDone: (step, detail, milliseconds) => {
      end(step, milliseconds, 'ok', detail);
      refresh();
    },
    reportFailure: (step, error, milliseconds) => {
      end(step, milliseconds, '!!', '');
      screen.print(`   ${error instanceof Error ? error.message : String(error)}`);
      refresh();
    },
    end: () => {
      clearInterval(timer);
      refresh();
    },
  };
}

interface RunningStep {
  begun: number;
  /** What the step reported last. */
  progress: string;
  /** When the log last got a line about it. */
  logged: number | undefined;
}

/** A step that ends sooner gets only its last line. */
const slowAfterMs = 3_000;
const logEveryMs = 30_000;

/** Such as `0.4 s`, `12 s` or `3 min 20 s`. */
export function formatElapsed(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const wholeSeconds = Math.round(seconds);
  return `${Math.floor(wholeSeconds / 60)} min ${wholeSeconds % 60} s`;
}

/** One line about a step, in columns: time since the start, mark, name, time of the step. */
export function formatLine(total: number, mark: string, name: string, elapsed: number, detail: string): string {
  const columns = [formatElapsed(total).padStart(12), mark.padEnd(2), name.padEnd(34)].join('  ');
  return `${columns} ${formatElapsed(elapsed).padStart(10)}  ${detail}`.trimEnd();
}

/** Tracks the running steps. Times are milliseconds of one clock. */
export class Progress {
  readonly #begun: number;
  readonly #running = new Map<Step, RunningStep>();
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
  formatLive(now: number): string[] {
    const slow = [...this.#running].filter(([, { begun }]) => now - begun >= slowAfterMs);
    if (slow.length === 0) return [];
    return [...slow.map(([step, running]) => this.#formatLine(step, running, now)), this.#count(now)];
  }

  /** For a log: the lines that are due. A step gets its first line soon, then one per interval. */
  formatDue(now: number): string[] {
    const due = [...this.#running].filter(
      ([, { begun, logged }]) => now - (logged ?? begun) >= (logged === undefined ? slowAfterMs : logEveryMs),
    );
    for (const [, running] of due) running.logged = now;
    return due.map(([step, running]) => this.#formatLine(step, running, now));
  }

  #formatLine({ name }: Step, { begun, progress }: RunningStep, now: number): string {
    return formatLine(now - this.#begun, '…', name, now - begun, progress);
  }

  #count(now: number): string {
    return `${formatElapsed(now - this.#begun).padStart(12)}      ${this.#ended} of ${this.#total} steps done`;
  }
}

/** Prints the addresses of a local cluster. `begun`: when `up` was called, in milliseconds since 1970. */
export function printAddresses(begun: number, ports: GatewayPorts): void {
  printLine(`
Moorage is up after ${formatElapsed(Date.now() - begun)}.

  base URL      ${formatHttpsUrl(node.baseDomain, ports)}
  sample app    ${formatHttpsUrl(`hello.${node.appsDomain}`, ports)}/
  kubeconfig    ${paths.kubeconfig}
  certificate   ${paths.authority}

Try: curl --cacert ${paths.authority} ${formatHttpsUrl(`hello.${node.appsDomain}`, ports)}/
     npm run submit -- ./folder-with-an-app
`);
}
