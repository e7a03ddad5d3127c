// Step Pipeline: one Job a commit and its build inputs, from the queue to an image or a refusal.
import type { HistoryEntry } from '../../../crds/hosted-app.ts';
import { annotations } from '../../../crds/names.ts';
import { RepositoryError } from '../../../lib/repository.ts';
import { present } from '../../../lib/values.ts';
import { computeRetryTime, explainNoRoom, readNoRoom } from '../../build-queue/order.ts';
import { isJobOfApp, jobs as jobResource, type Job } from '../../objects/kinds.ts';
import { formatTimestamp } from '../../objects/values.ts';
import { approvalRule } from '../../pipeline/contract.ts';
import { done, failed, shortenCommit, stalled, waiting, type Draft, type Outcomes, type ReasonOf, type StepResult } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { identifySource } from '../source/source.ts';
import { buildPipelineJob, explainBuild, formatImageName, formatJobName, hashBuildInputs, readInputs, type BuildInputs } from './job.ts';
import { chooseNextNumber, computeFaultDelayMs, findSettings, isDoubted, isRecorded, listFaults, readNumber, recordBuild, recordOwnership, recordSettings, removeJob, removeOldJobs, removeStranger, resolvePodApp, supersede } from './records.ts';
import { findNewest, judgePipeline, readReview, type ReviewReport, type Verdict } from './verdict.ts';

/** What the newest commit asks for. */
interface WantedBuild {
  readonly commit: string;
  readonly inputs: BuildInputs;
  readonly name: string;
}

export function pipelineStep(all: Snapshot, draft: Draft): StepResult {
  const { app } = all;
  const isOwn = (job: Job): boolean => isJobOfApp(job, app.metadata.uid);
  const snapshot = { ...all, jobs: all.jobs.filter(isOwn) };
  recordAttempt(snapshot, draft);
  if (app.spec.suspend)
    return { outcomes: suspended(draft), afterStatus: supersede(snapshot, draft, undefined, 'the app was suspended') };
  if (draft.source === undefined) return { outcomes: {} };
  const { commit } = draft.source;
  const wanted = afterReview(snapshot, draft, identifyBuild(snapshot, draft, commit));
  const { inputs } = wanted;
  const superseded = supersede(snapshot, draft, wanted.name, `superseded by commit ${shortenCommit(commit)}`);
  if (draft.built?.commit === commit && draft.built.inputsHash === inputs.hash) {
    return {
      outcomes: reportBuilt(draft, commit),
      afterStatus: [...superseded, ...removeOldJobs(snapshot, wanted.name)],
    };
  }
  const stranger = all.jobs.find((job) => !isOwn(job) && job.metadata.name === wanted.name);
  const result = stranger === undefined ? pursue(snapshot, draft, wanted) : makeWay(stranger);
  return {
    ...result,
    afterStatus: [...superseded, ...(result.afterStatus ?? []), ...removeOldJobs(snapshot, wanted.name)],
  };
}

/** The rebuild that the status reflects from here on, so that an old verdict is not taken for a new one. */
function recordAttempt({ app }: Snapshot, draft: Draft): void {
  const attempt = app.metadata.annotations?.[annotations.rebuild];
  if (attempt === undefined) delete draft.attempt;
  else draft.attempt = attempt.slice(0, 100);
}

function identifyBuild({ app }: Snapshot, draft: Draft, commit: string): WantedBuild {
  const inputs = hashBuildInputs(resolvePodApp(app, draft, commit));
  return { commit, inputs, name: formatJobName(app.metadata.name, commit, inputs.hash) };
}

/**
 * Once the review has read moorage.yaml: the same pipeline, or another one where the file asks for other limits of the
 * build.
 */
