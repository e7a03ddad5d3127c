// Step Deploy: the newest image runs behind its Service and NetworkPolicy, with the old one serving until it does.
import { annotations } from '../../../crds/names.ts';
import { isApplied, type KubeObject, type Manifest, type Resource } from '../../../lib/kubernetes/index.ts';
import { present } from '../../../lib/values.ts';
import { claims as claimResource, deployments, policies, secrets, services, type Pod } from '../../objects/kinds.ts';
import { formatTimestamp } from '../../objects/values.ts';
import { done, failed, shortenCommit, stalled, waiting, type Action, type Draft, type Outcome, type StepResult } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { applySettings, recordRelease } from '../build/records.ts';
import { adoptClaims } from './data.ts';
import { buildClaims, buildDeployment, buildPolicy, buildService, resolveReplicas } from './objects.ts';
import { countRestarts, findCrashTime, isReady, readCommitAndImage, readTemplateHash } from './pods.ts';
import { chooseRelease, readAppLimits, reportHalt, reportStoppedForDisk, type Halt, type HashedTemplate, type ReleaseChoice, type RunPlan } from './release-choice.ts';
import { findRecord, recordReleases } from './releases.ts';
import { isResting, keepRest, reportRest } from './rest.ts';
import { computeCalmMs, isLooping, judgeRollout, recordCrashLoop, reportCrashLoop } from './rollout.ts';
import { buildGeneratedSecrets, buildModelsSecret } from './secrets.ts';
import { readServiceAddresses } from './services/connections.ts';
import { endServices, keepServices } from './services/services.ts';
import { buildPodTemplate, type Release } from './template.ts';
import { isActivated, planTrialActions } from './trial.ts';

export function deployStep(snapshot: Snapshot, draft: Draft): StepResult {
  const adoption = adoptClaims(snapshot);
  if (draft.built === undefined) {
    recordServed(snapshot, draft);
    return { outcomes: {}, actions: adoption };
  }
  const { config, pods } = snapshot;
  const owned = { claims: snapshot.claims, addresses: readServiceAddresses(snapshot.serviceObjects.services) };
  const asked = withManifest(snapshot, draft.built.settings);
  const wanted = toWanted(asked, draft.built);
  // A release that is put back runs by the settings of its own commit.
  const seenAs = (release: Release): Snapshot =>
    release === wanted ? asked : withManifest(snapshot, release.settings);
  const templated = (release: Release): HashedTemplate => buildPodTemplate(seenAs(release).app, config, release, owned);
  const target = templated(wanted);
  if (pods.some((pod) => readTemplateHash(pod) === target.hash && isReady(pod))) draft.readyTemplate = target.hash;
  const provenInMs = recordReleases(snapshot, draft, wanted);
  const rest = keepRest(asked, draft, target.hash);
  const choice = chooseRelease(asked, draft, wanted, templated);
  const { course, trial } = choice;
  const running = seenAs(course.release);
  const { hash, template } = templated(course.release);
  recordActivated(draft, [asked, running]);
  recordCrashLoop(running, draft, hash, readAppLimits(running, course.release.port));
  recordServed(snapshot, draft);
  const manifest = buildDeployment(
    running.app,
    template,
    course.marks,
    course.isStopped || rest.isAsleep ? 0 : undefined,
  );
  const outcome = reportCrashLoop(reportRest(outcomeOf(running, manifest, course, hash), draft, rest), draft, hash);
  // What the wanted release is tried with has to be there by then.
  const withServices = backed(
    trial === undefined ? running : asked,
    manifest,
    course,
    trial?.outcome ?? outcome,
    draft,
  );
  const reported = reportWanted(asked, wanted, { ...choice, running: withServices.outcome });
  recordRollout(draft, wanted, reported);
  return {
    outcomes: { Deployed: lookAgainIn(computeCalmMs(running, draft, hash) ?? provenInMs, reported) },
    actions: [
      ...adoption,
      ...rest.actions,
      ...withServices.actions,
      // The route asks for the Service, so only the pods are held back.
      ...applies(running, manifest, course.release.port).filter(
        ({ kind, resource }) => !withServices.isHeld || (kind === 'apply' && resource !== deployments),
      ),
      ...planTrialActions(snapshot, draft, trial, {
        areServicesReady: withServices.isReady,
        isRollingOut: withServices.outcome.reason === 'RollingOut',
      }),
    ],
  };
}

