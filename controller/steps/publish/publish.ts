// Step Publish: reports an app as live once its URL shows a page, through the gateway itself where that is configured.
import type { Answer } from '../../../crds/status.ts';
import { annotations, formatAppUrl } from '../../../crds/names.ts';
import { isMain } from '../../../crds/routes.ts';
import { formatSlugHost, isAtSlug, isOwnUrl, readSlug } from '../../../crds/slugs.ts';
import { formatTimestamp, type Pod } from '../../objects/kinds.ts';
import {
  applyPatch,
  createDoneOutcome,
  createFailedOutcome,
  createStalledOutcome,
  isFailingReason,
  shortenCommit,
  createWaitingOutcome,
  warnedReason,
  type Action,
  type Outcome,
  type Progress,
  type ReasonOf,
  type StatusFields,
  type StatusPatch,
  type StepResult,
} from '../../reconcile/outcome.ts';
import type { PageView, Snapshot } from '../../reconcile/snapshot.ts';
import { readPodComponents } from '../deploy/components.ts';
import { resolveReplicas } from '../deploy/objects.ts';
import { isReady, readCommitAndImage, readPodRelease, readTemplateHash, type PodRelease } from '../deploy/pods.ts';
import { findWorkedAt, findWorkingRelease, recordAnswers } from '../deploy/releases.ts';
import { reportPublishedAtRest } from '../deploy/rest.ts';
import { describeLoss } from '../deploy/written.ts';
import { readVerdicts } from '../route/route.ts';
import { computeSecondProbeMs, isAnswering, judgeAnswer, type AnswerInput } from './answer.ts';
import { isFailure, isMissing } from './probe.ts';

const retryMs = 1_000;
/** How soon an app is probed again: one that is well, one whose page shows faults, and one whose URL fails. */
const wellMs = 60_000;
const warnedMs = 30_000;
const failingMs = 10_000;
/** A page that does not work is looked at again after this long: the app may only have been starting. */
const faultyMs = 60_000;
const maximumFaults = 5;
const longestWarning = 300;
const serverError = /^responds with 5\d\d at \//;

/** The release that serves. */
type Release = PodRelease;

/** Runs once Deploy and Route hold. */
export function runPublishStep(snapshot: Snapshot, { fields }: Progress): StepResult {
  const { app, config } = snapshot;
  const patch = forgetUnserved(fields);
  if (resolveReplicas(app) === 0) {
    const outcome = createWaitingOutcome('ScaledToZero', 'The app is scaled to zero, so nothing responds.');
    return { outcomes: { Published: outcome }, statusPatch: patch };
  }
  const atRest = reportPublishedAtRest(fields.idle);
  const former = findFormerUrl(snapshot, fields, atRest !== undefined);
  const url = former ?? formatAppUrl(readSlug(app), config.site);
  if (atRest !== undefined) {
    const outcome = limitWait(atRest, former === undefined ? undefined : retryMs);
    return { outcomes: { Published: outcome }, statusPatch: { ...patch, url } };
  }
  const result = publishMoving(snapshot, applyPatch(fields, patch), url, former !== undefined);
  return { ...result, statusPatch: { ...patch, ...result.statusPatch } };
}

/**
 * While an app is moving, a 404 at its new address says nothing about the release: the gateway may not have the route yet. It
 * counts as a probe without a result.
 */
function publishMoving(snapshot: Snapshot, fields: StatusFields, url: string, isMoving: boolean): StepResult {
  const { probe } = snapshot;
  if (!isMoving || probe === undefined || !isMissing(probe.status)) return publish(snapshot, fields, url);
  const { actions = [], ...rest } = publish({ ...snapshot, probe: undefined }, fields, url);
  return { ...rest, actions: actions.filter(({ kind }) => kind !== 'probe') };
}

/** The gateway may take this long to apply a route that it has accepted. */
const settleMs = 5_000;

/**
 * The URL at which a renamed app is still published, because its new one is not known to work. Nobody is sent to an address that
 * the gateway does not serve yet. A sleeping app is not probed.
 */