function afterReview(snapshot: Snapshot, draft: Draft, wanted: WantedBuild): WantedBuild {
  const job = snapshot.jobs.find((candidate) => candidate.metadata.name === wanted.name);
  const review = job === undefined ? undefined : readReview(findNewest(listPods(snapshot, job)));
  if (review === undefined) return wanted;
  recordSettings(snapshot.app, draft, wanted.commit, review);
  recordOwnership(snapshot, draft, review);
  return identifyBuild(snapshot, draft, wanted.commit);
}

function pursue(snapshot: Snapshot, draft: Draft, wanted: WantedBuild): StepResult {
  const job = snapshot.jobs.find((candidate) => candidate.metadata.name === wanted.name);
  if (job === undefined) return start(snapshot, draft, wanted);
  if (job.metadata.deletionTimestamp !== undefined)
    return { outcomes: reportBeforeReview('Starting', 'The previous Job of this commit is being deleted.') };
  const verdict = judgePipeline(job, listPods(snapshot, job), formatImageName(snapshot.config, snapshot.app));
  recordPipeline(snapshot, draft, job, verdict);
  return conclude(snapshot, draft, wanted, job, verdict);
}

function makeWay(stranger: Job): StepResult {
  const isLeaving = stranger.metadata.deletionTimestamp !== undefined;
  return {
    outcomes: reportBeforeReview('Starting', 'A Job of an earlier app with this name is being deleted.'),
    afterStatus: isLeaving ? [] : [removeStranger(stranger)],
  };
}

function start(snapshot: Snapshot, draft: Draft, wanted: WantedBuild): StepResult {
  const { repository } = snapshot;
  if (repository instanceof RepositoryError)
    return {
      outcomes: reportBeforeReview('Resolving', 'The repository is refused; see the condition SourceResolved.'),
    };
  if (isSubmittedAgain(snapshot, draft))
    return {
      outcomes: reportBeforeReview('Resolving', 'Submitted again; resolving the newest commit first.'),
    };
  const history = draft.history ?? [];
  const faults = listFaults(history, wanted.name);
  const { faultLimit } = snapshot.config.pipeline;
  if (faults.length >= faultLimit) return { outcomes: reportGivenUp(faults) };
  const number = chooseNumber(snapshot, draft, wanted.name);
  const reason = explainBuild({
    commit: wanted.commit,
    inputs: wanted.inputs.each,
    previous: findPrevious(snapshot, draft),
    faults: faults.length,
    faultLimit,
  });
  const asked =
    draft.pipeline?.job === wanted.name && draft.pipeline.number === number ? draft.pipeline.stageSince : undefined;
  draft.pipeline = {
    job: wanted.name,
    number,
    reason,
    stage: 'Queued',
    stageSince: asked ?? formatTimestamp(snapshot.now),
  };
  delete draft.findings;
  const manifest = buildPipelineJob(resolvePodApp(snapshot.app, draft, wanted.commit), snapshot.config, {
    ...wanted,
    repository,
    number,
    reason,
    queuedAt: snapshot.now,
    doubted: isDoubted(history, wanted.commit),
  });
  return {
    outcomes: reportBeforeReview(
      'Queued',
      `Pipeline ${number} of commit ${shortenCommit(wanted.commit)} is queued: ${reason}.`,
    ),
    actions: [{ kind: 'create', resource: jobResource, manifest }],
  };
}

/** A poll and a rebuild asked for in one: what is built is the commit that the poll finds. */
function isSubmittedAgain({ app }: Snapshot, draft: Draft): boolean {
  const { [annotations.poll]: poll, [annotations.rebuild]: rebuild } = app.metadata.annotations ?? {};
  return rebuild !== undefined && poll === rebuild && draft.source?.polledFor !== identifySource(app);
}

/** The same number while the cache has not caught up with a Job that was made already. */
function chooseNumber(snapshot: Snapshot, draft: Draft, name: string): number {
  const history = draft.history ?? [];
  const reported = draft.pipeline?.job === name ? draft.pipeline.number : undefined;
  const pending = reported !== undefined && !history.some((entry) => entry.number === reported);
  return pending ? reported : chooseNextNumber(history, snapshot.jobs, draft.pipeline?.number);
}

