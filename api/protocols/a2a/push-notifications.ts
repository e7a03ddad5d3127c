// Stores the push notification configs of tasks and delivers each task to its URLs when it ends.
import { randomUUID } from 'node:crypto';
import { RequestMalformedError, TaskNotFoundError } from '@a2a-js/sdk/errors';
import type { TaskPushNotificationConfig, Task } from '@a2a-js/sdk';
import { z } from 'zod';
import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server';
import { V1PushNotificationSerializer } from '@a2a-js/sdk/server';
import { Problem } from '../../../lib/problem.ts';
import type { Database } from '../../billing/index.ts';
import { type Fetcher, fetchFailed, type ToolService, unknownJob, urlRefused } from '../../tools/index.ts';
import * as statements from './push-statements.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import { olderVersion } from './agent-card.ts';
import { toTask } from './task.ts';
import { toAgentTask } from './calls.ts';

export interface PushConfigsOptions {
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) if there is no database */
  readonly database: () => Database;
  readonly fetcher: Fetcher;
}

/** Maximum number of configs per task. */
const maximum = 5;

/** Keeps configs with their job in PostgreSQL, so that every replica sees them. */
export class PushConfigs {
  readonly #options: PushConfigsOptions;

  constructor(options: PushConfigsOptions) {
    this.#options = options;
  }

  /** Rejects a URL that could not be notified. @throws Problem (url-refused), RequestMalformedError */
  async check({ url }: PushConfig, signal: AbortSignal): Promise<void> {
    try {
      await checkPushUrl(this.#options.fetcher, url, signal);
    } catch (error) {
      if (!(error instanceof Problem) || error.type !== fetchFailed) throw error;
      throw new RequestMalformedError({
        message: `The URL of the push notification config cannot be used. ${error.message}`,
        cause: error,
      });
    }
  }

  /** Adds a config, or replaces the one with the same id. @throws RequestMalformedError if the task has too many */
  async save(job: string, { id, url, token, authentication }: PushConfig, version: string): Promise<void> {
    const secrets = [token ?? null, authentication?.scheme ?? null, authentication?.credentials ?? null];
    const saved = await this.#options.database().transaction(async (transaction) => {
      await transaction.query(statements.lock, [job]);
      return transaction.query(statements.save, [job, id, url, ...secrets, version, maximum]);
    });
    if (saved.length === 0)
      throw new RequestMalformedError(
        `Task ${job} has ${maximum} push notification configs, which is the limit. Delete one first.`,
      );
  }

  async list(job: string): Promise<PushConfig[]> {
    return (await this.#options.database().replay(statements.list, [job])).map(toPushConfig);
  }

  /** @throws TaskNotFoundError */
  async get(job: string, id: string): Promise<PushConfig> {
    const config = (await this.list(job)).find((one) => one.id === id);
    if (config !== undefined) return config;
    throw new TaskNotFoundError(
      `Task ${job} has no push notification config with the id ${JSON.stringify(id.slice(0, 128))}.`,
    );
  }

  /** Deleting a config that does not exist succeeds. */
  async delete(job: string, id: string): Promise<void> {
    await this.#options.database().replay(statements.remove, [job, id]);
  }
}

function toPushConfig({ id, url, token, scheme, credentials }: statements.ConfigRow): PushConfig {
  return {
    id,
    url,
    token: token ?? undefined,
    authentication: scheme === null || credentials === null ? undefined : { scheme, credentials },
  };
}

/** Where and how to send a notification when a task ends. */
export interface PushConfig {
  readonly id: string;
  readonly url: string;
  readonly token: string | undefined;
  readonly authentication: { readonly scheme: string; readonly credentials: string } | undefined;
}

const maxSecret = 4_096;
/** Allowed header text: a secret must not add another header. */
const headerText = z
  .string()
  .max(maxSecret, `must be at most ${maxSecret} characters`)
  .regex(/^[\u0021-\u007e](?:[\u0020-\u007e]*[\u0021-\u007e])?$/, 'must be printable ASCII without spaces around it');

