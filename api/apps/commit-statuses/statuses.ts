// Derives the statuses of commits from what an app and its previews are now. Nothing depends on having seen what they were
// before, so a restart of the API loses no status.
import { isSuspended } from '../../../crds/control.ts';
import { type PublicReason, type PublicStatus, toPublicStatus } from '../../../crds/public-status.ts';
import { type App, readRepository } from '../hosted-apps.ts';
import { describeReason, formatStatusPageUrl } from '../status-view.ts';
import { maximumDescription, type ReportedStatus } from './forges.ts';

/** What one HostedApp says about commits. */
export interface SourceStatus {
  /** UID of the HostedApp. */
  readonly source: string;
  /** Its resourceVersion. A replica whose cache lags behind must not undo what another one has recorded. */
  readonly seen: string;
  /** The commit that it should run: a build of another one has ended. undefined: it is not known yet. */
  readonly wanted: string | undefined;
  /** undefined: there is nothing new to say about that commit. */
  readonly status: ReportedStatus | undefined;
}

/** Rejections that say nothing about the commit. */
const passingRules: ReadonlySet<string> = new Set(['run/image-pull', 'platform/suspended']);

/** Lists what an app and its previews say. Of two that build the same commit, the app comes first. */
export function listSourceStatuses(app: App, previews: readonly App[], baseUrl: string): SourceStatus[] {
  const statusUrl = formatStatusPageUrl(readRepository(app), baseUrl);
  const commits = new Set<string>();
  return [app, ...previews].map((each) => {
    const found = toSourceStatus(each, statusUrl);
    const { status } = found;
    if (status === undefined) return found;
    const isRepeated = commits.has(status.commit);
    commits.add(status.commit);
    return isRepeated ? { ...found, status: undefined } : found;
  });
}

function toSourceStatus(app: App, statusUrl: string): SourceStatus {
  const { uid: source, resourceVersion: seen } = app.metadata;
  // A build that was going on has ended.
  if (isSuspended(app.spec) || app.metadata.deletionTimestamp !== undefined)
    return { source, seen, wanted: '', status: undefined };
  const wanted = app.spec.control?.release ?? app.status?.source?.commit;
  return { source, seen, wanted, status: wanted === undefined ? undefined : describeCommit(app, wanted, statusUrl) };
}

function describeCommit(app: App, commit: string, statusUrl: string): ReportedStatus | undefined {
  const status = toPublicStatus(app);
  const pending = { commit, state: 'pending', description: buildText, targetUrl: statusUrl } as const;
  const toFailure = (reason: PublicReason): ReportedStatus | undefined =>
    passingRules.has(reason.rule)
      ? undefined
      : { commit, state: 'failure', description: describeRejection(reason), targetUrl: statusUrl };
  if (status.status === 'rejected') return toFailure(status.reason);
  // Whether there is a newer commit is still being checked.
  if (status.status === 'in_pipeline') return status.stage === 'pending' ? undefined : pending;
  if (status.commit === commit) return toSuccess(app, status);
  if (status.problem !== undefined) return toFailure(status.problem);
  return status.update === undefined || status.update.stage === 'pending' ? undefined : pending;
}

/** The same commit in another image, or a problem of what was live before, is no news about the commit. */
function toSuccess(app: App, status: PublicStatus & { status: 'live' }): ReportedStatus | undefined {
  const { commit, url, update, problem } = status;
  if (app.status?.phase !== 'Live' || update !== undefined || problem !== undefined) return undefined;
  const what = app.spec.previewOf === undefined ? 'app' : 'preview';
  return { commit, state: 'success', description: `The ${what} is live.`, targetUrl: url };
}

const buildText = 'The commit is being built and started.';

/** Of a build that was given up. */
export const endedText =
  'The build ended without a result: a newer commit was chosen, or the app or preview was stopped.';

/** The first sentence, in one line. A rejection can have words of a stranger's pull request. */
export function describeRejection(reason: PublicReason): string {
  const line = describeReason(reason)
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();
  const sentence = /^.+?[.!?…。](?=\s|$)/u.exec(line)?.[0] ?? line;
  if (sentence.length <= maximumDescription) return sentence;
  // Not between the two halves of a character.
  return `${sentence.slice(0, maximumDescription - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
}
