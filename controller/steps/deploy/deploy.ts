// Step Deploy: runs the newest image behind its Service and NetworkPolicy, with the old one serving until it is ready.
import { findMainComponent, isRunning, listRunningComponents } from '../../../crds/components.ts';
import { annotations } from '../../../crds/names.ts';
import { isRouted } from '../../../crds/routes.ts';
import type { NeededImage } from '../../../crds/status.ts';
import { isApplied, type KubeObject, type Manifest, type Resource } from '../../../lib/kubernetes/index.ts';
import { omitUndefined } from '../../../lib/values.ts';
import {
  claims as claimResource,
  deployments,
  policies,
  secrets as secretResource,
  services,
  type Pod,
  formatTimestamp,
  isOutOfDisk,
} from '../../objects/kinds.ts';
import {
  createDoneOutcome,
  createFailedOutcome,
  shortenCommit,
  createStalledOutcome,
  createWaitingOutcome,
  type Action,
  type Outcome,
  type Progress,
  type StatusFields,
  type StepResult,
} from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { applySettings, recordRelease } from '../build/records.ts';
import { adoptClaims } from '../../retention/retention.ts';
import type { PodLayers } from '../../space/space.ts';
import {
  chooseMainPort,
  limitToRelease,
  listAppComponents,
  readPodComponents,
  toPodComponents,
  type Release,
} from './components.ts';
import { buildClaims, buildDeployment, buildPolicy, buildService, resolveReplicas } from './objects.ts';
import { buildPodTemplate } from './pod-template.ts';
import {
  countRestarts,
  describeComponent,
  findCrashTime,
  isReady,
  readCommitAndImage,
  readPodRelease,
  readTemplateHash,
} from './pods.ts';
import {
  chooseRelease,
  readAppLimits,
  reportHalt,
  reportStoppedForDisk,
  type Halt,
  type HashedTemplate,
  type ReleaseChoice,
  type RunPlan,
} from './release-choice.ts';
import { isAnswering, isRejected } from '../publish/answer.ts';
import { findRecord, findWorkedAt, findWorkingRelease, updateReleases } from './releases.ts';
import { isResting, keepRest, reportRest } from './rest.ts';
import { computeCalmMs, findCrashLoop, isLooping, judgeRollout, reportCrashLoop } from './rollout.ts';
import { buildGeneratedSecrets, buildModelsSecret, isSettled, removeOldSecrets } from './secrets.ts';
import { readServiceAddresses } from './services/connections.ts';
import { endServices, keepServices } from './services/services.ts';
import { planRequestedRuns } from './task-runs.ts';
import { describeTasks, planSchedules, planTasks, type TaskInput } from './tasks.ts';
import { isActivated, planTrialActions } from './trial.ts';
import { trackWrites } from './written.ts';

type BuiltImage = NonNullable<StatusFields['built']>;

