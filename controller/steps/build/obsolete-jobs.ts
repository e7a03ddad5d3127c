// Jobs that have become obsolete: overtaken by a newer commit, or finished and beyond the history limit.
import type { Action, Draft } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { jobs as jobResource, type Job } from '../../objects/kinds.ts';
import { numberOf, record } from './history.ts';
import { isFinished } from './verdict.ts';

/** Ends every pipeline but `current` that is still in progress. */
export function supersede(snapshot: Snapshot, draft: Draft, current: string | undefined, why: string): Action[] {
  const overtaken = snapshot.jobs.filter(
    (job) => job.metadata.name !== current && !isFinished(job) && job.metadata.deletionTimestamp === undefined,
  );
  for (const job of overtaken)
    draft.history = record(draft.history ?? [], job, snapshot.now, { result: 'Superseded', message: why });
  return overtaken.map(remove);
}

/** Finished Jobs beyond the limit, oldest first to go; what they came to is in history. */
export function oldJobs(snapshot: Snapshot, current: string): Action[] {
  const finished = snapshot.jobs.filter(
    (job) => isFinished(job) && job.metadata.name !== current && job.metadata.deletionTimestamp === undefined,
  );
  return finished
    .toSorted((a, b) => numberOf(b) - numberOf(a))
    .slice(snapshot.config.pipeline.historyLimit)
    .map(remove);
}

/** The action that deletes a Job. */
export function remove(job: Job): Action {
  return { kind: 'delete', resource: jobResource, object: job };
}

/** The same for one that another app of this name has left. */
export function removeStranger(job: Job): Action {
  return { kind: 'delete', resource: jobResource, object: job, isStranger: true };
}
