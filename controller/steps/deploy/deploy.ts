// Step Deploy: runs the newest image behind its Service and NetworkPolicy, with the old one serving until it is ready.
import { annotations } from '../../../crds/names.ts';
import { isApplied, type KubeObject, type Manifest, type Resource } from '../../../lib/kubernetes/index.ts';
import { omitUndefined } from '../../../lib/values.ts';
import {
  claims as claimResource,
  deployments,
  policies,
  secrets,
  services,
  type Pod,
  formatTimestamp,
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
import {
  buildClaims,
  buildDeployment,
  buildPolicy,
  buildService,
  resolveReplicas,
  buildPodTemplate,
  type Release,
} from './objects.ts';
import { countRestarts, findCrashTime, isReady, readCommitAndImage, readTemplateHash } from './pods.ts';
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
import { findRecord, updateReleases } from './releases.ts';
import { isResting, keepRest, reportRest } from './rest.ts';
import { computeCalmMs, findCrashLoop, isLooping, judgeRollout, reportCrashLoop } from './rollout.ts';
import { buildGeneratedSecrets, buildModelsSecret } from './secrets.ts';
import { readServiceAddresses } from './services/connections.ts';
import { endServices, keepServices } from './services/services.ts';
import { isActivated, planTrialActions } from './trial.ts';

type BuiltImage = NonNullable<StatusFields['built']>;

/** @param built the image that was built last */
export function runDeployStep(snapshot: Snapshot, { fields }: Progress, built: BuiltImage): StepResult {
  const { config, pods } = snapshot;
  const owned = { claims: snapshot.claims, addresses: readServiceAddresses(snapshot.serviceObjects.services) };
  const wantedView = replaceSettings(snapshot, built.settings);
  const wantedRelease = toWantedRelease(wantedView, built);
  // After a rollback, a release runs with the settings of its own commit.
  const getReleaseView = (release: Release): Snapshot =>
    release === wantedRelease ? wantedView : replaceSettings(snapshot, release.settings);
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
  const crashLoop = findCrashLoop(running, known, hash, readAppLimits(running, plan.release.port));
  const judged = { ...known, tried, crashLoop };

  const replicas = plan.isStopped || rest.isAsleep ? 0 : undefined;
  const manifest = buildDeployment(running.app, template, plan.marks, replicas);
  const outcome = reportCrashLoop(
    reportRest(judgeDeployment(running, manifest, plan, hash), rest),
    judged.crashLoop,
    hash,
  );
  // The services of the wanted release must be there before it is tried.
  const backed = addServices(trial === undefined ? running : wantedView, manifest, plan, trial?.outcome ?? outcome);
  const reported = reportWanted(wantedView, wantedRelease, choice, backed.outcome);
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
      services: backed.status.length === 0 ? undefined : [...backed.status],
      history: recordRollout(judged, wantedRelease, reported),
    },
    actions: [
      ...adoptClaims(snapshot),
      ...rest.actions,
      ...backed.actions,
      // The route needs the Service, so only the pods are held back.
      ...planApplies(running, manifest, plan.release.port).filter(
        ({ kind, resource }) => !backed.isHeld || (kind === 'apply' && resource !== deployments),
      ),
      ...planTrialActions(snapshot, tried, trial, {
        areServicesReady: backed.isReady,
        isRollingOut: backed.outcome.reason === 'RollingOut',
      }),
    ],
  };
}

/** Runs while nothing was built: adopts claims of an earlier app of this identity, and records what still answers. */
export function keepServing(snapshot: Snapshot, { fields }: Progress): StepResult {
  return { statusPatch: { served: chooseServed(snapshot, fields) }, actions: adoptClaims(snapshot) };
}

function replaceSettings(snapshot: Snapshot, settings: string | undefined): Snapshot {
  return settings === undefined ? snapshot : { ...snapshot, app: applySettings(snapshot.app, settings) };
}

/** @param wantedView with the settings of the commit that was built */
function toWantedRelease(wantedView: Snapshot, built: BuiltImage): Release {
  const { image, commit, settings, attempt } = built;
  return omitUndefined({ image, commit, port: wantedView.app.spec.run.port ?? built.port ?? 8080, settings, attempt });
}