function findFormerUrl(snapshot: Snapshot, { url }: StatusFields, isAtRest: boolean): string | undefined {
  const { app, config, probe, now } = snapshot;
  const isMoving = url !== undefined && !isAtSlug(app, url, config.site) && isOwnUrl(app, url, config.site, now);
  const isReached = config.probeUrl === undefined || isAtRest || probe?.responds === true;
  return isMoving && !(isReached && isRouteSettled(snapshot)) ? url : undefined;
}

function isRouteSettled({ route, config, now }: Snapshot): boolean {
  const conditions = route === undefined ? [] : readVerdicts(route, config.gateway);
  const accepted = conditions.find(({ type, status }) => type === 'Accepted' && status === 'True');
  return accepted !== undefined && now.getTime() - Date.parse(accepted.lastTransitionTime) >= settleMs;
}

/**
 * Runs while Deploy or Route does not hold. A gateway that does not confirm the new version of a route may still follow
 * the old one, or be gone. So an address that was published before is probed all the same.
 */
export function confirmUnrouted(snapshot: Snapshot, { fields, outcomes }: Progress): StepResult {
  const { app, config } = snapshot;
  const { url, served, idle } = fields;
  const statusPatch = forgetUnserved(fields);
  const isRouting = outcomes.Deployed?.kind === 'done' && outcomes.Routed?.kind === 'waiting';
  const isPublished = url !== undefined && isOwnUrl(app, url, config.site, snapshot.now) && served !== undefined;
  const isAwake = resolveReplicas(app) > 0 && reportPublishedAtRest(idle) === undefined;
  if (!isRouting || !isPublished || !isAwake) return { statusPatch };
  const published =
    findUrlFailure(snapshot, url) ?? createWaitingOutcome('Confirming', 'Waiting for the route.', wellMs);
  return { outcomes: { Published: published }, statusPatch, actions: planProbe(snapshot, fields, true) };
}

/** If nothing serves, earlier findings no longer apply. */
function forgetUnserved({ served }: StatusFields): StatusPatch {
  return served === undefined ? { warning: undefined, page: undefined } : {};
}

function publish(snapshot: Snapshot, fields: StatusFields, url: string): StepResult {
  const { config, pods } = snapshot;
  const ready = pods.filter(isReady);
  const pod = ready.find((each) => isSameCommit(readCommitAndImage(each), fields.built));
  if (pod === undefined)
    return { outcomes: { Published: createWaitingOutcome('Confirming', 'Waiting for a replica to become ready.') } };
  // The Deployment may be seen as rolled out before the end of its last older pod is seen, which could answer a probe.
  const older = ready.find((each) => readTemplateHash(each) !== readTemplateHash(pod));
  if (older !== undefined) {
    const commit = shortenCommit(readCommitAndImage(older).commit);
    return {
      outcomes: {
        Published: createWaitingOutcome('Confirming', `Waiting for the last replica of commit ${commit} to end.`),
      },
    };
  }
  const release = readPodRelease(pod);
  if (config.probeUrl === undefined) return reportPublished(snapshot, fields, url, { release, answer: undefined });
  const answer = judgeAnswer(toAnswerInput(snapshot, fields, pod));
  if (isAnswering(answer)) return reportPublished(snapshot, fields, url, { release, answer });
  return {
    ...reportUnanswered(snapshot, fields, url, { release, answer }),
    actions: planProbe(snapshot, { ...fields, answer }, fields.url === url),
  };
}

/** A release that has not worked yet, or does not work. */
function reportUnanswered(
  snapshot: Snapshot,
  fields: StatusFields,
  url: string,
  { release, answer }: { readonly release: Release; readonly answer: Answer },
): StepResult {
  const { rejection } = answer;
  if (rejection === undefined) {
    // Of an address that was published before, it matters more that the gateway is away.
    const failure = fields.url === url ? findUrlFailure(snapshot, url) : undefined;
    const outcome = failure?.reason === 'Unreachable' ? failure : reportProbing(snapshot, url);
    return { outcomes: { Published: outcome }, statusPatch: { answer } };
  }
  // The next reconcile rolls back to it.
  const hasOther = hasFallback(fields, release);
  const reason = reasonByRule[rejection.rule] ?? 'AppRespondsWithErrors';
  return {
    outcomes: { Published: createStalledOutcome(reason, rejection, hasOther ? retryMs : failingMs) },
    statusPatch: {
      answer,
      releases: recordAnswers(fields, release, false),
      // The release that served before stays in the status while it is brought back.
      ...(hasOther ? {} : { served: undefined }),
    },
  };
}

