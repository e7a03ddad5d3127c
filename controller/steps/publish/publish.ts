// Step Publish: calls an app live once it answers, through the gateway itself where that is configured.
import { appHost, appUrl } from '../../../crds/names.ts';
import { formatTimestamp } from '../../objects/values.ts';
import {
  done,
  failed,
  isFailingReason,
  shortenCommit,
  waiting,
  warnedReason,
  type Action,
  type Draft,
  type Outcome,
  type Outcomes,
  type StepResult,
} from '../../reconcile/outcome.ts';
import type { PageView, ProbeResult, Snapshot } from '../../reconcile/snapshot.ts';
import { resolveReplicas } from '../deploy/objects.ts';
import { isReady, readCommitAndImage } from '../deploy/pods.ts';
import { reportPublishedAtRest } from '../deploy/rest.ts';
import { isFailure } from './probe.ts';

const retryMs = 1_000;
const doubtMs = 30_000;
/** How soon an app is asked again: one that is well, one whose page shows faults, and one whose URL fails. */
const wellMs = 60_000;
const warnedMs = 30_000;
const failingMs = 10_000;

/** `before`: how the steps before stand; an app is published only when Deploy and Route hold. */
export function publishStep(snapshot: Snapshot, draft: Draft, before: Outcomes): StepResult {
  const { app, config } = snapshot;
  if (draft.served === undefined) forgetSights(draft);
  if (before.Deployed?.kind !== 'done') return { outcomes: {} };
  if (before.Routed?.kind !== 'done') return probeWhileRouting(snapshot, draft, before.Routed);
  if (resolveReplicas(app) === 0)
    return { outcomes: { Published: waiting('ScaledToZero', 'The app is scaled to zero, so nothing responds.') } };
  const url = appUrl(app.metadata.name, config.site);
  const atRest = reportPublishedAtRest(draft);
  if (atRest !== undefined) {
    draft.url = url;
    return { outcomes: { Published: atRest } };
  }
  if (draft.url !== url && mustAsk(snapshot)) return probing(snapshot, url);
  return publish(snapshot, draft, url);
}

function publish(snapshot: Snapshot, draft: Draft, url: string): StepResult {
  const release = snapshot.pods
    .filter(isReady)
    .map(readCommitAndImage)
    .find((ready) => isSame(ready, draft.built));
  if (release === undefined)
    return { outcomes: { Published: waiting('Confirming', 'Waiting for a replica to become ready.') } };
  draft.url = url;
  // The Deployment may be seen as rolled out before the end of its last older pod is seen.
  if (draft.served !== undefined && !isSame(draft.served, release)) {
    const older = shortenCommit(draft.served.commit);
    return {
      outcomes: { Published: waiting('Confirming', `Waiting for the last replica of commit ${older} to end.`) },
    };
  }
  draft.served ??= { ...release, since: formatTimestamp(snapshot.now) };
  recordPage(snapshot, draft, release);
  recordWarning(snapshot, draft);
  const published = urlFailure(snapshot, url) ?? live(snapshot, url, draft.warning);
  return { outcomes: { Published: published }, actions: looks(snapshot, draft, release) };
}

/**
 * A gateway that does not confirm the new version of a route may still follow the old one, or be gone. So an address
 * that was published before is probed all the same.
 */
function probeWhileRouting(snapshot: Snapshot, draft: Draft, routed: Outcome | undefined): StepResult {
  const { app, config } = snapshot;
  const { url, served } = draft;
  const isPublished = url === appUrl(app.metadata.name, config.site) && served !== undefined;
  const isAwake = resolveReplicas(app) > 0 && reportPublishedAtRest(draft) === undefined;
  if (routed?.kind !== 'waiting' || !isPublished || !isAwake) return { outcomes: {} };
  const published = urlFailure(snapshot, url) ?? waiting('Confirming', 'Waiting for the route.', wellMs);
  return { outcomes: { Published: published }, actions: probeActions(snapshot) };
}

function isSame(one: Release, other: Release | undefined): boolean {
  return one.image === other?.image && one.commit === other.commit;
}

/** What is asked in the background; the answers bring the next reconcile, which then asks no more. */
function looks(snapshot: Snapshot, draft: Draft, release: Release): Action[] {
  const { app, config } = snapshot;
  const isLookDue = config.probeUrl !== undefined && mustLook(snapshot, draft);
  const look: Action[] = isLookDue ? [{ kind: 'look', host: appHost(app.metadata.name, config.site), release }] : [];
  return [...probeActions(snapshot), ...look];
}

function probeActions({ app, config, probe }: Snapshot): Action[] {
  if (config.probeUrl === undefined || probe !== undefined) return [];
  return [{ kind: 'probe', host: appHost(app.metadata.name, config.site), isLive: true }];
}

