// Prints progress for a person: a line for each step that has ended, and the steps in progress.
import { createLogUpdate } from 'log-update';
import { formatLine, Progress } from './progress.ts';
import type { Reporter, Step } from '../localnode/steps.ts';

export { formatElapsed } from './progress.ts';

export function say(line: string): void {
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

/** Rewrites its last lines in place. */
function terminal(output: NodeJS.WriteStream): Screen {
  const log = createLogUpdate(output);
  const fit = (line: string): string => line.slice(0, output.columns - 1);
  return {
    print: (text) => {
      log.persist(text);
    },
    refresh: (progress, now) => {
      const lines = progress.live(now);
      if (lines.length > 0) log(lines.map(fit).join('\n'));
      else {
        log.clear();
        log.done();
      }
    },
  };
}

function plain(output: Output): Screen {
  return {
    print: (text) => output.write(`${text}\n`),
    refresh: (progress, now) => {
      for (const line of progress.due(now)) output.write(`${line}\n`);
    },
  };
}

const isTerminal = (output: Output): output is NodeJS.WriteStream =>
  output.isTTY === true && process.env['TERM'] !== 'dumb';

/** Reports steps on a terminal, whose last lines are rewritten each second, or to a log, which gets whole lines. */
export function lineReporter(output: Output = process.stdout, now: () => number = Date.now): Reporter {
  const begun = now();
  const progress = new Progress(begun);
  const screen = isTerminal(output) ? terminal(output) : plain(output);
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
    started: (step) => {
      progress.start(step, now());
    },
    progress: (step, text) => {
      progress.update(step, text);
    },
    done: (step, detail, milliseconds) => {
      end(step, milliseconds, 'ok', detail);
      refresh();
    },
    failed: (step, error, milliseconds) => {
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
