// Takes down what a submission says, where `npm run submit` would print it.
import type { Reason, Status } from '../../../cli/submit/api-client.ts';
import type { Output } from '../../../cli/submit/output.ts';

export interface Recording {
  readonly output: Output;
  /** Log of the pipeline and the app, in order. */
  readonly log: readonly string[];
  /** The outcome; undefined until there is one. */
  readonly outcome: () =>
    { readonly status: Status; readonly reason: Reason | undefined; readonly seconds: number } | undefined;
}

/** However much an app says. */
const maximumLines = 20_000;

export function createRecorder(now: () => number = () => performance.now()): Recording {
  const log: string[] = [];
  let begun = now();
  let outcome: ReturnType<Recording['outcome']>;
  return {
    log,
    outcome: () => outcome,
    output: {
      printLine(text) {
        // The push comes before it, and is not the platform's time.
        if (text.startsWith('submitted')) begun = now();
      },
      writeEvent(event) {
        if (event.type === 'log' && log.length < maximumLines) log.push(event.line);
      },
      writeVerdict(status, reason) {
        outcome = { status, reason, seconds: Math.round((now() - begun) / 100) / 10 };
      },
    },
  };
}
