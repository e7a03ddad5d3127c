// Step Publish: calls an app live once it answers, through the gateway itself where that is configured.
import { timestamp } from '../../objects/timestamp.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import {
  done,
  short,
  type Action,
  waiting,
  warnedReason,
  type Draft,
  type Outcome,
  type Outcomes,
  type StepResult,
} from '../../reconcile/outcome.ts';
import { isReady } from '../deploy/pods.ts';
import { releaseOf } from '../deploy/deploy.ts';
import { publishedAtRest } from '../deploy/idle/keep.ts';
import { replicasOf } from '../deploy/objects.ts';
import { appHost, appUrl } from '../../../crds/app-url.ts';
import { forgetSights, mustLook, recordPage, recordWarning, type Release } from './sights.ts';

const retryMs = 1_000;
const doubtMs = 30_000;
/** An app that answers with errors is asked again this soon; one that is well, whenever it is looked at. */
const warnedMs = 30_000;

/** `before`: how the steps before stand; an app is published only when Deploy and Route hold. */
export function publishStep(snapshot: Snapshot, draft: Draft, before: Outcomes): StepResult {
  const { app, config } = snapshot;
  if (draft.served === undefined) forgetSights(draft);
  if (![before.Deployed, before.Routed].every((outcome) => outcome?.kind === 'done')) return { outcomes: {} };
  if (replicasOf(app) === 0)
    return { outcomes: { Published: waiting('ScaledToZero', 'The app is scaled to zero, so nothing responds.') } };
  const url = appUrl(app.metadata.name, config.site);
  const atRest = publishedAtRest(draft);
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
    .map(releaseOf)
    .find((ready) => isSame(ready, draft.built));
  if (release === undefined)
    return { outcomes: { Published: waiting('Confirming', 'Waiting for a replica to become ready.') } };
  draft.url = url;
  // The Deployment may be seen as rolled out before the end of its last older pod is seen.
  if (draft.served !== undefined && !isSame(draft.served, release)) {
    const older = short(draft.served.commit);
    return {
      outcomes: { Published: waiting('Confirming', `Waiting for the last replica of commit ${older} to end.`) },
    };
  }
  draft.served ??= { ...release, since: timestamp(snapshot.now) };
  recordPage(snapshot, draft, release);
  recordWarning(snapshot, draft);
  return { outcomes: { Published: live(url, draft.warning) }, actions: looks(snapshot, draft, release) };
}

function isSame(one: Release, other: Release | undefined): boolean {
  return one.image === other?.image && one.commit === other.commit;
}

/** What is asked in the background; the answers bring the next reconcile, which then asks no more. */
function looks(snapshot: Snapshot, draft: Draft, release: Release): Action[] {
  const { app, config, probe } = snapshot;
  if (config.probeUrl === undefined) return [];
  const host = appHost(app.metadata.name, config.site);
  return [
    ...(probe === undefined ? [{ kind: 'probe', host } as const] : []),
    ...(mustLook(snapshot, draft) ? [{ kind: 'look', host, release } as const] : []),
  ];
}

function live(url: string, warning: string | undefined): Outcome {
  return warning === undefined
    ? done('Live', `The app is live at ${url}.`)
    : done(warnedReason, `${url}: the app ${warning}.`, warnedMs);
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
