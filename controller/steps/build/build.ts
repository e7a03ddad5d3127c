// Step Build: one pipeline Job per commit and build inputs, from the queue to an image or a rejection.
import type { HistoryEntry } from '../../../crds/hosted-app.ts';
import { annotations, parseRebuildRequest } from '../../../crds/names.ts';
import type { ComponentImage } from '../../../crds/status.ts';
import { RepositoryError } from '../../../lib/repository.ts';
import { omitUndefined } from '../../../lib/values.ts';
import { computeRetryTime, explainNoRoom, isPodOfJob, readNoRoom } from '../../build-queue/build-queue.ts';
import { isJobOfApp, jobs as jobResource, type Job, formatTimestamp, secrets } from '../../objects/kinds.ts';
import { approvalRule } from '../../pipeline/contract.ts';
import {
  type Action,
  applyPatch,
  createDoneOutcome,
  createFailedOutcome,
  shortenCommit,
  createStalledOutcome,
  createWaitingOutcome,
  type Outcomes,
  type Progress,
  type ReasonOf,
  type StatusFields,
  type StatusPatch,
  type StepResult,
} from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { findPreparedImage, judgePreparation } from '../prepared-images.ts';
import { identifySource } from '../source/source.ts';
import { selectPinnedRelease, takeKeptBuild } from './kept-build.ts';
import {
  buildDeployKeySecret,
  buildPipelineJob,
  explainBuild,
  formatImageName,
  formatJobName,
  hashBuildInputs,
  readInputs,
  type BuildInputs,
} from './job.ts';
import {
  applySettings,
  chooseNextNumber,
  computeFaultDelayMs,
  findSettings,
  hasDoubtfulFault,
  isRecorded,
  listFaults,
  readNumber,
  recordBuild,
  recordOwnership,
  recordSettings,
  removeJob,
  removeOldJobs,
  removeStranger,
  resolvePodApp,
  selectComponentImages,
  supersede,
} from './records.ts';
import { findNewest, judgePipeline, readReview, type ReviewReport, type Verdict } from './verdict.ts';

/** The build that the newest commit asks for. */
interface WantedBuild {
  readonly commit: string;
  readonly inputs: BuildInputs;
  /** Of its Job. */
  readonly name: string;
}

/** Findings kept in the status. */
const maximumFindings = 50;

/** @param source the commit that the repository is at */
export function runPipelineStep(
  fullSnapshot: Snapshot,
  { fields: before }: Progress,
  { commit }: NonNullable<StatusFields['source']>,
): StepResult {
  const snapshot = selectOwnJobs(fullSnapshot);
  const reviewed: StatusPatch = { attempt: readAttempt(fullSnapshot), ...readReviewPatch(snapshot, before, commit) };
  const wantedBuild = identifyBuild(snapshot, applyPatch(before, reviewed), commit);
  const { name, inputs } = wantedBuild;
  const superseded = supersede(snapshot, before.history, name, `superseded by commit ${shortenCommit(commit)}`);
  const patch: StatusPatch = { ...reviewed, history: superseded.history, neededImages: undefined };
  const fields = applyPatch(before, patch);
  const isBuilt = fields.built?.commit === commit && fields.built.inputsHash === inputs.hash;
  const stranger = fullSnapshot.jobs.find(
    (job) => job.metadata.name === name && !isJobOfApp(job, fullSnapshot.app.metadata.uid),
  );
  const kept = isBuilt ? undefined : takeKeptBuild(snapshot, fields, wantedBuild);
  const result: StepResult =
    isBuilt || kept !== undefined
      ? { outcomes: reportBuilt(applyPatch(fields, kept), commit), statusPatch: kept ?? {} }
      : stranger === undefined
        ? continueBuild(snapshot, fields, wantedBuild)
        : removeEarlierJob(stranger);
  return {
    ...result,
    statusPatch: { ...patch, ...result.statusPatch },
    afterStatus: [...superseded.actions, ...(result.afterStatus ?? []), ...removeOldJobs(snapshot, name)],
  };
}

