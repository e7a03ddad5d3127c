// Step Pipeline: one Job a commit and its build inputs, from the queue to an image or a refusal.
import { timestamp } from '../../objects/timestamp.ts';
import { annotations } from '../../../crds/names.ts';
import { RepositoryError } from '../../../lib/repository.ts';
import { faultDelayMs, faultsOf, isDoubted, isRecorded, nextNumber, numberOf, record } from './history.ts';
import { podApp, settingsOf, recordSettings } from './app-manifest.ts';
import { recordOwnership } from './ownership.ts';
import { buildInputs, inputsOf, jobName, whyBuilt, type BuildInputs } from './inputs.ts';
import { imageName, pipelineJob } from './job.ts';
import { oldJobs, remove, removeStranger, supersede } from './obsolete-jobs.ts';
import { beforeReview, givenUp, inProgress, passed, queued, standing } from './outcomes.ts';
import { approvalRule } from '../../pipeline/contract.ts';
import { judge, newestOf, readReview, type ReviewReport, type Verdict } from './verdict.ts';
import { isJobOf, jobs as jobResource, type Job } from '../../objects/kinds.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { present } from '../../objects/present.ts';
import { sourceIdentity } from '../source/source.ts';
import {
  failed,
  short,
  stalled,
  waiting,
  type Draft,
  type Outcomes,
  type StepResult,
} from '../../reconcile/outcome.ts';

/** What the newest commit asks for. */
interface WantedBuild {
  readonly commit: string;
  readonly inputs: BuildInputs;
  readonly name: string;
}

export function pipelineStep(all: Snapshot, draft: Draft): StepResult {
  const { app } = all;
  const isOwn = (job: Job): boolean => isJobOf(job, app.metadata.uid);
  const snapshot = { ...all, jobs: all.jobs.filter(isOwn) };
  recordAttempt(snapshot, draft);
  if (app.spec.suspend)
    return { outcomes: suspended(draft), afterStatus: supersede(snapshot, draft, undefined, 'the app was suspended') };
  if (draft.source === undefined) return { outcomes: {} };
  const { commit } = draft.source;
  const wanted = afterReview(snapshot, draft, wantedOf(snapshot, draft, commit));
  const { inputs } = wanted;
  const superseded = supersede(snapshot, draft, wanted.name, `superseded by commit ${short(commit)}`);
  if (draft.built?.commit === commit && draft.built.inputsHash === inputs.hash) {
    return { outcomes: standing(draft, commit), afterStatus: [...superseded, ...oldJobs(snapshot, wanted.name)] };
  }
  const stranger = all.jobs.find((job) => !isOwn(job) && job.metadata.name === wanted.name);
  const result = stranger === undefined ? pursue(snapshot, draft, wanted) : makeWay(stranger);
  return { ...result, afterStatus: [...superseded, ...(result.afterStatus ?? []), ...oldJobs(snapshot, wanted.name)] };
}

/** The rebuild that the status reflects from here on, so that an old verdict is not taken for a new one. */
function recordAttempt({ app }: Snapshot, draft: Draft): void {
  const attempt = app.metadata.annotations?.[annotations.rebuild];
  if (attempt === undefined) delete draft.attempt;
  else draft.attempt = attempt.slice(0, 100);
}

function wantedOf({ app }: Snapshot, draft: Draft, commit: string): WantedBuild {
  const inputs = buildInputs(podApp(app, draft, commit));
  return { commit, inputs, name: jobName(app.metadata.name, commit, inputs.hash) };
}

/**
 * Once the review has read moorage.yaml: the same pipeline, or another one where the file asks for other limits of the
 * build.
 */
function afterReview(snapshot: Snapshot, draft: Draft, wanted: WantedBuild): WantedBuild {
  const job = snapshot.jobs.find((candidate) => candidate.metadata.name === wanted.name);
  const review = job === undefined ? undefined : readReview(newestOf(podsOf(snapshot, job)));
  if (review === undefined) return wanted;
  recordSettings(snapshot.app, draft, wanted.commit, review);
  recordOwnership(snapshot, draft, review);
  return wantedOf(snapshot, draft, wanted.commit);
}

function pursue(snapshot: Snapshot, draft: Draft, wanted: WantedBuild): StepResult {
  const job = snapshot.jobs.find((candidate) => candidate.metadata.name === wanted.name);
  if (job === undefined) return start(snapshot, draft, wanted);
  if (job.metadata.deletionTimestamp !== undefined)
    return { outcomes: beforeReview('Starting', 'The previous Job of this commit is being deleted.') };
  const verdict = judge(job, podsOf(snapshot, job), imageName(snapshot.config, snapshot.app));
  recordPipeline(snapshot, draft, job, verdict);
  return conclude(snapshot, draft, wanted, job, verdict);
}