/** @param asked with the settings of the commit that was built */
function toWanted(asked: Snapshot, built: NonNullable<Draft['built']>): Release {
  const { image, commit, settings, attempt } = built;
  return present({ image, commit, port: asked.app.spec.run.port ?? built.port ?? 8080, settings, attempt });
}

/** Keeps apart in the history what was built and what serves. */
function recordRollout(draft: Draft, wanted: Release, outcome: Outcome): void {
  if (draft.history === undefined) return;
  const rejection = outcome.kind === 'stalled' ? outcome.rejection : undefined;
  const released = findRecord(draft, wanted) === undefined ? 'Pending' : 'Released';
  draft.history = recordRelease(
    draft.history,
    wanted,
    rejection === undefined ? released : 'Failed',
    rejection?.message,
  );
}

function lookAgainIn(ms: number | undefined, outcome: Outcome): Outcome {
  return ms === undefined ? outcome : { ...outcome, afterMs: Math.min(ms, outcome.afterMs ?? ms) };
}

/** The app with its backing services: a release that is new waits for them, one that runs is only said to lack them. */
function backed(
  snapshot: Snapshot,
  manifest: Manifest,
  course: RunPlan,
  outcome: Outcome,
  draft: Draft,
): { actions: readonly Action[]; outcome: Outcome; isHeld: boolean; isReady: boolean } {
  const { app, deployment } = snapshot;
  const isStopped = course.isStopped || resolveReplicas(app) === 0;
  const { actions, status, obstacle } = keepServices(snapshot, isStopped ? 0 : 1);
  if (status.length === 0) delete draft.services;
  else draft.services = [...status];
  if (obstacle === undefined || isStopped) {
    const isOver = outcome.kind === 'done' && !course.isRolledBack;
    return {
      actions: [...actions, ...(isOver ? endServices(snapshot, app) : [])],
      outcome,
      isHeld: false,
      isReady: true,
    };
  }
  const isNew = deployment === undefined || !isApplied(deployment, manifest);
  return isNew
    ? { actions, outcome: obstacle, isHeld: true, isReady: false }
    : { actions, outcome: lacking(outcome, obstacle), isHeld: false, isReady: false };
}

/** An app that runs goes on doing so; it may well work without that service for a while. */
function lacking(outcome: Outcome, obstacle: Outcome): Outcome {
  const { message } = obstacle;
  if (outcome.reason === 'Trying') return obstacle;
  return outcome.kind === 'done'
    ? { kind: 'failed', reason: failed('ServiceNotReady', message).reason, message, blocking: false }
    : outcome;
}

/** What was chosen, and how what runs of it stands. */
interface Standing extends Omit<ReleaseChoice, 'trial'> {
  readonly running: Outcome;
}

/** What is said of the wanted release, which may be another than the one that runs. */
function reportWanted(snapshot: Snapshot, wanted: Release, { failing, halt, running, course }: Standing): Outcome {
  const { app } = snapshot;
  if (resolveReplicas(app) === 0) return running;
  const ended = course.isOverDisk
    ? reportStoppedForDisk(wanted.commit, app.spec.run.resources.disk)
    : halt === undefined
      ? undefined
      : reportHalt(halt);
  if (course.isStopped && ended !== undefined) return ended;
  return course.isRolledBack ? rolledBack(snapshot, wanted, course, ended ?? failing ?? running, halt) : running;
}

function withManifest(snapshot: Snapshot, settings: string | undefined): Snapshot {
  return settings === undefined ? snapshot : { ...snapshot, app: applySettings(snapshot.app, settings) };
}

function outcomeOf(snapshot: Snapshot, manifest: Manifest, choice: RunPlan, hash: string): Outcome {
  const { app, deployment } = snapshot;
  const { commit, port } = choice.release;
  if (deployment === undefined || !isApplied(deployment, manifest))
    return waiting('RollingOut', `Commit ${shortenCommit(commit)} is being rolled out.`);
  if (app.spec.suspend)
    return done('Suspended', 'No replicas run while the app is suspended. Its data and address are kept.');
  return judgeRollout(
    deployment,
    snapshot.pods,
    { hash, commit, replicas: resolveReplicas(app), expected: readAppLimits(snapshot, port) },
    snapshot.now,
  );
}

