// Reads what steps of a planned build report about themselves, as the log goes by.
import type { Finding } from '../../../crds/hosted-app.ts';
import { warningOf } from '../plan/build-warnings.ts';

const maximumHeld = 4_096;
const maximumReports = 5;

/** Takes the log piece by piece. Of each report the first is kept. */
export class StepReports {
  readonly #found = new Map<string, Finding>();
  #held = '';

  add(chunk: Buffer): void {
    const lines = (this.#held + chunk.toString('latin1')).split('\n');
    this.#held = (lines.pop() ?? '').slice(0, maximumHeld);
    for (const line of lines) {
      const finding = warningOf(line.trimEnd());
      if (finding !== undefined && this.#found.size < maximumReports && !this.#found.has(finding.rule))
        this.#found.set(finding.rule, finding);
    }
  }

  get findings(): Finding[] {
    return [...this.#found.values()];
  }
}