function findPrevious(
  snapshot: Snapshot,
  draft: Draft,
): { commit: string | undefined; inputs: ReturnType<typeof readInputs> } | undefined {
  const newest = snapshot.jobs.toSorted((a, b) => readNumber(b) - readNumber(a))[0];
  if (newest !== undefined)
    return { commit: newest.metadata.annotations?.[annotations.commit], inputs: readInputs(newest) };
  const last = draft.history?.[0];
  return last === undefined ? undefined : { commit: last.commit, inputs: undefined };
}

function conclude(snapshot: Snapshot, draft: Draft, wanted: WantedBuild, job: Job, verdict: Verdict): StepResult {
  switch (verdict.kind) {
    case 'queued':
      return {
        outcomes: reportQueued(job, {
          commit: wanted.commit,
          position: draft.pipeline?.position,
          noRoom: verdict.noRoom,
          shortage: snapshot.shortage,
        }),
      };
    case 'running':
      return { outcomes: reportProgress(verdict, wanted.commit) };
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
    settings: findSettings(draft, wanted.commit),
    attempt: draft.attempt,
  });
  recordReview(draft, verdict.review);
  draft.findings = [...(draft.findings ?? []), ...findings].slice(0, 50);
  draft.history = recordBuild(draft.history ?? [], job, snapshot.now, { result: 'Succeeded', image });
  return { outcomes: reportBuilt(draft, wanted.commit) };
}