/**
 * Without a commit there is nothing to build. An app that is suspended or runs a pinned release keeps its image, and its
 * pipelines are ended.
 */
export function endPipelines(fullSnapshot: Snapshot, { fields }: Progress): StepResult {
  const attempt = readAttempt(fullSnapshot);
  const { suspend, control } = fullSnapshot.app.spec;
  const pinned = control?.release;
  if (!suspend && pinned === undefined) return { statusPatch: { attempt, neededImages: undefined } };
  const { history, actions } = supersede(
    selectOwnJobs(fullSnapshot),
    fields.history,
    undefined,
    pinned === undefined ? 'the app was suspended' : `commit ${shortenCommit(pinned)} was pinned`,
  );
  const patch: StatusPatch = { attempt, pipeline: undefined, history, neededImages: undefined };
  if (pinned !== undefined) {
    const result = selectPinnedRelease(fullSnapshot, applyPatch(fields, patch), pinned);
    return { ...result, statusPatch: { ...patch, ...result.statusPatch }, afterStatus: actions };
  }
  return {
    outcomes: fields.built === undefined ? {} : reportBuilt(fields, fields.built.commit),
    statusPatch: patch,
    afterStatus: actions,
  };
}

function selectOwnJobs(snapshot: Snapshot): Snapshot {
  return { ...snapshot, jobs: snapshot.jobs.filter((job) => isJobOfApp(job, snapshot.app.metadata.uid)) };
}

/** The rebuild that the status reflects from here on, so that an old verdict is not read as a new one. */
function readAttempt({ app }: Snapshot): string | undefined {
  return app.metadata.annotations?.[annotations.rebuild]?.slice(0, 100);
}

function identifyBuild({ app }: Snapshot, fields: StatusFields, commit: string): WantedBuild {
  const inputs = hashBuildInputs(resolvePodApp(app, fields, commit));
  return { commit, inputs, name: formatJobName(app.metadata.name, commit, inputs.hash) };
}

/**
 * What the review of the commit reported, once it has read moorage.yaml. The build may then be another one: the file can
 * ask for other limits of the build.
 */
function readReviewPatch(snapshot: Snapshot, fields: StatusFields, commit: string): StatusPatch {
  const { name } = identifyBuild(snapshot, fields, commit);
  const job = snapshot.jobs.find((candidate) => candidate.metadata.name === name);
  const review = job === undefined ? undefined : readReview(findNewest(listPods(snapshot, job)));
  if (review === undefined) return {};
  return { ...recordSettings(snapshot.app, commit, review), ...recordOwnership(snapshot, fields, review) };
}

function continueBuild(snapshot: Snapshot, fields: StatusFields, wantedBuild: WantedBuild): StepResult {
  const job = snapshot.jobs.find((candidate) => candidate.metadata.name === wantedBuild.name);
  if (job === undefined) return startPipeline(snapshot, fields, wantedBuild);
  if (job.metadata.deletionTimestamp !== undefined)
    return { outcomes: reportBeforeReview('Starting', 'The previous Job of this commit is being deleted.') };
  const verdict = judgePipeline(job, listPods(snapshot, job), formatImageName(snapshot.config, snapshot.app));
  const patch = recordPipeline(snapshot, job, verdict);
  const result = concludeBuild(snapshot, applyPatch(fields, patch), wantedBuild, job, verdict);
  return {
    ...result,
    statusPatch: { ...patch, ...result.statusPatch },
    actions: giveDeployKey(snapshot, job, verdict),
  };
}

/** The Secret that the clone of a private repository waits for. Its owner is the Job, so it is created after it. */
function giveDeployKey({ config, repository }: Snapshot, job: Job, verdict: Verdict): readonly Action[] {
  const isNeeded = verdict.kind === 'queued' || (verdict.kind === 'running' && verdict.stage === 'Clone');
  if (!isNeeded || repository instanceof RepositoryError) return [];
  const manifest = buildDeployKeySecret(job, repository, config);
  return manifest === undefined ? [] : [{ kind: 'create', resource: secrets, manifest }];
}