function makeWay(stranger: Job): StepResult {
  const isLeaving = stranger.metadata.deletionTimestamp !== undefined;
  return {
    outcomes: beforeReview('Starting', 'A Job of an earlier app with this name is being deleted.'),
    afterStatus: isLeaving ? [] : [removeStranger(stranger)],
  };
}

function start(snapshot: Snapshot, draft: Draft, wanted: WantedBuild): StepResult {
  const { repository } = snapshot;
  if (repository instanceof RepositoryError)
    return { outcomes: beforeReview('Resolving', 'The repository is refused; see the condition SourceResolved.') };
  if (isSubmittedAgain(snapshot, draft))
    return {
      outcomes: beforeReview('Resolving', 'Submitted again; resolving the newest commit first.'),
    };
  const history = draft.history ?? [];
  const faults = faultsOf(history, wanted.name);
  const { faultLimit } = snapshot.config.pipeline;
  if (faults.length >= faultLimit) return { outcomes: givenUp(faults) };
  const number = numberFor(snapshot, draft, wanted.name);
  const reason = whyBuilt({
    commit: wanted.commit,
    inputs: wanted.inputs.each,
    previous: previousOf(snapshot, draft),
    faults: faults.length,
    faultLimit,
  });
  const asked =
    draft.pipeline?.job === wanted.name && draft.pipeline.number === number ? draft.pipeline.stageSince : undefined;
  draft.pipeline = { job: wanted.name, number, reason, stage: 'Queued', stageSince: asked ?? timestamp(snapshot.now) };
  delete draft.findings;
  const manifest = pipelineJob(podApp(snapshot.app, draft, wanted.commit), snapshot.config, {
    ...wanted,
    repository,
    number,
    reason,
    queuedAt: snapshot.now,
    doubted: isDoubted(history, wanted.commit),
  });
  return {
    outcomes: beforeReview('Queued', `Pipeline ${number} of commit ${short(wanted.commit)} is queued: ${reason}.`),
    actions: [{ kind: 'create', resource: jobResource, manifest }],
  };
}

/** A poll and a rebuild asked for in one: what is built is the commit that the poll finds. */
function isSubmittedAgain({ app }: Snapshot, draft: Draft): boolean {
  const { [annotations.poll]: poll, [annotations.rebuild]: rebuild } = app.metadata.annotations ?? {};
  return rebuild !== undefined && poll === rebuild && draft.source?.polledFor !== sourceIdentity(app);
}

/** The same number while the cache has not caught up with a Job that was made already. */
function numberFor(snapshot: Snapshot, draft: Draft, name: string): number {
  const history = draft.history ?? [];
  const reported = draft.pipeline?.job === name ? draft.pipeline.number : undefined;
  const pending = reported !== undefined && !history.some((entry) => entry.number === reported);
  return pending ? reported : nextNumber(history, snapshot.jobs, draft.pipeline?.number);
}

function previousOf(
  snapshot: Snapshot,
  draft: Draft,
): { commit: string | undefined; inputs: ReturnType<typeof inputsOf> } | undefined {
  const newest = snapshot.jobs.toSorted((a, b) => numberOf(b) - numberOf(a))[0];
  if (newest !== undefined)
    return { commit: newest.metadata.annotations?.[annotations.commit], inputs: inputsOf(newest) };
  const last = draft.history?.[0];
  return last === undefined ? undefined : { commit: last.commit, inputs: undefined };
}

function conclude(snapshot: Snapshot, draft: Draft, wanted: WantedBuild, job: Job, verdict: Verdict): StepResult {
  switch (verdict.kind) {
    case 'queued':
      return {
        outcomes: queued(job, {
          commit: wanted.commit,
          position: draft.pipeline?.position,
          noRoom: verdict.noRoom,
          shortage: snapshot.shortage,
        }),
      };
    case 'running':
      return { outcomes: inProgress(verdict, wanted.commit) };
    case 'succeeded':
      return succeeded(snapshot, draft, wanted, job, verdict);
    case 'rejected':
      return rejected(snapshot, draft, job, verdict);
    case 'faulted':
      return faulted(snapshot, draft, job, verdict);
  }
}

function succeeded(
  snapshot: Snapshot,
  draft: Draft,
  wanted: WantedBuild,
  job: Job,
  verdict: Verdict & { kind: 'succeeded' },
): StepResult {
  const { image, port, findings } = verdict.result;
  draft.built = present({
    image,
    commit: wanted.commit,
    inputsHash: wanted.inputs.hash,
    port,
    settings: settingsOf(draft, wanted.commit),
    attempt: draft.attempt,
  });
  recordReview(draft, verdict.review);
  draft.findings = [...(draft.findings ?? []), ...findings].slice(0, 50);
  draft.history = record(draft.history ?? [], job, snapshot.now, { result: 'Succeeded', image });
  return { outcomes: standing(draft, wanted.commit) };
}

