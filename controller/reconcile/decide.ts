// Decides what to do about a snapshot: runs the steps in order, each on what those before it decided.
import { endPipelines, runPipelineStep } from '../steps/build/build.ts';
import { runDeployStep, keepServing } from '../steps/deploy/deploy.ts';
import { recordTaskRuns } from '../steps/deploy/task-runs.ts';
import { decideDomains } from '../steps/domains/domains.ts';
import { confirmUnrouted, runPublishStep } from '../steps/publish/publish.ts';
import { runRouteStep } from '../steps/route/route.ts';
import { runSourceStep } from '../steps/source/source.ts';
import {
  applyPatch,
  type Action,
  type Outcomes,
  type Progress,
  type StatusFields,
  type StepCondition,
  type StepResult,
} from './outcome.ts';
import type { Snapshot } from './snapshot.ts';
import { computeExpiry, pickStatusFields, type Expiry } from './status.ts';

/** Everything that a reconcile is going to do and to report. */
export interface Decision {
  /** Fields of the next status that the steps decided on. */
  readonly fields: StatusFields;
  readonly outcomes: Outcomes;
  /** Carried out in order; `condition` is where a refusal by the API server is reported. Those for domains have none. */
  readonly actions: readonly { readonly condition: StepCondition | undefined; readonly action: Action }[];
  /** Carried out once the status is written. */
  readonly afterStatus: readonly Action[];
  readonly expiry: Expiry | undefined;
  /** When to check the domains of the app again; undefined: it has none that are checked. */
  readonly domainsAfterMs?: number | undefined;
}

/**
 * The steps and what each of them waits for. A step whose turn has not come reports no outcome. Deploy and Route run for
 * the image that was built last, so the app is kept up while a newer commit is in the pipeline, or was rejected.
 */
const steps = [
  createGatedStep({
    condition: 'SourceResolved',
    findNeed: () => true,
    run: runSourceStep,
  }),
  createGatedStep({
    condition: 'Built',
    findNeed: ({ app: { spec } }, { fields }) =>
      spec.suspend || spec.control?.release !== undefined ? undefined : fields.source,
    run: runPipelineStep,
    runWithoutNeed: endPipelines,
  }),
  createGatedStep({
    condition: 'Deployed',
    findNeed: (_, { fields }) => fields.built,
    run: runDeployStep,
    runWithoutNeed: keepServing,
  }),
  createGatedStep({
    condition: 'Routed',
    findNeed: (_, { fields }) => fields.built,
    run: runRouteStep,
  }),
  createGatedStep({
    condition: 'Published',
    findNeed: (_, { outcomes }) => outcomes.Deployed?.kind === 'done' && outcomes.Routed?.kind === 'done',
    run: runPublishStep,
    runWithoutNeed: confirmUnrouted,
  }),
];

/** Pure: the snapshot is only read, and each step gets what the steps before it decided. Nothing is carried out here. */
export function decide(snapshot: Snapshot): Decision {
  let progress: Progress = { fields: pickStatusFields(snapshot.app.status), outcomes: {} };
  const actions: { condition: StepCondition | undefined; action: Action }[] = [];
  const afterStatus: Action[] = [];
  for (const { condition, run } of steps) {
    const result = run(snapshot, progress);
    progress = {
      fields: applyPatch(progress.fields, result.statusPatch),
      outcomes: { ...progress.outcomes, ...result.outcomes },
    };
    actions.push(...(result.actions ?? []).map((action) => ({ condition, action })));
    afterStatus.push(...(result.afterStatus ?? []));
  }
  const domains = decideDomains(snapshot, progress.fields);
  actions.push(...domains.actions.map((action) => ({ condition: undefined, action })));
  const fields = applyPatch(progress.fields, {
    ...recordTaskRuns(snapshot, progress.fields),
    domains: domains.statuses,
  });
  const expiry = computeExpiry(snapshot, progress.fields);
  return { ...progress, fields, actions, afterStatus, expiry, domainsAfterMs: domains.afterMs };
}

interface StepDefinition<Need> {
  /** Where a refusal of the step's actions by the API server is reported. */
  readonly condition: StepCondition;
  /** What the step waits for; undefined or false while that is missing. */
  readonly findNeed: (snapshot: Snapshot, progress: Progress) => Need | undefined | false;
  readonly run: (snapshot: Snapshot, progress: Progress, findNeed: Need) => StepResult;
  /** Runs while it is missing. */
  readonly runWithoutNeed?: (snapshot: Snapshot, progress: Progress) => StepResult;
}

interface GatedStep {
  readonly condition: StepCondition;
  readonly run: (snapshot: Snapshot, progress: Progress) => StepResult;
}

function createGatedStep<Need>({ condition, findNeed, run, runWithoutNeed }: StepDefinition<Need>): GatedStep {
  return {
    condition,
    run(snapshot, progress) {
      const need = findNeed(snapshot, progress);
      if (need !== undefined && need !== false) return run(snapshot, progress, need);
      return runWithoutNeed?.(snapshot, progress) ?? {};
    },
  };
}