function removeEarlierJob(stranger: Job): StepResult {
  const isLeaving = stranger.metadata.deletionTimestamp !== undefined;
  return {
    outcomes: reportBeforeReview('Starting', 'A Job of an earlier app with this name is being deleted.'),
    afterStatus: isLeaving ? [] : [removeStranger(stranger)],
  };
}

function startPipeline(snapshot: Snapshot, fields: StatusFields, wantedBuild: WantedBuild): StepResult {
  const { repository } = snapshot;
  if (repository instanceof RepositoryError)
    return {
      outcomes: reportBeforeReview('Resolving', 'The repository is refused; see the condition SourceResolved.'),
    };
  if (isSubmittedAgain(snapshot, fields))
    return { outcomes: reportBeforeReview('Resolving', 'Submitted again; resolving the newest commit first.') };
  const history = fields.history ?? [];
  const faults = listFaults(history, wantedBuild.name);
  const { faultLimit } = snapshot.config.pipeline;
  if (faults.length >= faultLimit) return { outcomes: reportGivenUp(faults) };
  const number = chooseNumber(snapshot, fields, wantedBuild.name);
  const isRequested = fields.pipeline?.job === wantedBuild.name && fields.pipeline.number === number;
  const reason = explainBuild({
    commit: wantedBuild.commit,
    inputs: wantedBuild.inputs.each,
    previous: findPrevious(snapshot, history),
    faults: faults.length,
    faultLimit,
    preparedImage: isRequested ? findPreparedImage(snapshot.app) : undefined,
  });
  const stageSince = (isRequested ? fields.pipeline?.stageSince : undefined) ?? formatTimestamp(snapshot.now);
  const manifest = buildPipelineJob(resolvePodApp(snapshot.app, fields, wantedBuild.commit), snapshot.config, {
    ...wantedBuild,
    ...offerBuiltImages(fields),
    noCache: shouldIgnoreCache(fields),
    repository,
    number,
    reason,
    queuedAt: snapshot.now,
    doubted: hasDoubtfulFault(history, wantedBuild.commit),
  });
  const message = `Pipeline ${number} of commit ${shortenCommit(wantedBuild.commit)} is queued: ${reason}.`;
  return {
    outcomes: reportBeforeReview('Queued', message),
    statusPatch: {
      pipeline: { job: wantedBuild.name, number, reason, stage: 'Queued', stageSince },
      findings: undefined,
    },
    actions: [{ kind: 'create', resource: jobResource, manifest }],
  };
}

/** Offers the images of the last build for reuse, unless a rebuild was requested since: that builds all of them. */
function offerBuiltImages({ built, attempt }: StatusFields): { builtImages?: readonly ComponentImage[] } {
  const { components } = built ?? {};
  return components === undefined || built?.attempt !== attempt ? {} : { builtImages: components };
}

/** Whether a rebuild without the cache was requested, and no release has come of it yet. */
function shouldIgnoreCache({ attempt, built, releases = [] }: StatusFields): boolean {
  const isDone = [built, ...releases].some((each) => each?.attempt === attempt);
  return !isDone && parseRebuildRequest(attempt)?.noCache === true;
}

/** A poll and a rebuild were requested together: the commit to build is the one that the poll finds. */
function isSubmittedAgain({ app }: Snapshot, { source }: StatusFields): boolean {
  const { [annotations.poll]: poll, [annotations.rebuild]: rebuild } = app.metadata.annotations ?? {};
  return rebuild !== undefined && poll === rebuild && source?.polledFor !== identifySource(app);
}

/** The same number while the cache has not caught up with a Job that was made already. */
function chooseNumber(snapshot: Snapshot, { history = [], pipeline }: StatusFields, name: string): number {
  const reported = pipeline?.job === name ? pipeline.number : undefined;
  const pending = reported !== undefined && !history.some((entry) => entry.number === reported);
  return pending ? reported : chooseNextNumber(history, snapshot.jobs, pipeline?.number);
}