/** @param built the image that was built last */
export function runDeployStep(snapshot: Snapshot, { fields }: Progress, built: BuiltImage): StepResult {
  const { config, pods } = snapshot;
  const owned = { claims: snapshot.claims, addresses: readServiceAddresses(snapshot.serviceObjects.services) };
  const wantedView = applyRelease(snapshot, built);
  const wantedRelease = toWantedRelease(wantedView, built);
  // After a rollback, a release runs with the settings of its own commit.
  const getReleaseView = (release: Release): Snapshot =>
    release === wantedRelease ? wantedView : applyRelease(snapshot, release);
  const buildTemplate = (release: Release): HashedTemplate =>
    buildPodTemplate(getReleaseView(release).app, config, release, owned);
  const target = buildTemplate(wantedRelease);
  const isTargetReady = pods.some((pod) => readTemplateHash(pod) === target.hash && isReady(pod));
  const readyTemplate = isTargetReady ? target.hash : fields.readyTemplate;

  const { releases, provenInMs } = updateReleases(snapshot, fields, wantedRelease);
  const rest = keepRest(wantedView, target.hash, readyTemplate === target.hash);
  const known = { ...fields, readyTemplate, releases, idle: rest.status };
  const choice = chooseRelease(wantedView, known, wantedRelease, buildTemplate);
  const { plan, trial, tried } = choice;
  const running = getReleaseView(plan.release);
  const { hash, template } = buildTemplate(plan.release);
  const crashLoop = findCrashLoop(running, known, hash, readAppLimits(running, plan.release));
  const judged = { ...known, tried, crashLoop };

  const replicas = plan.isStopped || rest.isAsleep ? 0 : resolveReplicas(running.app);
  const manifest = buildDeployment(running.app, template, plan.marks, replicas);
  const outcome = reportCrashLoop(
    reportRest(judgeDeployment(running, manifest, plan, hash), rest),
    judged.crashLoop,
    hash,
  );
  // The services of the wanted release must be there before it is tried.
  const backed = addServices(trial === undefined ? running : wantedView, manifest, plan, trial?.outcome ?? outcome);
  const start = planStart({ snapshot: running, release: plan.release, hash, owned }, choice, backed, target.hash);
  const reported = reportWanted(wantedView, wantedRelease, choice, start.outcome);
  const secrets = removeOldSecrets(snapshot, fields.secretVersions, isSettled(snapshot, manifest, { hash, replicas }));
  return {
    outcomes: { Deployed: limitWait(reported, computeCalmMs(running, judged, hash) ?? provenInMs) },
    statusPatch: {
      readyTemplate,
      releases,
      idle: rest.status,
      tried,
      // Apps whose pods replace each other are reached through the activator.
      activated: [wantedView, running].some(isActivated) ? true : undefined,
      crashLoop,
      served: chooseServed(snapshot, judged),
      written: trackWrites(fields.written, measureLayers(snapshot), {
        components: listNames(running.app),
        findings: fields.findings,
        now: snapshot.now,
      }),
      neededImages: addNeededImages(fields.neededImages, backed.neededImages),
      components: describeComponents(running, plan.release, hash, start.isHeld ? fields.components : undefined),
      services: backed.status.length === 0 ? undefined : [...backed.status],
      history: recordRollout(judged, wantedRelease, reported, target.hash),
      secretVersions: secrets.status,
    },
    actions: [
      ...adoptClaims(snapshot),
      ...rest.actions,
      ...backed.actions,
      // The route needs the Service, so only the pods are held back.
      ...planApplies(running, manifest, plan.release).filter(
        ({ kind, resource }) => !start.isHeld || (resource !== deployments && (kind === 'apply' || !backed.isHeld)),
      ),
      ...start.actions,
      ...planTrialActions(snapshot, tried, trial, {
        areServicesReady: backed.isReady,
        isRollingOut: backed.outcome.reason === 'RollingOut',
      }),
      ...secrets.actions,
    ],
  };
}

/** Runs while nothing was built: adopts claims of an earlier app of this identity, and records what still answers. */
export function keepServing(snapshot: Snapshot, { fields }: Progress): StepResult {
  const isEmpty = snapshot.deployment === undefined && snapshot.pods.length === 0;
  const secrets = removeOldSecrets(snapshot, fields.secretVersions, isEmpty);
  return {
    statusPatch: { served: chooseServed(snapshot, fields), secretVersions: secrets.status },
    actions: [...adoptClaims(snapshot), ...secrets.actions],
  };
}

/** The snapshot with the settings of a release, and those components that it has images of. */
function applyRelease(snapshot: Snapshot, release: Pick<Release, 'settings' | 'components'>): Snapshot {
  const { settings } = release;
  const app = settings === undefined ? snapshot.app : applySettings(snapshot.app, settings);
  return { ...snapshot, app: limitToRelease(app, release) };
}

/** @param wantedView with the settings of the commit that was built */
function toWantedRelease(wantedView: Snapshot, built: BuiltImage): Release {
  const { image, commit, components, settings, attempt } = built;
  const port = chooseMainPort(wantedView.app, built);
  return omitUndefined({ image, commit, port, components, settings, attempt });
}

