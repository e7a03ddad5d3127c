// Step Publish: reports an app as live once it answers, through the gateway itself where that is configured.
import { formatAppHost, formatAppUrl } from '../../../crds/names.ts';
import { formatTimestamp } from '../../objects/kinds.ts';
import {
  applyPatch,
  createDoneOutcome,
  createFailedOutcome,
  isFailingReason,
  shortenCommit,
  createWaitingOutcome,
  warnedReason,
  type Action,
  type Outcome,
  type Progress,
  type StatusFields,
  type StatusPatch,
  type StepResult,
} from '../../reconcile/outcome.ts';
import type { PageView, Snapshot } from '../../reconcile/snapshot.ts';
import { resolveReplicas } from '../deploy/objects.ts';
import { isReady, readCommitAndImage } from '../deploy/pods.ts';
import { reportPublishedAtRest } from '../deploy/rest.ts';
import { isFailure } from './probe.ts';

const retryMs = 1_000;
const doubtMs = 30_000;
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
type Release = Readonly<Record<'image' | 'commit', string>>;

/** Runs once Deploy and Route hold. */
export function runPublishStep(snapshot: Snapshot, { fields }: Progress): StepResult {
  const { app, config } = snapshot;
  const patch = forgetUnserved(fields);
  if (resolveReplicas(app) === 0) {
    const outcome = createWaitingOutcome('ScaledToZero', 'The app is scaled to zero, so nothing responds.');
    return { outcomes: { Published: outcome }, statusPatch: patch };
  }
  const url = formatAppUrl(app.metadata.name, config.site);
  const atRest = reportPublishedAtRest(fields.idle);
  if (atRest !== undefined) return { outcomes: { Published: atRest }, statusPatch: { ...patch, url } };
  const result =
    fields.url !== url && shouldProbe(snapshot)
      ? reportProbing(snapshot, url)
      : publish(snapshot, applyPatch(fields, patch), url);
  return { ...result, statusPatch: { ...patch, ...result.statusPatch } };
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
  const isPublished = url === formatAppUrl(app.metadata.name, config.site) && served !== undefined;
  const isAwake = resolveReplicas(app) > 0 && reportPublishedAtRest(idle) === undefined;
  if (!isRouting || !isPublished || !isAwake) return { statusPatch };
  const published =
    findUrlFailure(snapshot, url) ?? createWaitingOutcome('Confirming', 'Waiting for the route.', wellMs);
  return { outcomes: { Published: published }, statusPatch, actions: planProbe(snapshot) };
}

/** If nothing serves, earlier findings no longer apply. */
function forgetUnserved({ served }: StatusFields): StatusPatch {
  return served === undefined ? { warning: undefined, page: undefined } : {};
}

function publish(snapshot: Snapshot, fields: StatusFields, url: string): StepResult {
  const release = snapshot.pods
    .filter(isReady)
    .map(readCommitAndImage)
    .find((ready) => isSameRelease(ready, fields.built));
  if (release === undefined)
    return { outcomes: { Published: createWaitingOutcome('Confirming', 'Waiting for a replica to become ready.') } };
  // The Deployment may be seen as rolled out before the end of its last older pod is seen.
  if (fields.served !== undefined && !isSameRelease(release, fields.served)) {
    const older = shortenCommit(fields.served.commit);
    return {
      outcomes: {
        Published: createWaitingOutcome('Confirming', `Waiting for the last replica of commit ${older} to end.`),
      },
      statusPatch: { url },
    };
  }
  const page = updatePage(snapshot, fields.page, release);
  const warning = findServerError(snapshot, fields.warning) ?? describeFaults(page);
  const served = fields.served ?? { ...release, since: formatTimestamp(snapshot.now) };
  return {
    outcomes: { Published: findUrlFailure(snapshot, url) ?? reportLive(snapshot, url, warning) },
    statusPatch: { url, served, page, warning },
    actions: [...planProbe(snapshot), ...planLook(snapshot, page, release)],
  };
}

function isSameRelease(one: Release, other: Partial<Release> | undefined): boolean {
  return one.image === other?.image && one.commit === other.commit;
}

type KnownPage = StatusFields['page'];

/** What is known of the page of the release that serves; of another release nothing is. */
function updatePage({ config, page, now }: Snapshot, known: KnownPage, release: Release): KnownPage {
  if (config.probeUrl === undefined) return known;
  if (page !== undefined) return { ...release, ...limitFaults(page), seenAt: formatTimestamp(now) };
  return isSameRelease(release, known) ? known : { ...release };
}

function limitFaults({ faults, ...rest }: PageView): PageView & { faults: string[] } {
  return { ...rest, faults: faults.slice(0, maximumFaults).map((fault) => fault.slice(0, longestWarning)) };
}

/**
 * It listens, so it is live; that its address answers everybody with an error is worth a warning. Without an answer
 * nothing new is known.
 */
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

function reportLive({ config }: Snapshot, url: string, warning: string | undefined): Outcome {
  return warning === undefined
    ? createDoneOutcome('Live', `The app is live at ${url}.`, config.probeUrl === undefined ? undefined : wellMs)
    : createDoneOutcome(warnedReason, `${url}: the app ${warning}.`, warnedMs);
}

/** Probes run in the background; the answer brings the next reconcile, which then asks for none. */
function planProbe({ app, config, probe }: Snapshot): Action[] {
  if (config.probeUrl === undefined || probe !== undefined) return [];
  return [{ kind: 'probe', host: formatAppHost(app.metadata.name, config.site), isLive: true }];
}

/** The page of the release is looked at if it was not yet, or did not work a while ago. */
function planLook({ app, config, page, now }: Snapshot, known: KnownPage, release: Release): Action[] {
  if (config.probeUrl === undefined || page !== undefined) return [];
  const { seenAt, faults = [] } = known ?? {};
  const isDue = seenAt === undefined || (faults.length > 0 && now.getTime() - Date.parse(seenAt) >= faultyMs);
  return isDue ? [{ kind: 'look', host: formatAppHost(app.metadata.name, config.site), release }] : [];
}

function shouldProbe({ config, probe, app, now }: Snapshot): boolean {
  if (config.probeUrl === undefined || probe?.responds === true) return false;
  // A gateway takes a moment to learn a route. What is still a bare 404 or silence after that is the app's own.
  const since = app.status?.phase === 'Routing' ? Date.parse(app.status.since ?? '') : now.getTime();
  return probe?.isDoubtful !== true || now.getTime() - since < doubtMs;
}

function reportProbing({ app, config, probe }: Snapshot, url: string): StepResult {
  const detail = probe === undefined ? '' : ` At the last attempt, ${probe.detail}.`;
  return {
    outcomes: {
      Published: createWaitingOutcome('Confirming', `Probing ${url} through the gateway.${detail}`, retryMs),
    },
    actions: [{ kind: 'probe', host: formatAppHost(app.metadata.name, config.site) }],
  };
}