/** A release whose URL works, or is not probed. */
function reportPublished(
  snapshot: Snapshot,
  fields: StatusFields,
  url: string,
  { release, answer }: { readonly release: Release; readonly answer: Answer | undefined },
): StepResult {
  const page = updatePage(snapshot, fields.page, release);
  const faults = [findServerError(snapshot, fields.warning) ?? describeFaults(page)].filter(
    (each) => each !== undefined,
  );
  const notes = [
    answer?.instead === undefined ? undefined : describeInstead(answer.instead),
    describeLoss(fields.written, fields.findings),
  ].filter((each) => each !== undefined);
  const warning = [...notes, ...faults].join('; it ').slice(0, longestWarning);
  const isServed = fields.served !== undefined && isSameCommit(release, fields.served);
  const { image, commit } = release;
  const served = isServed ? fields.served : { image, commit, since: formatTimestamp(snapshot.now) };
  const live = reportLive(snapshot, url, { warning, hasFaults: faults.length > 0 });
  const secondMs = answer === undefined ? undefined : computeSecondProbeMs(answer, snapshot.now);
  return {
    outcomes: {
      Published: limitWait(
        findUrlFailure(snapshot, url) ?? live,
        isAtSlug(snapshot.app, url, snapshot.config.site) ? secondMs : retryMs,
      ),
    },
    statusPatch: {
      ...{ url, served, page, answer },
      warning: warning === '' ? undefined : warning,
      ...(answer === undefined ? {} : { releases: recordAnswers(fields, release, true) }),
    },
    actions: [...planProbe(snapshot, { ...fields, answer }, true), ...planLook(snapshot, page, release, answer)],
  };
}

const reasonByRule: Readonly<Record<string, ReasonOf<'stalled'>>> = {
  'run/server-error': 'AppRespondsWithErrors',
  'run/no-page': 'AppResponds404',
  'run/no-response': 'AppSilent',
};

function toAnswerInput(snapshot: Snapshot, fields: StatusFields, pod: Pod): AnswerInput {
  const { app, probe, now } = snapshot;
  const release = readPodRelease(pod);
  return {
    ...{ app, probe, now },
    known: fields.answer,
    release: { template: readTemplateHash(pod) ?? '', commit: release.commit },
    workedAt: findWorkedAt(fields, release),
    hasFallback: hasFallback(fields, release),
    port: Number(pod.metadata.annotations?.[annotations.port]),
  };
}

/** Another release is known to work. */
function hasFallback(fields: StatusFields, release: Release): boolean {
  return findWorkingRelease(fields, release) !== undefined;
}

function describeInstead(path: string): string {
  return `has no page at / (HTTP 404), and responds at ${path}`;
}

type BuiltCommit = Pick<Release, 'image' | 'commit'>;

function isSameCommit(one: BuiltCommit, other: Partial<BuiltCommit> | undefined): boolean {
  return one.image === other?.image && one.commit === other.commit;
}

type KnownPage = StatusFields['page'];

/** What is known of the page of the release that serves; of another release nothing is. */
function updatePage({ config, page, now }: Snapshot, known: KnownPage, { image, commit }: Release): KnownPage {
  if (config.probeUrl === undefined) return known;
  if (page !== undefined) return { image, commit, ...limitFaults(page), seenAt: formatTimestamp(now) };
  return isSameCommit({ image, commit }, known) ? known : { image, commit };
}

function limitFaults({ faults, ...rest }: PageView): PageView & { faults: string[] } {
  return { ...rest, faults: faults.slice(0, maximumFaults).map((fault) => fault.slice(0, longestWarning)) };
}

/** A release that has worked stays live while its URL responds with errors, with a warning. Without an answer nothing new is known. */
function findServerError({ probe }: Snapshot, known = ''): string | undefined {
  const { status } = probe ?? {};
  if (status === undefined) return serverError.test(known) ? known : undefined;
  return status >= 500 ? `responds with ${status} at /; see the app's log` : undefined;
}