function judgeDeployment(snapshot: Snapshot, manifest: Manifest, { release }: RunPlan, hash: string): Outcome {
  const { app, deployment } = snapshot;
  const { commit } = release;
  if (deployment === undefined || !isApplied(deployment, manifest))
    return createWaitingOutcome('RollingOut', `Commit ${shortenCommit(commit)} is being rolled out.`);
  if (app.spec.suspend)
    return createDoneOutcome('Suspended', 'No replicas run while the app is suspended. Its data and address are kept.');
  return judgeRollout(
    deployment,
    snapshot.pods,
    { hash, commit, replicas: resolveReplicas(app), limits: readAppLimits(snapshot, release) },
    snapshot.now,
  );
}

/** The app with its backing services. */
interface BackedApp {
  readonly actions: readonly Action[];
  readonly status: NonNullable<StatusFields['services']>;
  readonly neededImages: readonly NeededImage[];
  readonly outcome: Outcome;
  /** The pods of the app wait for the services. */
  readonly isHeld: boolean;
  readonly isReady: boolean;
}

/** Those of the services, after those of a newer commit's build. */
function addNeededImages(
  needed: StatusFields['neededImages'],
  more: readonly NeededImage[],
): StatusFields['neededImages'] {
  return more.length === 0 ? needed : [...(needed ?? []), ...more].slice(0, 20);
}

/** A new release waits for its backing services; one that runs is only reported to lack them. */
function addServices(snapshot: Snapshot, manifest: Manifest, plan: RunPlan, outcome: Outcome): BackedApp {
  const { app, deployment } = snapshot;
  const isStopped = plan.isStopped || resolveReplicas(app) === 0;
  const { actions, status, obstacle, neededImages = [] } = keepServices(snapshot, isStopped ? 0 : 1);
  if (obstacle === undefined || isStopped) {
    const isOver = outcome.kind === 'done' && !plan.isRolledBack;
    const ended = isOver ? endServices(snapshot, app) : [];
    return {
      actions: [...actions, ...ended],
      status: [...status],
      neededImages,
      outcome,
      isHeld: false,
      isReady: true,
    };
  }
  const isNew = deployment === undefined || !isApplied(deployment, manifest);
  return {
    actions,
    status: [...status],
    neededImages,
    outcome: isNew ? obstacle : reportMissingService(outcome, obstacle),
    isHeld: isNew,
    isReady: false,
  };
}

/** Whether the pods of a release may start, and what has to be done first. */
interface StartPlan {
  readonly isHeld: boolean;
  readonly outcome: Outcome;
  readonly actions: readonly Action[];
}

/** The pods of a release wait for its backing services and then for its tasks. @param wanted hash of the wanted template */
function planStart(input: TaskInput, { plan, trial }: ReleaseChoice, backed: BackedApp, wanted: string): StartPlan {
  const isStopped = plan.isStopped || resolveReplicas(input.snapshot.app) === 0;
  const mayRun = trial === undefined && backed.isReady && !plan.isRolledBack && !isStopped;
  const { outcome, actions } = mayRun ? planTasks(input) : { outcome: undefined, actions: [] };
  const isHeld = backed.isHeld || outcome !== undefined;
  const runs = isHeld ? [] : planRequestedRuns({ ...input, isStopped });
  const schedules = isHeld ? [] : planSchedules({ ...input, isStopped }, wanted);
  return { isHeld, outcome: outcome ?? backed.outcome, actions: [...actions, ...runs, ...schedules] };
}

/** An app that runs keeps running; it may well work without that service for a while. */
function reportMissingService(outcome: Outcome, obstacle: Outcome): Outcome {
  const { message } = obstacle;
  if (outcome.reason === 'Trying') return obstacle;
  return outcome.kind === 'done'
    ? { kind: 'failed', reason: createFailedOutcome('ServiceNotReady', message).reason, message, blocking: false }
    : outcome;
}

/** Reports on the wanted release, which may be another than the one that runs. */
function reportWanted(
  snapshot: Snapshot,
  wantedRelease: Release,
  { plan, failing, halt }: ReleaseChoice,
  running: Outcome,
): Outcome {
  const { app } = snapshot;
  if (resolveReplicas(app) === 0) return running;
  const ended = plan.isOverDisk
    ? reportStoppedForDisk(app, wantedRelease.commit)
    : halt === undefined
      ? undefined
      : reportHalt(halt);
  if (plan.isStopped && ended !== undefined) return ended;
  return plan.isRolledBack ? reportRollback(snapshot, wantedRelease, plan, ended ?? failing ?? running, halt) : running;
}

