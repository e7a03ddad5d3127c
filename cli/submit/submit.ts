// Submits a folder or a repository and follows it to its end.
import { existsSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { toDnsLabel } from '../../crds/names.ts';
import type { Status, SubmittedStatus, ApiClient, LogEvent, Reason } from './api-client.ts';
import { Fault, type Installation, LogUnavailable, Unavailable } from './installation.ts';
import { localOwner, pushSnapshot, takeSnapshot } from './snapshot.ts';
import type { Output } from './output.ts';

/** What to submit. */
export interface Request {
  /** A folder, owner/name or a URL. */
  readonly what: string;
  /** Name of the repository that a folder becomes; default the folder's own. */
  readonly name?: string | undefined;
}

/** The API, the output and the installation for a submission. */
export interface Tools extends FollowTools {
  readonly installation: Installation;
  /** How long the platform may take to notice a pushed commit; default 120 000 ms. */
  readonly noticeMs?: number;
}

/** Submits, follows, and reports the outcome. Resolves with the exit code: 0 live, 1 rejected. @throws Fault */
export async function submit(request: Request, tools: Tools): Promise<0 | 1> {
  const { api, output } = tools;
  const { repo, commit } = isFolder(request.what)
    ? await pushFolder(request, tools)
    : { repo: request.what, commit: undefined };
  const first = await api.submit(repo);
  output.printLine(
    `${first.created ? 'submitted' : 'submitted before'}: ${first.slug}${first.retried ? ', trying again' : ''}`,
  );
  const noticed =
    commit === undefined ? await awaitChange(first, tools) : await awaitNotice(repo, commit, first, tools);
  const status = await follow(noticed, commit, tools);
  const reason = readReason(status);
  output.writeVerdict(status, reason);
  return status.status === 'live' && reason === undefined ? 0 : 1;
}

/** Whether the argument names a folder. @throws Fault when it looks like one but is not */
function isFolder(target: string): boolean {
  if (existsSync(target)) {
    if (statSync(target).isDirectory()) return true;
    throw new Fault(`${target} is a file: submit the folder that contains the app`);
  }
  if (/^([.~/]|[^/]*$)/.test(target))
    throw new Fault(`there is no folder ${target}: submit a folder, OWNER/NAME or a URL`);
  return false;
}

async function pushFolder(
  { what, name }: Request,
  { installation, output }: Tools,
): Promise<{ repo: string; commit: string }> {
  const label = toDnsLabel(name ?? basename(resolve(what)));
  if (label === '')
    throw new Fault("the folder's name cannot be used as the name of an app: choose one with --name NAME");
  const snapshot = await takeSnapshot(what);
  try {
    const provenance = {
      commit: '',
      'commit and changes': ', with uncommitted changes',
      folder: ', a snapshot of the folder',
    }[snapshot.origin];
    const repo = await pushSnapshot(snapshot, label, installation);
    output.printLine(`pushed ${what} to ${localOwner}/${label} at ${snapshot.commit.slice(0, 7)}${provenance}`);
    return { repo, commit: snapshot.commit };
  } finally {
    await snapshot.remove();
  }
}

/** Waits until the pushed commit is the newest that the platform knows, and requests further polls while waiting. */
async function awaitNotice(
  repo: string,
  commit: string,
  first: SubmittedStatus,
  { api, lookMs = 1_000, noticeMs = 120_000 }: Tools,
): Promise<Status> {
  const deadline = performance.now() + noticeMs;
  let status: Status = first;
  let { polled } = first;
  while (status.newest_commit !== commit && !(first.created && isOver(status))) {
    if (performance.now() > deadline) {
      throw new Fault(
        `the platform did not notice commit ${commit.slice(0, 7)} within ${Math.round(noticeMs / 1000)} s. Its status: ${status.message} See \`kubectl -n moorage-system logs deploy/moorage-operator\``,
      );
    }
    await delay(lookMs);
    // A repository is polled only once in some seconds; a commit that was pushed in between needs another poll.
    if (!polled) ({ polled } = await api.submit(repo));
    status = await readStatus(first, { api, lookMs });
  }
  return status;
}

/** Gives the platform some time to find a newer commit of a repository that was submitted before. */
async function awaitChange(first: SubmittedStatus, { api, lookMs = 1_000 }: Tools): Promise<Status> {
  let status: Status = first;
  for (
    let reads = 0;
    reads < 5 && !first.created && isOver(status) && status.newest_commit === first.newest_commit;
    reads += 1
  ) {
    await delay(lookMs);
    status = await readStatus(first, { api, lookMs });
  }
  return status;
}

// Following: by the log, or by the status if the log is unavailable.

/** The API and the output for following. */
export interface FollowTools {
  readonly api: ApiClient;
  readonly output: Output;
  /** Wait between two reads of the status; default 1000 ms. */
  readonly lookMs?: number;
}

/** Consecutive failures after which reading the status is given up. */
const maximumFailures = 30;
/** Maximum wait, even if the API asks for a longer one. */
const maximumWaitMs = 60_000;

/** Shows the log, or without one the stages, until the commit is live or rejected. */
export async function follow(begun: Status, commit: string | undefined, tools: FollowTools): Promise<Status> {
  const { api, output, lookMs = 1_000 } = tools;
  let status = begun;
  let streamed = true;
  while (!isOver(status)) {
    if (streamed) streamed = await showLog(status.log_url, tools);
    else output.writeEvent(toStageEvent(status));
    status = await readStatus(status, { api, lookMs });
    if (!isOver(status)) await delay(lookMs);
  }
  if (
    commit !== undefined &&
    status.status === 'live' &&
    readReason(status) === undefined &&
    status.commit !== commit
  ) {
    throw new Fault(
      `${status.slug} serves commit ${(status.commit ?? 'unknown').slice(0, 7)}, which is newer than the one pushed here: someone else submitted to the same name`,
    );
  }
  return status;
}

/** Shows the log to its end. @returns false, after a message, if it cannot be followed */
async function showLog(url: string, { api, output }: FollowTools): Promise<boolean> {
  try {
    for await (const event of api.log(url)) output.writeEvent(event);
    return true;
  } catch (error) {
    if (!(error instanceof LogUnavailable)) throw error;
    const [reason = ''] = error.message.split('\n');
    output.printLine(`the log cannot be followed (${reason}); checking the status instead`);
    return false;
  }
}

function toStageEvent({ status, message, stage, position, update }: Status): LogEvent {
  return { type: 'stage', status, message, stage: stage ?? update?.stage, position: position ?? update?.position };
}

/** Reads the status, and retries after each transient failure. @throws Fault */
export async function readStatus(
  { status_url: url }: Status,
  { api, lookMs = 1_000 }: Pick<FollowTools, 'api' | 'lookMs'>,
): Promise<Status> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await api.readStatus(url);
    } catch (error) {
      if (!(error instanceof Unavailable) || failures === maximumFailures) throw error;
      await delay(Math.max(lookMs, Math.min(error.retryAfterMs ?? 0, maximumWaitMs)));
    }
  }
}

export function isOver(status: Status): boolean {
  return status.status !== 'in_pipeline' && status.update === undefined;
}

export function readReason(status: Status): Reason | undefined {
  return status.rejection ?? status.problem;
}
