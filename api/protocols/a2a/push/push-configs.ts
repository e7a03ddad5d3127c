// The push notification configs of tasks: kept in PostgreSQL with the job, so that any replica has them.
import { RequestMalformedError, TaskNotFoundError } from '@a2a-js/sdk/errors';
import { Problem } from '../../../../lib/problem.ts';
import type { Database } from '../../../billing/index.ts';
import { type Fetcher, fetchFailed } from '../../../tools/index.ts';
import { checkPushUrl, type PushConfig } from './push-config.ts';
import * as statements from './statements.ts';

export interface PushConfigsOptions {
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  readonly database: () => Database;
  readonly fetcher: Fetcher;
}

/** Configs of one task. */
const maximum = 5;

export class PushConfigs {
  readonly #options: PushConfigsOptions;

  constructor(options: PushConfigsOptions) {
    this.#options = options;
  }

  /** Refuses an address that would not be notified. @throws Problem (url-refused), RequestMalformedError */
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

  /** Adds a config, or replaces the one of the same id. @throws RequestMalformedError where there are too many */
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
    return (await this.#options.database().replay(statements.list, [job])).map(configOf);
  }

  /** @throws TaskNotFoundError */
  async get(job: string, id: string): Promise<PushConfig> {
    const config = (await this.list(job)).find((one) => one.id === id);
    if (config !== undefined) return config;
    throw new TaskNotFoundError(
      `Task ${job} has no push notification config with the id ${JSON.stringify(id.slice(0, 128))}.`,
    );
  }

  /** One that is not there is as good as deleted. */
  async delete(job: string, id: string): Promise<void> {
    await this.#options.database().replay(statements.remove, [job, id]);
  }
}

function configOf({ id, url, token, scheme, credentials }: statements.ConfigRow): PushConfig {
  return {
    id,
    url,
    token: token ?? undefined,
    authentication: scheme === null || credentials === null ? undefined : { scheme, credentials },
  };
}