function describeFaults(page: KnownPage): string | undefined {
  const faults = page?.faults ?? [];
  return faults.length === 0 ? undefined : faults.join('; it ').slice(0, longestWarning);
}

/**
 * Why visitors of a released app get no page: it, or the gateway before it, responds with an error, or nothing responds.
 * Until the next probe the last one holds. A slow page and a bare 404 are no failure: they may be the app's own.
 */
function findUrlFailure({ app, config, probe }: Snapshot, url: string): Outcome | undefined {
  if (config.probeUrl === undefined) return undefined;
  if (probe === undefined) return findKnownFailure(app);
  if (!isFailure(probe)) return undefined;
  if (probe.status !== undefined)
    return createFailedOutcome(
      'RespondsWithErrors',
      `${url} responds with HTTP ${probe.status}; see the app's log.`,
      failingMs,
    );
  return createFailedOutcome('Unreachable', `${url} is not reached through the gateway: ${probe.detail}.`, failingMs);
}

function findKnownFailure({ status }: Snapshot['app']): Outcome | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined || !isFailingReason(ready.reason)) return undefined;
  return createFailedOutcome(ready.reason, ready.message, failingMs);
}

function reportLive(
  { config }: Snapshot,
  url: string,
  { warning, hasFaults }: { readonly warning: string; readonly hasFaults: boolean },
): Outcome {
  if (hasFaults) return createDoneOutcome(warnedReason, `${url}: the app ${warning}.`, warnedMs);
  const note = warning === '' ? '' : ` It ${warning}.`;
  return createDoneOutcome(
    'Live',
    `The app is live at ${url}.${note}`,
    config.probeUrl === undefined ? undefined : wellMs,
  );
}

function limitWait(outcome: Outcome, ms: number | undefined): Outcome {
  return ms === undefined ? outcome : { ...outcome, afterMs: Math.min(ms, outcome.afterMs ?? ms) };
}

/** Probes run in the background; the answer brings the next reconcile, which then asks for none. */
function planProbe(
  { app, config, probe, pods }: Snapshot,
  { answer, plan }: Pick<StatusFields, 'answer' | 'plan'>,
  isLive: boolean,
): Action[] {
  if (config.probeUrl === undefined || probe !== undefined) return [];
  const { template, answeredAt, failingSince, instead } = answer ?? {};
  const { openapi, mcp } = app.spec.agents;
  const healthPath = app.spec.run.healthPath ?? findMainHealthPath(pods);
  return [
    {
      kind: 'probe',
      host: formatSlugHost(app, config.site),
      template,
      // The path that responded is tried first, and then mostly no other.
      paths: [instead, healthPath, ...(plan?.paths ?? []), openapi, mcp].filter((each) => each !== undefined),
      isLive,
      isPatient: answeredAt === undefined && failingSince !== undefined,
    },
  ];
}

/** That of the component at /, in an app that has several. */
function findMainHealthPath(pods: readonly Pod[]): string | undefined {
  const [serving] = pods.filter(isReady);
  return serving === undefined ? undefined : readPodComponents(serving)?.find(isMain)?.healthPath;
}

/** The page of the release is looked at if it was not yet, or did not work a while ago. */
function planLook(
  { app, config, page, now }: Snapshot,
  known: KnownPage,
  release: Release,
  answer: Answer | undefined,
): Action[] {
  if (config.probeUrl === undefined || page !== undefined) return [];
  const { seenAt, faults = [] } = known ?? {};
  const isDue = seenAt === undefined || (faults.length > 0 && now.getTime() - Date.parse(seenAt) >= faultyMs);
  const host = formatSlugHost(app, config.site);
  const { image, commit } = release;
  return isDue ? [{ kind: 'look', host, path: answer?.instead ?? '/', release: { image, commit } }] : [];
}

function reportProbing({ probe }: Snapshot, url: string): Outcome {
  const detail = probe === undefined ? '' : ` At the last attempt, ${probe.detail}.`;
  return createWaitingOutcome('Confirming', `Probing ${url} through the gateway.${detail}`, retryMs);
}