function rejected(snapshot: Snapshot, draft: Draft, job: Job, verdict: Verdict & { kind: 'rejected' }): StepResult {
  const { rejection, stage } = verdict;
  if (!isRecorded(draft.history ?? [], job))
    draft.findings = [...(verdict.review?.findings ?? draft.findings ?? []), ...verdict.findings].slice(0, 50);
  draft.history = recordBuild(draft.history ?? [], job, snapshot.now, {
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
  return { outcomes: { ...reportReview(snapshot, job, verdict), Built: stalled(reason, rejection) } };
}

/** The Job is kept until the wait is over, with its pods, so that what happened can be looked at. */
function faulted(snapshot: Snapshot, draft: Draft, job: Job, verdict: Verdict & { kind: 'faulted' }): StepResult {
  const { message, doubtful } = verdict;
  const wasRecorded = isRecorded(draft.history ?? [], job);
  draft.history = recordBuild(draft.history ?? [], job, snapshot.now, { result: 'Faulted', message, doubtful });
  const faults = listFaults(draft.history, job.metadata.name);
  if (faults.length >= snapshot.config.pipeline.faultLimit) return { outcomes: reportGivenUp(faults) };
  const review = reportReview(snapshot, job, verdict);
  const endedAt = Date.parse(faults[0]?.finishedAt ?? formatTimestamp(snapshot.now));
  const dueIn = endedAt + computeFaultDelayMs(faults.length) - snapshot.now.getTime();
  const outcome = failed(
    'PipelineFaulted',
    `${message.replace(/[^.!?…]$/, '$&.')} It is retried automatically.`,
    Math.max(dueIn, 0),
  );
  return { outcomes: { ...review, Built: outcome }, afterStatus: dueIn <= 0 && wasRecorded ? [removeJob(job)] : [] };
}

/** How the review went: as its pod says, or as it was reported before the pod was removed. */
function reportReview(snapshot: Snapshot, job: Job, verdict: Verdict): Outcomes {
  if (verdict.review !== undefined) return { Reviewed: reportPassed(verdict.review.findings.length) };
  const { pipeline, conditions = [], findings = [] } = snapshot.app.status ?? {};
  const wasPassed =
    pipeline?.job === job.metadata.name &&
    conditions.some(({ type, status }) => type === 'Reviewed' && status === 'True');
  return wasPassed ? { Reviewed: reportPassed(findings.length) } : {};
}

function suspended(draft: Draft): Outcomes {
  delete draft.pipeline;
  return draft.built === undefined ? {} : reportBuilt(draft, draft.built.commit);
}

function recordPipeline(snapshot: Snapshot, draft: Draft, job: Job, verdict: Verdict): void {
  const index = snapshot.queue.indexOf(job.metadata.name);
  const reason = job.metadata.annotations?.[annotations.reason];
  draft.pipeline = {
    job: job.metadata.name,
    number: readNumber(job),
    ...(verdict.pod === undefined ? {} : { pod: verdict.pod }),
    ...(reason === undefined ? {} : { reason }),
    ...readStage(job, verdict),
    ...(verdict.kind === 'queued' && index >= 0 ? { position: index + 1 } : {}),
  };
  if (verdict.kind === 'running') recordReview(draft, verdict.review);
}

function readStage(
  job: Job,
  verdict: Verdict,
): { stage?: 'Queued' | 'Clone' | 'Review' | 'Build'; stageSince?: string } {
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
export function listPods(snapshot: Pick<Snapshot, 'pipelinePods'>, job: Job): Snapshot['pipelinePods'] {
  return snapshot.pipelinePods.filter((pod) =>
    (pod.metadata.ownerReferences ?? []).some((owner) => owner.uid === job.metadata.uid),
  );
}

// How the conditions Reviewed and Built stand, in words, from the queue to an image.

export function reportGivenUp(faults: readonly HistoryEntry[]): Outcomes {
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
export function reportBuilt(draft: Draft, commit: string): Outcomes {
  const warnings = (draft.findings ?? []).length;
  return {
    Reviewed: reportPassed(warnings),
    Built: done('Built', `Built commit ${shortenCommit(commit)}: ${draft.built?.image.split('/').at(-1) ?? ''}.`),
  };
}

export function reportPassed(warnings: number): ReturnType<typeof done> {
  return done(
    'ReviewPassed',
    warnings === 0
      ? 'The review found no problems.'
      : `Passed with ${warnings} warning${warnings === 1 ? '' : 's'}; see status.findings.`,
  );
}

export function reportProgress(verdict: Verdict & { kind: 'running' }, commit: string): Outcomes {
  const trouble = verdict.trouble === undefined ? '' : ` ${verdict.trouble}`;
  if (verdict.stage !== 'Build') {
    const reviewed =
      verdict.stage === 'Clone'
        ? waiting('Cloning', `Commit ${shortenCommit(commit)} is being cloned.${trouble}`)
        : waiting('Reviewing', `Commit ${shortenCommit(commit)} is being reviewed.${trouble}`);
    return { Reviewed: reviewed, Built: waiting('NotReached', 'Waiting for the review.') };
  }
  return {
    Reviewed: reportPassed(verdict.review?.findings.length ?? 0),
    Built: waiting('Building', `Commit ${shortenCommit(commit)} is being built.${trouble}`),
  };
}

export function reportBeforeReview(reason: ReasonOf<'waiting'>, message: string): Outcomes {
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

export function reportQueued(job: Job, { commit, position, noRoom, shortage }: Wait): Outcomes {
  const where = `Commit ${shortenCommit(commit)} is queued at position ${position ?? '?'}`;
  if (shortage !== undefined && job.spec?.suspend === true)
    return reportBeforeReview('WaitingForSpace', `Waiting for disk space: ${shortage} ${where}.`);
  if (noRoom !== undefined)
    return reportBeforeReview(
      'WaitingForRoom',
      `${explainNoRoom(noRoom)} Commit ${shortenCommit(commit)} is the next to start.`,
    );
  const found = readNoRoom(job);
  if (found === undefined) return reportBeforeReview('Queued', `${where}.`);
  return reportBeforeReview(
    'WaitingForRoom',
    `${explainNoRoom(found.reason)} Commit ${shortenCommit(commit)} is queued again, at position ${position ?? '?'}, and tried from ${formatTimestamp(new Date(computeRetryTime(found)))} on.`,
  );
}
