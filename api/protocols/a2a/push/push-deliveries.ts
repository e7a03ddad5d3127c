// Notifies whom the configs of a task name of its end: at least once, a bounded number of times, by whichever process
// comes first, and by another one where that dies.
import type { Task } from '@a2a-js/sdk';
import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server';
import { V1PushNotificationSerializer } from '@a2a-js/sdk/server';
import type { Logger } from '../../../../lib/telemetry.ts';
import { Problem } from '../../../../lib/problem.ts';
import type { Database } from '../../../billing/index.ts';
import { type Fetcher, fetchFailed, type ToolService, unknownJob, urlRefused } from '../../../tools/index.ts';
import { olderVersion } from '../agent-card.ts';
import { taskOf } from '../task.ts';
import { agentTask } from '../tool-answers.ts';
import * as statements from './statements.ts';

export interface PushDeliveriesOptions {
  readonly database: () => Database;
  readonly fetcher: Fetcher;
  readonly toolService: Pick<ToolService, 'follow'>;
  readonly baseUrl: string;
  readonly log: Logger;
  /** Aborted when the process is about to end. */
  readonly ending: AbortSignal;
  readonly times?: PushTimes | undefined;
}

export interface PushTimes {
  /** After which another process takes over what this one tries; longer than a try. Default 30 s. */
  readonly leaseMs: number;
  /** Before the second try; each further one waits four times as long. Default 5 s. */
  readonly firstMs: number;
}

const usualTimes: PushTimes = { leaseMs: 30_000, firstMs: 5_000 };
/** With the usual times, the last one is about half an hour after the first. */
const maxAttempts = 6;
const timeoutMs = 10_000;
/** Tried at once in one process. */
const atOnce = 20;

const serializers = { newer: new V1PushNotificationSerializer(), older: new V03PushNotificationSerializer() };

export class PushDeliveries {
  readonly #options: PushDeliveriesOptions;

  constructor(options: PushDeliveriesOptions) {
    this.#options = options;
  }

  /** Tries what is due. To be repeated. @returns how many */
  async deliver(): Promise<number> {
    const { database, ending, times = usualTimes } = this.#options;
    if (ending.aborted) return 0;
    const due = await database().query(statements.claim, [times.leaseMs, atOnce]);
    await Promise.all(due.map((push) => this.#try(push, times)));
    return due.length;
  }

  async #try(push: statements.ClaimedPush, { firstMs }: PushTimes): Promise<void> {
    const { database, log, ending } = this.#options;
    const own = [push.job, push.id, push.attempts];
    try {
      await this.#send(push);
      await database().replay(statements.end, [...own, 'delivered']);
    } catch (error) {
      // The next process begins where this one stopped.
      if (ending.aborted) return void (await database().replay(statements.retry, [...own, 0]));
      const isLast = push.attempts >= maxAttempts || isFinal(error);
      log.warn(
        { err: error, job: push.job, origin: originOf(push.url), attempt: push.attempts },
        isLast ? 'a push notification is given up' : 'a push notification failed, trying again',
      );
      await database().replay(
        isLast ? statements.end : statements.retry,
        isLast ? [...own, 'abandoned'] : [...own, firstMs * 4 ** (push.attempts - 1)],
      );
    }
  }

  async #send(push: statements.ClaimedPush): Promise<void> {
    const { toolService, fetcher, ending, baseUrl } = this.#options;
    const { job: id, tool, owner } = push;
    const report = await toolService.follow({ id, tool, owner }, { requestId: id, waitMs: 0, signal: ending });
    await sendPush(fetcher, push, taskOf(agentTask(tool, report), { baseUrl, requestId: id }), ending);
  }
}

/** Sends a task once. @throws Problem (url-refused, fetch-failed) */
export async function sendPush(
  fetcher: Fetcher,
  push: Pick<statements.ClaimedPush, 'url' | 'token' | 'scheme' | 'credentials' | 'version'>,
  task: Task,
  signal: AbortSignal,
): Promise<void> {
  const { url, token, scheme, credentials, version } = push;
  const serializer = version === olderVersion ? serializers.older : serializers.newer;
  const { body, contentType } = serializer.serialize({ payload: { $case: 'task', value: task } }, task);
  const { status } = await fetcher.fetch({
    url,
    method: 'POST',
    headers: {
      'content-type': contentType,
      ...(token === null ? {} : { 'x-a2a-notification-token': token }),
      ...(scheme === null || credentials === null ? {} : { authorization: `${scheme} ${credentials}` }),
    },
    body,
    httpsOnly: true,
    // Another address was not checked by whoever set this one, and a redirected POST often comes without its body.
    stayHere: true,
    maxBytes: 1_048_576,
    timeoutMs,
    signal,
  });
  if (status < 200 || status > 299) throw new Problem(fetchFailed, `${originOf(url)} returned status ${status}.`);
}

/** Nothing that another try would change: the address is closed to us, or the task is gone. */
function isFinal(error: unknown): boolean {
  return error instanceof Problem && [urlRefused, unknownJob].includes(error.type);
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'the address';
}
