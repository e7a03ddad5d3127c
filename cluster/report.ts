// Prints progress for a person: one line a step, with the time that it took.
import type { Reporter } from './steps.ts';

export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Such as `0.4 s`, `12 s` or `3 min 20 s`. */
export function formatElapsed(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

export function lineReporter(): Reporter {
  const begun = Date.now();
  const stamp = (): string => formatElapsed(Date.now() - begun).padStart(12);
  return {
    slow: ({ name }) => {
      say(`${stamp()}  …  ${name}`);
    },
    done: ({ name }, detail, milliseconds) => {
      say(`${stamp()}  ok ${name.padEnd(34)} ${formatElapsed(milliseconds).padStart(9)}  ${detail}`.trimEnd());
    },
    failed: ({ name }, error, milliseconds) => {
      say(`${stamp()}  !! ${name.padEnd(34)} ${formatElapsed(milliseconds).padStart(9)}`);
      say(`   ${error instanceof Error ? error.message : String(error)}`);
    },
  };
}