function findPrevious(
  snapshot: Snapshot,
  history: readonly HistoryEntry[],
): { commit: string | undefined; inputs: ReturnType<typeof readInputs> } | undefined {
  const newest = snapshot.jobs.toSorted((a, b) => readNumber(b) - readNumber(a))[0];
  if (newest !== undefined)
    return { commit: newest.metadata.annotations?.[annotations.commit], inputs: readInputs(newest) };
  const last = history[0];
  return last === undefined ? undefined : { commit: last.commit, inputs: undefined };
}

function recordPipeline(snapshot: Snapshot, job: Job, verdict: Verdict): StatusPatch {
  const index = snapshot.queue.indexOf(job.metadata.name);
  const reason = job.metadata.annotations?.[annotations.reason];
  return {
    pipeline: {
      job: job.metadata.name,
      number: readNumber(job),
      ...(verdict.pod === undefined ? {} : { pod: verdict.pod }),
      ...(reason === undefined ? {} : { reason }),
      ...readStage(job, verdict),
      ...(verdict.kind === 'queued' && index >= 0 ? { position: index + 1 } : {}),
    },
    ...(verdict.kind === 'running' ? recordReview(verdict.review) : {}),
  };
}

function readStage(
  job: Job,
  verdict: Verdict,
): { stage?: 'Queued' | 'Clone' | 'Review' | 'Build'; stageSince?: string } {
  if (verdict.kind === 'queued') return { stage: 'Queued', stageSince: job.metadata.creationTimestamp };
  if (verdict.kind === 'unprepared') return { stage: 'Build' };
  if (verdict.kind !== 'running') return {};
  return { stage: verdict.stage, ...(verdict.since === undefined ? {} : { stageSince: verdict.since }) };
}

function recordReview(review: ReviewReport | undefined): StatusPatch {
  return review === undefined ? {} : { findings: review.findings.slice(0, maximumFindings), plan: review.plan };
}

function concludeBuild(
  snapshot: Snapshot,
  fields: StatusFields,
  wantedBuild: WantedBuild,
  job: Job,
  verdict: Verdict,
): StepResult {
  switch (verdict.kind) {
    case 'queued':
      return {
        outcomes: reportQueued(job, {
          commit: wantedBuild.commit,
          position: fields.pipeline?.position,
          noRoom: verdict.noRoom,
          shortage: snapshot.shortage,
        }),
      };
    case 'running':
      return { outcomes: reportProgress(verdict, wantedBuild.commit) };
    case 'succeeded':
      return concludeSuccess(snapshot, fields, wantedBuild, job, verdict);
    case 'rejected':
      return concludeRejection(snapshot, fields, job, verdict);
    case 'unprepared':
      return concludeUnprepared(snapshot, job, verdict);
    case 'faulted':
      return concludeFault(snapshot, fields, job, verdict);
  }
}

function concludeSuccess(
  snapshot: Snapshot,
  fields: StatusFields,
  wantedBuild: WantedBuild,
  job: Job,
  verdict: Verdict & { kind: 'succeeded' },
): StepResult {
  const { image, port, findings } = verdict.result;
  const review = recordReview(verdict.review);
  const settings = findSettings(fields, wantedBuild.commit);
  const components = selectComponentImages(applySettings(snapshot.app, settings), verdict.result);
  if (components === 'incomplete') {
    const message = 'The pipeline completed, but it reports no image for some of the components.';
    return concludeFault(snapshot, fields, job, { pod: verdict.pod, review: verdict.review, kind: 'faulted', message });
  }
  const statusPatch: StatusPatch = {
    built: omitUndefined({
      image,
      commit: wantedBuild.commit,
      inputsHash: wantedBuild.inputs.hash,
      port,
      components,
      settings,
      attempt: fields.attempt,
    }),
    ...review,
    findings: [...(review.findings ?? fields.findings ?? []), ...findings].slice(0, maximumFindings),
    history: recordBuild(fields.history ?? [], job, snapshot.now, { result: 'Succeeded', image }),
  };
  return { outcomes: reportBuilt(applyPatch(fields, statusPatch), wantedBuild.commit), statusPatch };
}

