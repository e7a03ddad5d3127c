// Step Publish: calls an app live once it answers, through the gateway itself where that is configured.
import { timestamp } from '../../objects/timestamp.ts';
import type { Observed } from '../../reconcile/snapshot.ts';
import {
  done,
  waiting,
  warnedReason,
  type Draft,
  type Outcome,
  type Outcomes,
  type StepResult,
} from '../../reconcile/outcome.ts';
import { isReady } from '../deploy/pods.ts';
import { releaseOf } from '../deploy/deploy.ts';
import { replicasOf } from '../deploy/objects.ts';
import { hostOf, urlOf } from '../../reconcile/settings.ts';

const retryMs = 1_000;
const doubtMs = 30_000;
/** An app that answers with errors is asked again this soon; one that is well, whenever it is looked at. */
const warnedMs = 30_000;

/** `before`: how the steps before stand; an app is published only when Deploy and Route hold. */
export function publishStep(observed: Observed, draft: Draft, before: Outcomes): StepResult {
  const { app, settings } = observed;
  if (draft.served === undefined) delete draft.warning;
  if (![before.Deployed, before.Routed].every((outcome) => outcome?.kind === 'done')) return { outcomes: {} };
  if (replicasOf(app) === 0)
    return { outcomes: { Published: waiting('ScaledToZero', 'No replica is asked for, so nothing answers.') } };
  const url = urlOf(settings, app.metadata.name);
  if (draft.url !== url && mustAsk(observed)) return probing(observed, url);
  const release = observed.pods.filter(isReady).map(releaseOf)[0];
  if (release === undefined)
    return { outcomes: { Published: waiting('Confirming', 'Waiting to see a replica that is ready.') } };
  draft.url = url;
  draft.served ??= { ...release, since: timestamp(observed.now) };
  tellWarning(observed, draft);
  // The answer to this question brings the next look, which then asks no more.
  const isAsked = settings.probeUrl !== undefined && observed.probe === undefined;
  return {
    outcomes: { Published: live(url, draft.warning) },
    ...(isAsked ? { actions: [{ kind: 'probe', host: hostOf(settings, app.metadata.name) }] } : {}),
  };
}

function live(url: string, warning: string | undefined): Outcome {
  return warning === undefined
    ? done('Live', `${url} answers.`)
    : done(warnedReason, `${url}: the app ${warning}.`, warnedMs);
}

/**
 * It listens, so it is live; that it fails whoever opens its address is worth a word. Without an answer nothing new is
 * known.
 */
function tellWarning({ probe }: Observed, draft: Draft): void {
  if (probe?.status === undefined) return;
  if (probe.status >= 500) draft.warning = `answers ${probe.status} on /; see the app's log`;
  else delete draft.warning;
}

function mustAsk({ settings, probe, app, now }: Observed): boolean {
  if (settings.probeUrl === undefined || probe?.answers === true) return false;
  // A gateway takes a moment to learn a route. What is still a bare 404 after that is the app's own.
  const since = app.status?.phase === 'Routing' ? Date.parse(app.status.since ?? '') : now.getTime();
  return probe?.isDoubtful !== true || now.getTime() - since < doubtMs;
}

function probing(observed: Observed, url: string): StepResult {
  const detail = observed.probe === undefined ? '' : ` The last answer was ${observed.probe.detail}.`;
  return {
    outcomes: { Published: waiting('Confirming', `Asking ${url} through the gateway.${detail}`, retryMs) },
    actions: [{ kind: 'probe', host: hostOf(observed.settings, observed.app.metadata.name) }],
  };
}
