// The ways in which a stage can end badly: a verdict on the repository, a fault that another try may fix, or another
// stage's bad end.
import type { Finding } from '../../crds/hosted-app.ts';

/** The repository cannot be hosted as it is. Final for this commit. `log` is the end of what a tool said. */
export class Rejected extends Error {
  override readonly name = 'Rejected';
  readonly findings: readonly [Finding, ...Finding[]];
  readonly log: string | undefined;
  constructor(findings: readonly [Finding, ...Finding[]], log?: string) {
    super(findings[0].message);
    this.findings = findings;
    this.log = log;
  }
}

/** Something of the platform or the network failed; the same input may succeed later. */
export class Fault extends Error {
  override readonly name = 'Fault';
}

/** A fault that what the author wrote, or a server of his, could have staged: believed once a commit. */
export class DoubtfulFault extends Fault {}

/** The stage before this one did not pass, and says why itself. */
export class NotReached extends Error {
  override readonly name = 'NotReached';
}
