// Runs the steps over one observation: what is wanted and how things stand, with nothing done yet.
import { deployStep } from './deploy.ts';
import type { Observed } from './observed.ts';
import type { Action, Draft, Outcomes, Step, StepCondition } from './outcome.ts';
import { pipelineStep } from './pipeline.ts';
import { publishStep } from './publish.ts';
import { routeStep } from './route.ts';
import { sourceStep } from './source.ts';
import { draftOf } from './status.ts';

/** What a reconcile comes to. */
export interface Decision {
  readonly draft: Draft;
  readonly outcomes: Outcomes;
  /** To be carried out in order; `condition` is where a refusal by the API server is told. */
  readonly actions: readonly { readonly condition: StepCondition; readonly action: Action }[];
  /** To be carried out once the status is written. */
  readonly afterStatus: readonly Action[];
}

const steps: readonly (readonly [StepCondition, Step])[] = [
  ['SourceResolved', sourceStep],
  ['Built', pipelineStep],
  ['Deployed', deployStep],
  ['Routed', routeStep],
];

/**
 * Decides. Pure: `observed` is only read. A step whose turn has not come says nothing; one that holds for the image
 * that is there goes on being kept up while a newer commit is on its way, or was refused.
 */
export function decide(observed: Observed): Decision {
  const draft = draftOf(observed.app.status);
  const outcomes: Outcomes = {};
  const actions: { condition: StepCondition; action: Action }[] = [];
  const afterStatus: Action[] = [];
  for (const [condition, step] of [
    ...steps,
    ['Published', (seen: Observed, filled: Draft) => publishStep(seen, filled, outcomes)] as const,
  ]) {
    const result = step(observed, draft);
    Object.assign(outcomes, result.outcomes);
    actions.push(...(result.actions ?? []).map((action) => ({ condition, action })));
    afterStatus.push(...(result.afterStatus ?? []));
  }
  return { draft, outcomes, actions, afterStatus };
}