const fields = z.object({
  id: z.string().regex(/^[A-Za-z0-9._-]{1,128}$/, 'must be 1 to 128 letters, digits, ".", "_" or "-"'),
  url: z.string().min(1, 'is missing').max(4_096, 'must be at most 4096 characters'),
  token: headerText.optional(),
  authentication: z
    .object({
      scheme: z
        .string()
        .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/, 'must be the name of an HTTP scheme, such as Bearer'),
      credentials: headerText,
    })
    .optional(),
});

/** Validates a config from a caller. @throws RequestMalformedError that explains what to change */
export function readPushConfig(given: TaskPushNotificationConfig): PushConfig {
  const { id, url, token, authentication } = given;
  const read = fields.safeParse({
    id: id === '' ? randomUUID() : id,
    url,
    token: token === '' ? undefined : token,
    // Clients of 0.3 may send a scheme without credentials, which authenticates nothing.
    authentication: (authentication?.credentials ?? '') === '' ? undefined : authentication,
  });
  if (read.success) return { token: undefined, authentication: undefined, ...read.data };
  const faults = read.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
  throw new RequestMalformedError(`The push notification config is invalid: ${faults.join('; ')}.`);
}

/** Rejects a URL that could not be notified. @throws Problem (url-refused, fetch-failed) */
export async function checkPushUrl(fetcher: Fetcher, url: string, signal: AbortSignal): Promise<void> {
  await fetcher.check({ url, httpsOnly: true, signal });
}

export interface PushDeliveriesOptions {
  readonly database: () => Database;
  readonly fetcher: Fetcher;
  readonly toolService: Pick<ToolService, 'follow'>;
  readonly baseUrl: string;
  readonly log: Logger;
  /** Aborts when the process is about to exit. */
  readonly ending: AbortSignal;
  readonly times?: PushTimes | undefined;
}

export interface PushTimes {
  /**
   * Time after which another process retries a delivery that this one has claimed; longer than one attempt. Default 30
   * s.
   */
  readonly leaseMs: number;
  /** Delay before the second attempt; each further delay is four times as long. Default 5 s. */
  readonly firstMs: number;
}

const usualTimes: PushTimes = { leaseMs: 30_000, firstMs: 5_000 };
/** With the default delays, the last attempt is about half an hour after the first. */
const maxAttempts = 6;
const timeoutMs = 10_000;
/** Maximum number of parallel deliveries per process. */
const atOnce = 20;

const serializers = { newer: new V1PushNotificationSerializer(), older: new V03PushNotificationSerializer() };

/**
 * Notifies the URLs in a task's configs when the task ends: at least once, with a bounded number of attempts. The
 * process that claims a delivery makes it; another takes over if that process dies.
 */
export class PushDeliveries {
  readonly #options: PushDeliveriesOptions;

  constructor(options: PushDeliveriesOptions) {
    this.#options = options;
  }

  /** Delivers pending notifications. Call this repeatedly. @returns the number of attempts */
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
      // The next process retries immediately.
      if (ending.aborted) return void (await database().replay(statements.retry, [...own, 0]));
      const isLast = push.attempts >= maxAttempts || isFinal(error);
      log.warn(
        { err: error, job: push.job, origin: describeOrigin(push.url), attempt: push.attempts },
        isLast ? 'gave up on a push notification' : 'a push notification failed, retrying',
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
    await sendPush(fetcher, push, toTask(toAgentTask(tool, report), { baseUrl, requestId: id }), ending);
  }
}

/** Sends a task to one URL. @throws Problem (url-refused, fetch-failed) */
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
    // The caller did not name the redirect target, and a redirected POST often loses its body.
    stayHere: true,
    maxBytes: 1_048_576,
    timeoutMs,
    signal,
  });
  if (status < 200 || status > 299) throw new Problem(fetchFailed, `${describeOrigin(url)} returned status ${status}.`);
}

/** Returns whether another attempt could not succeed: the URL is not allowed, or the task no longer exists. */
function isFinal(error: unknown): boolean {
  return error instanceof Problem && [urlRefused, unknownJob].includes(error.type);
}

function describeOrigin(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : 'the address';
}
