// Follows a submission by its log, or by its status where the log is unavailable.
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiClient, LogEvent, Reason, Status } from './api-client.ts';
import { Fault, LogUnavailable, Unavailable } from './fault.ts';
import type { Output } from './output.ts';

/** What following takes. */
export interface FollowTools {
  readonly api: ApiClient;
  readonly output: Output;
  /** Wait between two reads of the status; default 1000 ms. */
  readonly lookMs?: number;
}

/** Failures in a row after which the status is given up. */
const maximumFailures = 30;
/** However long the API asks to wait. */
const maximumWaitMs = 60_000;

/** Shows the log, or without one the stages, until the commit is live or rejected. */
export async function follow(begun: Status, commit: string | undefined, tools: FollowTools): Promise<Status> {
  const { api, output, lookMs = 1_000 } = tools;
  let status = begun;
  let streamed = true;
  while (!isOver(status)) {
    if (streamed) streamed = await showLog(status.log_url, tools);
    else output.event(stageOf(status));
    status = await readStatus(status, { api, lookMs });
    if (!isOver(status)) await delay(lookMs);
  }
  if (commit !== undefined && status.status === 'live' && reasonOf(status) === undefined && status.commit !== commit) {
    throw new Fault(
      `${status.slug} serves commit ${(status.commit ?? 'unknown').slice(0, 7)}, which is newer than the one pushed here: somebody else submits to the same name`,
    );
  }
  return status;
}

/** Shows the log to its end. @returns false, after saying so, when it cannot be followed */
async function showLog(url: string, { api, output }: FollowTools): Promise<boolean> {
  try {
    for await (const event of api.log(url)) output.event(event);
    return true;
  } catch (error) {
    if (!(error instanceof LogUnavailable)) throw error;
    const [reason = ''] = error.message.split('\n');
    output.say(`the log cannot be followed (${reason}); checking the status instead`);
    return false;
  }
}

function stageOf({ status, message, stage, position, update }: Status): LogEvent {
  return { type: 'stage', status, message, stage: stage ?? update?.stage, position: position ?? update?.position };
}

/** Reads the status, again after each failure that may pass. @throws Fault */
export async function readStatus(
  { status_url: url }: Status,
  { api, lookMs = 1_000 }: Pick<FollowTools, 'api' | 'lookMs'>,
): Promise<Status> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await api.status(url);
    } catch (error) {
      if (!(error instanceof Unavailable) || failures === maximumFailures) throw error;
      await delay(Math.max(lookMs, Math.min(error.retryAfterMs ?? 0, maximumWaitMs)));
    }
  }
}

export function isOver(status: Status): boolean {
  return status.status !== 'in_pipeline' && status.update === undefined;
}

export function reasonOf(status: Status): Reason | undefined {
  return status.rejection ?? status.problem;
}
