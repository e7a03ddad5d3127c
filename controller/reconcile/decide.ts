// Decides what to do about a snapshot: runs the steps in order, with nothing carried out yet.
import { pipelineStep } from '../steps/build/build.ts';
import { deployStep } from '../steps/deploy/deploy.ts';
import { publishStep } from '../steps/publish/publish.ts';
import { routeStep } from '../steps/route/route.ts';
import { sourceStep } from '../steps/source/source.ts';
import type { Action, Draft, Outcomes, Step, StepCondition } from './outcome.ts';
import type { Snapshot } from './snapshot.ts';
import { computeExpiry, draftOf, type Expiry } from './status.ts';

/** What a reconcile comes to. */
export interface Decision {
  readonly draft: Draft;
  readonly outcomes: Outcomes;
  /** To be carried out in order; `condition` is where a refusal by the API server is reported. */
  readonly actions: readonly { readonly condition: StepCondition; readonly action: Action }[];
  /** To be carried out once the status is written. */
  readonly afterStatus: readonly Action[];
  readonly expiry: Expiry | undefined;
}

const steps: readonly (readonly [StepCondition, Step])[] = [
  ['SourceResolved', sourceStep],
  ['Built', pipelineStep],
  ['Deployed', deployStep],
  ['Routed', routeStep],
];

/**
 * Decides. Pure: `snapshot` is only read. A step whose turn has not come says nothing; one that holds for the image
 * that is there goes on being kept up while a newer commit is on its way, or was refused.
 */
export function decide(snapshot: Snapshot): Decision {
  const draft = draftOf(snapshot.app.status);
  const outcomes: Outcomes = {};
  const actions: { condition: StepCondition; action: Action }[] = [];
  const afterStatus: Action[] = [];
  for (const [condition, step] of [
    ...steps,
    ['Published', (current: Snapshot, filled: Draft) => publishStep(current, filled, outcomes)] as const,
  ]) {
    const result = step(snapshot, draft);
    Object.assign(outcomes, result.outcomes);
    actions.push(...(result.actions ?? []).map((action) => ({ condition, action })));
    afterStatus.push(...(result.afterStatus ?? []));
  }
  return { draft, outcomes, actions, afterStatus, expiry: computeExpiry(snapshot, draft) };
}
