// How the conditions Reviewed and Built stand, in words, from the queue to an image.
import type { HistoryEntry } from '../../../crds/hosted-app.ts';
import { done, short, stalled, waiting, type Draft, type Outcomes } from '../../reconcile/outcome.ts';
import type { ReasonOf } from '../../reconcile/reasons.ts';
import { explainNoRoom, noRoomOf, triedAgainAt } from '../../build-queue/no-room.ts';
import type { Job } from '../../objects/kinds.ts';
import { timestamp } from '../../objects/timestamp.ts';
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

/** What keeps a pipeline from its turn, and from a node once it has it. */
interface Wait {
  readonly commit: string;
  readonly position: number | undefined;
  /** The scheduler's word of a pipeline that has its turn. */
  readonly noRoom: string | undefined;
  /** Why no build may start for lack of disk space. */
  readonly shortage: string | undefined;
}

export function queued(job: Job, { commit, position, noRoom, shortage }: Wait): Outcomes {
  const where = `Commit ${short(commit)} is queued at position ${position ?? '?'}`;
  if (shortage !== undefined && job.spec?.suspend === true)
    return beforeReview('WaitingForSpace', `Waiting for disk space: ${shortage} ${where}.`);
  if (noRoom !== undefined)
    return beforeReview('WaitingForRoom', `${explainNoRoom(noRoom)} Commit ${short(commit)} is the next to start.`);
  const found = noRoomOf(job);
  if (found === undefined) return beforeReview('Queued', `${where}.`);
  return beforeReview(
    'WaitingForRoom',
    `${explainNoRoom(found.reason)} Commit ${short(commit)} is queued again, at position ${position ?? '?'}, and tried from ${timestamp(new Date(triedAgainAt(found)))} on.`,
  );
}