function judgeDeployment(snapshot: Snapshot, manifest: Manifest, { release }: RunPlan, hash: string): Outcome {
  const { app, deployment } = snapshot;
  const { commit, port } = release;
  if (deployment === undefined || !isApplied(deployment, manifest))
    return createWaitingOutcome('RollingOut', `Commit ${shortenCommit(commit)} is being rolled out.`);
  if (app.spec.suspend)
    return createDoneOutcome('Suspended', 'No replicas run while the app is suspended. Its data and address are kept.');
  return judgeRollout(
    deployment,
    snapshot.pods,
    { hash, commit, replicas: resolveReplicas(app), limits: readAppLimits(snapshot, port) },
    snapshot.now,
  );
}

/** The app with its backing services. */
interface BackedApp {
  readonly actions: readonly Action[];
  readonly status: NonNullable<StatusFields['services']>;
  readonly outcome: Outcome;
  /** The pods of the app wait for the services. */
  readonly isHeld: boolean;
  readonly isReady: boolean;
}

/** A new release waits for its backing services; one that runs is only reported to lack them. */
function addServices(snapshot: Snapshot, manifest: Manifest, plan: RunPlan, outcome: Outcome): BackedApp {
  const { app, deployment } = snapshot;
  const isStopped = plan.isStopped || resolveReplicas(app) === 0;
  const { actions, status, obstacle } = keepServices(snapshot, isStopped ? 0 : 1);
  if (obstacle === undefined || isStopped) {
    const isOver = outcome.kind === 'done' && !plan.isRolledBack;
    const ended = isOver ? endServices(snapshot, app) : [];
    return { actions: [...actions, ...ended], status: [...status], outcome, isHeld: false, isReady: true };
  }
  const isNew = deployment === undefined || !isApplied(deployment, manifest);
  return {
    actions,
    status: [...status],
    outcome: isNew ? obstacle : reportMissingService(outcome, obstacle),
    isHeld: isNew,
    isReady: false,
  };
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
    ? reportStoppedForDisk(wantedRelease.commit, app.spec.run.resources.disk)
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
function recordRollout(fields: StatusFields, wantedRelease: Release, outcome: Outcome): StatusFields['history'] {
  if (fields.history === undefined) return undefined;
  const rejection = outcome.kind === 'stalled' ? outcome.rejection : undefined;
  const released = findRecord(fields, wantedRelease) === undefined ? 'Pending' : 'Released';
  const result = rejection === undefined ? released : 'Failed';
  return recordRelease(fields.history, wantedRelease, result, rejection?.message);
}

type Write = Extract<Action, { kind: 'apply' | 'create' }>;

function planApplies(snapshot: Snapshot, deployment: Manifest, port: number): Write[] {
  const { app, config } = snapshot;
  // Pods of the release before may listen on another port and must stay reachable until they are gone.
  const older = snapshot.pods
    .map((pod) => Number(pod.metadata.annotations?.[annotations.port]))
    .filter((number) => number > 0);
  const ports = [...new Set([port, ...older])].sort((a, b) => a - b);
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
    createApplyWrite(services, buildService(app), snapshot.service),
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
    resource: secrets,
    manifest,
  }));
}

function createApplyWrite(resource: Resource, manifest: Manifest, cached: KubeObject | undefined): Write {
  return { kind: 'apply', resource, manifest, cached };
}

/**
 * What really answers at the published address: the release that did so far as long as one pod of it is ready, then the
 * one that came after. Before the address is published, nothing does.
 */
function chooseServed(snapshot: Snapshot, { url, idle, crashLoop, served }: StatusFields): StatusFields['served'] {
  if (url === undefined || isResting(idle)) return served;
  const serving = snapshot.pods
    .filter((pod) => isReady(pod) && !isLooping(crashLoop, readTemplateHash(pod)))
    .map(readCommitAndImage);
  if (serving.some((release) => release.image === served?.image && release.commit === served.commit)) return served;
  const next = serving[0];
  if (next !== undefined) return { ...next, since: formatTimestamp(snapshot.now) };
  return isReplacing(snapshot) ? served : undefined;
}

/** Requests are held while a pod replaces another, so the address answers all the time. */
function isReplacing({ app, pods, deployment }: Snapshot): boolean {
  if (app.status?.activated !== true || resolveReplicas(app) === 0 || (deployment?.spec?.replicas ?? 0) === 0)
    return false;
  const isStarting = (pod: Pod): boolean =>
    countRestarts(pod) === 0 && findCrashTime(pod) === undefined && pod.status?.phase !== 'Failed';
  return pods.every((pod) => pod.metadata.deletionTimestamp !== undefined || isStarting(pod));
}