/** Once the last good release is back, the failing pods are gone, so the cause is taken from what was reported then. */
function reportRollback(
  snapshot: Snapshot,
  wantedRelease: Release,
  plan: RunPlan,
  now: Outcome,
  halt: Halt | undefined,
): Outcome {
  const known = now.kind === 'stalled' ? now.rejection : snapshot.app.status?.rejection;
  const rejection = known ?? {
    rule: 'run/taken-back',
    message: `Commit ${shortenCommit(wantedRelease.commit)} never became ready.`,
    fix: 'Check its log, and push a commit that starts.',
  };
  const release = shortenCommit(plan.release.commit);
  const back = halt?.inTrial === true ? `It has not replaced commit ${release}.` : `Rolled back to commit ${release}.`;
  return createStalledOutcome('RolloutTakenBack', {
    ...rejection,
    message: rejection.message.endsWith(back) ? rejection.message : `${rejection.message} ${back}`,
  });
}

function limitWait(outcome: Outcome, ms: number | undefined): Outcome {
  return ms === undefined ? outcome : { ...outcome, afterMs: Math.min(ms, outcome.afterMs ?? ms) };
}

/** Keeps apart in the history what was built and what serves. */
function recordRollout(
  fields: StatusFields,
  wantedRelease: Release,
  outcome: Outcome,
  hash: string,
): StatusFields['history'] {
  if (fields.history === undefined) return undefined;
  const byUrl = isRejected(fields.answer, hash) ? fields.answer?.rejection : undefined;
  const rejection = outcome.kind === 'stalled' ? outcome.rejection : byUrl;
  const released = findRecord(fields, wantedRelease) === undefined ? 'Pending' : 'Released';
  const result = rejection === undefined ? released : 'Failed';
  return recordRelease(fields.history, wantedRelease, result, rejection?.message);
}

type Write = Extract<Action, { kind: 'apply' | 'create' }>;

function planApplies(snapshot: Snapshot, deployment: Manifest, release: Release): Write[] {
  const { app, config } = snapshot;
  // Pods of the release before may listen on other ports and must stay reachable until they are gone.
  const components = [toPodComponents(app, release) ?? [], ...snapshot.pods.map((pod) => readPodComponents(pod) ?? [])];
  const routed = components.flat().filter(isRouted);
  const older = snapshot.pods
    .map((pod) => Number(pod.metadata.annotations?.[annotations.port]))
    .filter((port) => port > 0);
  const ports = [...new Set([release.port, ...older, ...routed.map(({ port }) => port)])].sort((a, b) => a - b);
  const claims = buildClaims(app, config, snapshot.claims).map((manifest) =>
    createApplyWrite(
      claimResource,
      manifest,
      snapshot.claims.find((claim) => claim.metadata.name === manifest.metadata.name),
    ),
  );
  return [
    ...claims,
    ...planSecrets(snapshot, deployment),
    createApplyWrite(policies, buildPolicy(app, config, ports), snapshot.policy),
    createApplyWrite(services, buildService(app, routed), snapshot.service),
    createApplyWrite(deployments, deployment, snapshot.deployment),
  ];
}

/**
 * Secrets are created before the first pod that refers to them. They are requested until a pod is ready, since those of an
 * earlier version may be garbage-collected after the Deployment was created.
 */
function planSecrets({ app, config, deployment: cached, pods }: Snapshot, deployment: Manifest): Write[] {
  if (cached !== undefined && isApplied(cached, deployment) && pods.some(isReady)) return [];
  const models = buildModelsSecret(app, config);
  return [...(models === undefined ? [] : [models]), ...buildGeneratedSecrets(app, config)].map((manifest) => ({
    kind: 'create',
    resource: secretResource,
    manifest,
  }));
}