function rejected(snapshot: Snapshot, draft: Draft, job: Job, verdict: Verdict & { kind: 'rejected' }): StepResult {
  const { rejection, stage } = verdict;
  if (!isRecorded(draft.history ?? [], job))
    draft.findings = [...(verdict.review?.findings ?? draft.findings ?? []), ...verdict.findings].slice(0, 50);
  draft.history = record(draft.history ?? [], job, snapshot.now, {
    result: 'Rejected',
    message: `${rejection.rule}: ${rejection.message}`,
  });
  if (stage === 'Review')
    return {
      outcomes: {
        Reviewed: stalled(rejection.rule === approvalRule ? 'ApprovalNeeded' : 'ReviewRejected', rejection),
        Built: waiting('NotReached', 'The review rejected this commit, so it is not built.'),
      },
    };
  const reason = rejection.rule === 'build/timeout' ? 'BuildTimedOut' : 'BuildRejected';
  return { outcomes: { ...reviewOf(snapshot, job, verdict), Built: stalled(reason, rejection) } };
}

/** The Job is kept until the wait is over, with its pods, so that what happened can be looked at. */
function faulted(snapshot: Snapshot, draft: Draft, job: Job, verdict: Verdict & { kind: 'faulted' }): StepResult {
  const { message, doubtful } = verdict;
  const wasRecorded = isRecorded(draft.history ?? [], job);
  draft.history = record(draft.history ?? [], job, snapshot.now, { result: 'Faulted', message, doubtful });
  const faults = faultsOf(draft.history, job.metadata.name);
  if (faults.length >= snapshot.config.pipeline.faultLimit) return { outcomes: givenUp(faults) };
  const review = reviewOf(snapshot, job, verdict);
  const endedAt = Date.parse(faults[0]?.finishedAt ?? timestamp(snapshot.now));
  const dueIn = endedAt + faultDelayMs(faults.length) - snapshot.now.getTime();
  const outcome = failed(
    'PipelineFaulted',
    `${message.replace(/[^.!?…]$/, '$&.')} It is retried automatically.`,
    Math.max(dueIn, 0),
  );
  return { outcomes: { ...review, Built: outcome }, afterStatus: dueIn <= 0 && wasRecorded ? [remove(job)] : [] };
}

/** How the review went: as its pod says, or as it was reported before the pod was removed. */
function reviewOf(snapshot: Snapshot, job: Job, verdict: Verdict): Outcomes {
  if (verdict.review !== undefined) return { Reviewed: passed(verdict.review.findings.length) };
  const { pipeline, conditions = [], findings = [] } = snapshot.app.status ?? {};
  const wasPassed =
    pipeline?.job === job.metadata.name &&
    conditions.some(({ type, status }) => type === 'Reviewed' && status === 'True');
  return wasPassed ? { Reviewed: passed(findings.length) } : {};
}

function suspended(draft: Draft): Outcomes {
  delete draft.pipeline;
  return draft.built === undefined ? {} : standing(draft, draft.built.commit);
}

function recordPipeline(snapshot: Snapshot, draft: Draft, job: Job, verdict: Verdict): void {
  const index = snapshot.queue.indexOf(job.metadata.name);
  const reason = job.metadata.annotations?.[annotations.reason];
  draft.pipeline = {
    job: job.metadata.name,
    number: numberOf(job),
    ...(verdict.pod === undefined ? {} : { pod: verdict.pod }),
    ...(reason === undefined ? {} : { reason }),
    ...stageOf(job, verdict),
    ...(verdict.kind === 'queued' && index >= 0 ? { position: index + 1 } : {}),
  };
  if (verdict.kind === 'running') recordReview(draft, verdict.review);
}

function stageOf(job: Job, verdict: Verdict): { stage?: 'Queued' | 'Clone' | 'Review' | 'Build'; stageSince?: string } {
  if (verdict.kind === 'queued') return { stage: 'Queued', stageSince: job.metadata.creationTimestamp };
  if (verdict.kind !== 'running') return {};
  return { stage: verdict.stage, ...(verdict.since === undefined ? {} : { stageSince: verdict.since }) };
}

function recordReview(draft: Draft, review: ReviewReport | undefined): void {
  if (review === undefined) return;
  draft.findings = review.findings.slice(0, 50);
  draft.plan = review.plan;
}

/** The pods of a Job. */
export function podsOf(snapshot: Pick<Snapshot, 'pipelinePods'>, job: Job): Snapshot['pipelinePods'] {
  return snapshot.pipelinePods.filter((pod) =>
    (pod.metadata.ownerReferences ?? []).some((owner) => owner.uid === job.metadata.uid),
  );
}