/** The failing pods are gone once the last good release is back, so why they failed is read from what was said then. */
function rolledBack(
  snapshot: Snapshot,
  wanted: Release,
  choice: RunPlan,
  now: Outcome,
  halt: Halt | undefined,
): Outcome {
  const said = now.kind === 'stalled' ? now.rejection : snapshot.app.status?.rejection;
  const rejection = said ?? {
    rule: 'run/taken-back',
    message: `Commit ${shortenCommit(wanted.commit)} never became ready.`,
    fix: 'Check its log, and push a commit that starts.',
  };
  const release = shortenCommit(choice.release.commit);
  const back = halt?.inTrial === true ? `It has not replaced commit ${release}.` : `Rolled back to commit ${release}.`;
  return stalled('RolloutTakenBack', {
    ...rejection,
    message: rejection.message.endsWith(back) ? rejection.message : `${rejection.message} ${back}`,
  });
}

type Write = Extract<Action, { kind: 'apply' | 'create' }>;

function applies(snapshot: Snapshot, deployment: Manifest, port: number): Write[] {
  const { app, config } = snapshot;
  // Pods of the release before may listen on another port and must stay reachable until they are gone.
  const older = snapshot.pods
    .map((pod) => Number(pod.metadata.annotations?.[annotations.port]))
    .filter((number) => number > 0);
  const ports = [...new Set([port, ...older])].sort((a, b) => a - b);
  const claims = buildClaims(app, config, snapshot.claims).map((manifest) =>
    applyAction(
      claimResource,
      manifest,
      snapshot.claims.find((claim) => claim.metadata.name === manifest.metadata.name),
    ),
  );
  return [
    ...claims,
    ...secretActions(snapshot, deployment),
    applyAction(policies, buildPolicy(app, config, ports), snapshot.policy),
    applyAction(services, buildService(app), snapshot.service),
    applyAction(deployments, deployment, snapshot.deployment),
  ];
}

/**
 * Made before the first pod that names them; later ones find them there. Asked for until a pod is ready: those of an
 * earlier version may be collected after the Deployment was made.
 */
function secretActions({ app, config, deployment: cached, pods }: Snapshot, deployment: Manifest): Write[] {
  if (cached !== undefined && isApplied(cached, deployment) && pods.some(isReady)) return [];
  const ofModels = buildModelsSecret(app, config);
  return [...(ofModels === undefined ? [] : [ofModels]), ...buildGeneratedSecrets(app, config)].map((manifest) => ({
    kind: 'create',
    resource: secrets,
    manifest,
  }));
}

function applyAction(resource: Resource, manifest: Manifest, cached: KubeObject | undefined): Write {
  return { kind: 'apply', resource, manifest, cached };
}

/** Apps whose pods replace each other are reached through the activator. */
function recordActivated(draft: Draft, snapshots: readonly Snapshot[]): void {
  if (snapshots.some(isActivated)) draft.activated = true;
  else delete draft.activated;
}

/**
 * Says what really answers at the published address: the release that did so far as long as one pod of it is ready,
 * then the one that came after. Before the address is published, nothing does.
 */
function recordServed(snapshot: Snapshot, draft: Draft): void {
  if (draft.url === undefined || isResting(draft.idle)) return;
  const serving = snapshot.pods
    .filter((pod) => isReady(pod) && !isLooping(draft, readTemplateHash(pod)))
    .map(readCommitAndImage);
  const { served } = draft;
  if (serving.some((release) => release.image === served?.image && release.commit === served.commit)) return;
  const next = serving[0];
  if (next !== undefined) draft.served = { ...next, since: formatTimestamp(snapshot.now) };
  else if (!isReplacing(snapshot)) delete draft.served;
}

/** Requests are held while a pod replaces another, so the address answers all the time. */
function isReplacing({ app, pods, deployment }: Snapshot): boolean {
  if (app.status?.activated !== true || resolveReplicas(app) === 0 || (deployment?.spec?.replicas ?? 0) === 0)
    return false;
  const isStarting = (pod: Pod): boolean =>
    countRestarts(pod) === 0 && findCrashTime(pod) === undefined && pod.status?.phase !== 'Failed';
  return pods.every((pod) => pod.metadata.deletionTimestamp !== undefined || isStarting(pod));
}