function live({ config }: Snapshot, url: string, warning: string | undefined): Outcome {
  return warning === undefined
    ? done('Live', `The app is live at ${url}.`, config.probeUrl === undefined ? undefined : wellMs)
    : done(warnedReason, `${url}: the app ${warning}.`, warnedMs);
}

/**
 * Why visitors of a released app get no page: it, or the gateway before it, responds with an error, or nothing responds.
 * Until the next probe the last one holds. A slow page and a bare 404 are no failure: they may be the app's own.
 */
function urlFailure({ app, config, probe }: Snapshot, url: string): Outcome | undefined {
  if (config.probeUrl === undefined) return undefined;
  if (probe === undefined) return knownFailure(app);
  if (!isFailure(probe)) return undefined;
  if (probe.status !== undefined)
    return failed('RespondsWithErrors', `${url} responds with HTTP ${probe.status}; see the app's log.`, failingMs);
  return failed('Unreachable', `${url} is not reached through the gateway: ${probe.detail}.`, failingMs);
}

function knownFailure({ status }: Snapshot['app']): Outcome | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined || !isFailingReason(ready.reason)) return undefined;
  return failed(ready.reason, ready.message, failingMs);
}

function mustAsk({ config, probe, app, now }: Snapshot): boolean {
  if (config.probeUrl === undefined || probe?.responds === true) return false;
  // A gateway takes a moment to learn a route. What is still a bare 404 or silence after that is the app's own.
  const since = app.status?.phase === 'Routing' ? Date.parse(app.status.since ?? '') : now.getTime();
  return probe?.isDoubtful !== true || now.getTime() - since < doubtMs;
}

function probing(snapshot: Snapshot, url: string): StepResult {
  const detail = snapshot.probe === undefined ? '' : ` At the last attempt, ${snapshot.probe.detail}.`;
  return {
    outcomes: { Published: waiting('Confirming', `Probing ${url} through the gateway.${detail}`, retryMs) },
    actions: [{ kind: 'probe', host: appHost(snapshot.app.metadata.name, snapshot.config.site) }],
  };
}

// What was seen of a live app, by a probe and by a look at its page, and the warning that comes of it.

/** A page that does not work is looked at again after this long: the app may only have been starting. */
const faultyMs = 60_000;
const maximumFaults = 5;
const longestWarning = 300;
const serverError = /^responds with 5\d\d at \//;

/** The release that serves. */
export type Release = Readonly<Record<'image' | 'commit', string>>;

/** Nothing serves, so nothing that was seen is true any more. */
export function forgetSights(draft: Draft): void {
  delete draft.warning;
  delete draft.page;
}

/** What is known of the page of the release that serves; of another one nothing is. */
export function recordPage({ config, page, now }: Snapshot, draft: Draft, release: Release): void {
  if (config.probeUrl === undefined) return;
  if (page !== undefined) draft.page = { ...release, ...bounded(page), seenAt: formatTimestamp(now) };
  else if (!isOf(draft, release)) draft.page = { ...release };
}

/** True when the page of the release was not looked at, or did not work a while ago. */
export function mustLook({ page, now }: Snapshot, draft: Draft): boolean {
  if (page !== undefined) return false;
  const { seenAt, faults = [] } = draft.page ?? {};
  return seenAt === undefined || (faults.length > 0 && now.getTime() - Date.parse(seenAt) >= faultyMs);
}

/**
 * It listens, so it is live; that it fails whoever opens its address is worth a word. Without an answer nothing new is
 * known.
 */
export function recordWarning({ probe }: Snapshot, draft: Draft): void {
  const warning = warningOf(probe, draft) ?? pageWarning(draft);
  if (warning === undefined) delete draft.warning;
  else draft.warning = warning;
}

function warningOf(probe: ProbeResult | undefined, { warning = '' }: Draft): string | undefined {
  const { status } = probe ?? {};
  if (status === undefined) return serverError.test(warning) ? warning : undefined;
  return status >= 500 ? `responds with ${status} at /; see the app's log` : undefined;
}

function pageWarning({ page }: Draft): string | undefined {
  const faults = page?.faults ?? [];
  return faults.length === 0 ? undefined : faults.join('; it ').slice(0, longestWarning);
}

function isOf({ page }: Draft, { image, commit }: Release): boolean {
  return page?.image === image && page.commit === commit;
}

function bounded({ faults, ...rest }: PageView): PageView & { faults: string[] } {
  return { ...rest, faults: faults.slice(0, maximumFaults).map((fault) => fault.slice(0, longestWarning)) };
}