function concludeRejection(
  snapshot: Snapshot,
  { history = [], findings: known = [] }: StatusFields,
  job: Job,
  verdict: Verdict & { kind: 'rejected' },
): StepResult {
  const { rejection, stage, review } = verdict;
  const findings = [...(review?.findings ?? known), ...verdict.findings].slice(0, maximumFindings);
  const statusPatch: StatusPatch = {
    ...(isRecorded(history, job) ? {} : { findings }),
    history: recordBuild(history, job, snapshot.now, {
      result: 'Rejected',
      message: `${rejection.rule}: ${rejection.message}`,
    }),
  };
  if (stage === 'Review')
    return {
      outcomes: {
        Reviewed: createStalledOutcome(
          rejection.rule === approvalRule ? 'ApprovalNeeded' : 'ReviewRejected',
          rejection,
        ),
        Built: createWaitingOutcome('NotReached', 'The review rejected this commit, so it is not built.'),
      },
      statusPatch,
    };
  const reason = rejection.rule === 'build/timeout' ? 'BuildTimedOut' : 'BuildRejected';
  return {
    outcomes: { ...reportReview(snapshot, job, verdict), Built: createStalledOutcome(reason, rejection) },
    statusPatch,
  };
}

/**
 * Waits for the images, and then runs the pipeline again. No build slot is taken in the meantime. Which images there are
 * is for the installation to say: the pod's report only selects among them.
 */
function concludeUnprepared(snapshot: Snapshot, job: Job, verdict: Verdict & { kind: 'unprepared' }): StepResult {
  const onDemand = new Set(snapshot.config.registry.imagesOnDemand ?? []);
  const since = job.metadata.creationTimestamp;
  const neededImages = verdict.images.filter((image) => onDemand.has(image)).map((image) => ({ image, since }));
  const reviewed = reportReview(snapshot, job, verdict);
  const preparation = judgePreparation(snapshot.app, neededImages);
  switch (preparation.kind) {
    case 'waiting':
      return {
        outcomes: { ...reviewed, Built: createWaitingOutcome('PreparingImage', preparation.message) },
        statusPatch: { neededImages },
      };
    case 'failed':
      return {
        outcomes: { ...reviewed, Built: createStalledOutcome('PipelineFaulted', preparation.rejection) },
        statusPatch: { neededImages },
      };
    case 'ready':
      return {
        outcomes: {
          ...reviewed,
          Built: createWaitingOutcome('PreparingImage', 'The image is ready; the pipeline runs again.'),
        },
        afterStatus: [removeJob(job)],
      };
  }
}

