// How the conditions Reviewed and Built stand, in words, from the queue to an image.
import type { HistoryEntry } from '../../../crds/hosted-app.ts';
import { done, short, stalled, waiting, type Draft, type Outcomes } from '../../reconcile/outcome.ts';
import type { ReasonOf } from '../../reconcile/reasons.ts';
import type { Verdict } from './verdict.ts';

export function givenUp(faults: readonly HistoryEntry[]): Outcomes {
  const rejection = {
    rule: 'platform/fault',
    message:
      `The platform failed ${faults.length} times to build this commit: ${faults[0]?.message ?? 'no message'}`.slice(
        0,
        1_500,
      ),
    fix: `Your app did not cause this. Push a new commit, or submit the repository again.`,
  };
  return { Built: stalled('PipelineFaulted', rejection) };
}

/** Once an image is there it stays so, whether its Job still exists or not. */
export function standing(draft: Draft, commit: string): Outcomes {
  const warnings = (draft.findings ?? []).length;
  return {
    Reviewed: passed(warnings),
    Built: done('Built', `Built commit ${short(commit)}: ${draft.built?.image.split('/').at(-1) ?? ''}.`),
  };
}

export function passed(warnings: number): ReturnType<typeof done> {
  return done(
    'ReviewPassed',
    warnings === 0
      ? 'The review found no problems.'
      : `Passed with ${warnings} warning${warnings === 1 ? '' : 's'}; see status.findings.`,
  );
}

export function inProgress(verdict: Verdict & { kind: 'running' }, commit: string): Outcomes {
  const trouble = verdict.trouble === undefined ? '' : ` ${verdict.trouble}`;
  if (verdict.stage !== 'Build') {
    const reviewed =
      verdict.stage === 'Clone'
        ? waiting('Cloning', `Commit ${short(commit)} is being cloned.${trouble}`)
        : waiting('Reviewing', `Commit ${short(commit)} is being reviewed.${trouble}`);
    return { Reviewed: reviewed, Built: waiting('NotReached', 'Waiting for the review.') };
  }
  return {
    Reviewed: passed(verdict.review?.findings.length ?? 0),
    Built: waiting('Building', `Commit ${short(commit)} is being built.${trouble}`),
  };
}

export function beforeReview(reason: ReasonOf<'waiting'>, message: string): Outcomes {
  return { Reviewed: waiting(reason, message), Built: waiting('NotReached', 'Waiting for the review.') };
}