function createApplyWrite(resource: Resource, manifest: Manifest, cached: KubeObject | undefined): Write {
  return { kind: 'apply', resource, manifest, cached };
}

/**
 * What really answers at the published address: the release that did so far as long as one pod of it is ready, then the
 * one that came after, once its URL works. Before the address is published, nothing does.
 */
function chooseServed(snapshot: Snapshot, fields: StatusFields): StatusFields['served'] {
  const { url, idle, crashLoop, served, answer } = fields;
  if (url === undefined || isResting(idle)) return served;
  const ready = snapshot.pods.filter((pod) => isReady(pod) && !isLooping(crashLoop, readTemplateHash(pod)));
  const serving = ready.filter((pod) => !isRejected(answer, readTemplateHash(pod)));
  if (serving.map(readCommitAndImage).some((release) => isSameRelease(release, served))) return served;
  const next = serving.find((pod) => isKnownToWork(snapshot, fields, pod));
  if (next !== undefined) return { ...readCommitAndImage(next), since: formatTimestamp(snapshot.now) };
  // It is being probed, or is rolled back.
  const isJudged = serving.length > 0 || ready.some((pod) => findWorkingRelease(fields, readPodRelease(pod)));
  return isJudged || isReplacing(snapshot) ? served : undefined;
}

function isSameRelease(one: ReturnType<typeof readCommitAndImage>, other: StatusFields['served']): boolean {
  return one.image === other?.image && one.commit === other.commit;
}

/** Where nothing is probed, a ready pod is enough. */
function isKnownToWork({ config }: Snapshot, fields: StatusFields, pod: Pod): boolean {
  const isOwnAnswer = fields.answer?.template === readTemplateHash(pod);
  return (
    config.probeUrl === undefined ||
    (isOwnAnswer && isAnswering(fields.answer)) ||
    findWorkedAt(fields, readPodRelease(pod)) !== undefined
  );
}

/** Of several replicas none is measured: one may be replaced while another keeps its files. */
function measureLayers({ pods, layers }: Snapshot): PodLayers | undefined {
  const [pod, other] = pods.filter(isReady);
  return pod === undefined || other !== undefined ? undefined : layers?.(pod.metadata.name);
}

/**
 * The state of each component: of those that run in the app's pod, in one that serves if there is any.
 *
 * @param before what was reported, if the release before still serves
 */
function describeComponents(
  snapshot: Snapshot,
  release: Release,
  hash: string,
  before: StatusFields['components'],
): StatusFields['components'] {
  const { app, pods, now } = snapshot;
  if (app.spec.components.length === 0) return undefined;
  const own = pods.filter(
    (pod) => readTemplateHash(pod) === hash && pod.metadata.deletionTimestamp === undefined && !isOutOfDisk(pod),
  );
  const pod = own.find(isReady) ?? own[0];
  const kinds = new Map(listAppComponents(app).map(({ name, kind }) => [name, kind]));
  const running = readAppLimits({ app }, release).map((limits) => ({
    ...{ name: limits.name, kind: kinds.get(limits.name) ?? 'web' },
    ...describeComponent(pod, limits, now),
  }));
  const serving = before?.filter(isRunning);
  return [...(serving ?? running), ...describeTasks({ snapshot, release, hash })];
}

/** Names of the components that run in the app's pod, the one that answers at / first. */
function listNames(app: Snapshot['app']): string[] {
  const all = listAppComponents(app);
  return [...new Set([findMainComponent(all).name, ...listRunningComponents(all).map(({ name }) => name)])];
}

/** Requests are held while a pod replaces another, so the address answers all the time. */
function isReplacing({ app, pods, deployment }: Snapshot): boolean {
  if (app.status?.activated !== true || resolveReplicas(app) === 0 || (deployment?.spec?.replicas ?? 0) === 0)
    return false;
  const isStarting = (pod: Pod): boolean =>
    countRestarts(pod) === 0 && findCrashTime(pod) === undefined && pod.status?.phase !== 'Failed';
  return pods.every((pod) => pod.metadata.deletionTimestamp !== undefined || isStarting(pod));
}