/** The Job is kept with its pods until the wait is over, so that the fault can be inspected. */
function concludeFault(
  snapshot: Snapshot,
  fields: StatusFields,
  job: Job,
  verdict: Verdict & { kind: 'faulted' },
): StepResult {
  const { message, doubtful } = verdict;
  const wasRecorded = isRecorded(fields.history ?? [], job);
  const history = recordBuild(fields.history ?? [], job, snapshot.now, { result: 'Faulted', message, doubtful });
  const faults = listFaults(history, job.metadata.name);
  if (faults.length >= snapshot.config.pipeline.faultLimit)
    return { outcomes: reportGivenUp(faults), statusPatch: { history } };
  const endedAt = Date.parse(faults[0]?.finishedAt ?? formatTimestamp(snapshot.now));
  const dueIn = endedAt + computeFaultDelayMs(faults.length) - snapshot.now.getTime();
  const outcome = createFailedOutcome(
    'PipelineFaulted',
    `${message.replace(/[^.!?…]$/, '$&.')} It is retried automatically.`,
    Math.max(dueIn, 0),
  );
  return {
    outcomes: { ...reportReview(snapshot, job, verdict), Built: outcome },
    statusPatch: { history },
    afterStatus: dueIn <= 0 && wasRecorded ? [removeJob(job)] : [],
  };
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

function reportGivenUp(faults: readonly HistoryEntry[]): Outcomes {
  const rejection = {
    rule: 'platform/fault',
    message:
      `The platform failed ${faults.length} times to build this commit: ${faults[0]?.message ?? 'no message'}`.slice(
        0,
        1_500,
      ),
    fix: `Your app did not cause this. Push a new commit, or submit the repository again.`,
  };
  return { Built: createStalledOutcome('PipelineFaulted', rejection) };
}

/** Once an image exists, both conditions hold, whether its Job still exists or not. */
function reportBuilt({ findings = [], built }: StatusFields, commit: string): Outcomes {
  return {
    Reviewed: reportPassed(findings.length),
    Built: createDoneOutcome(
      'Built',
      `Built commit ${shortenCommit(commit)}: ${built?.image.split('/').at(-1) ?? ''}.`,
    ),
  };
}

function reportPassed(warnings: number): ReturnType<typeof createDoneOutcome> {
  return createDoneOutcome(
    'ReviewPassed',
    warnings === 0
      ? 'The review found no problems.'
      : `Passed with ${warnings} warning${warnings === 1 ? '' : 's'}; see status.findings.`,
  );
}

function reportProgress(verdict: Verdict & { kind: 'running' }, commit: string): Outcomes {
  const name = shortenCommit(commit);
  const trouble = verdict.trouble === undefined ? '' : ` ${verdict.trouble}`;
  if (verdict.stage !== 'Build') {
    const reviewed =
      verdict.stage === 'Clone'
        ? createWaitingOutcome('Cloning', `Commit ${name} is being cloned.${trouble}`)
        : createWaitingOutcome('Reviewing', `Commit ${name} is being reviewed.${trouble}`);
    return { Reviewed: reviewed, Built: createWaitingOutcome('NotReached', 'Waiting for the review.') };
  }
  return {
    Reviewed: reportPassed(verdict.review?.findings.length ?? 0),
    Built: createWaitingOutcome('Building', `Commit ${name} is being built.${trouble}`),
  };
}

function reportBeforeReview(reason: ReasonOf<'waiting'>, message: string): Outcomes {
  return {
    Reviewed: createWaitingOutcome(reason, message),
    Built: createWaitingOutcome('NotReached', 'Waiting for the review.'),
  };
}

/** What keeps a pipeline from its turn, and from a node once it has it. */
interface QueueWait {
  readonly commit: string;
  readonly position: number | undefined;
  /** The scheduler's message about a pipeline that has its turn. */
  readonly noRoom: string | undefined;
  /** Why no build may start for lack of disk space. */
  readonly shortage: string | undefined;
}

function reportQueued(job: Job, { commit, position, noRoom, shortage }: QueueWait): Outcomes {
  const name = shortenCommit(commit);
  const where = `Commit ${name} is queued at position ${position ?? '?'}`;
  if (shortage !== undefined && job.spec?.suspend === true)
    return reportBeforeReview('WaitingForSpace', `Waiting for disk space: ${shortage} ${where}.`);
  if (noRoom !== undefined)
    return reportBeforeReview('WaitingForRoom', `${explainNoRoom(noRoom)} Commit ${name} is the next to start.`);
  const found = readNoRoom(job);
  if (found === undefined) return reportBeforeReview('Queued', `${where}.`);
  return reportBeforeReview(
    'WaitingForRoom',
    `${explainNoRoom(found.reason)} Commit ${name} is queued again, at position ${position ?? '?'}, and tried from ${formatTimestamp(new Date(computeRetryTime(found)))} on.`,
  );
}

/** The pods of a Job. */
export function listPods(snapshot: Pick<Snapshot, 'pipelinePods'>, job: Job): Snapshot['pipelinePods'] {
  return snapshot.pipelinePods.filter((pod) => isPodOfJob(pod, job));
}
