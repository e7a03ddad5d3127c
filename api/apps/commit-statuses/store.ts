// Keeps which apps have a forge token, and the status of each commit with how its delivery goes. The tokens are in a Secret of
// the installation's namespace, where no pod of an app or a build runs.
import { z } from 'zod';
import { ApiError, type Client } from '../../../lib/kubernetes/index.ts';
import { type OpenLedger, prefixStatements } from '../../billing/index.ts';
import { secrets } from '../author/control.ts';
import { formatMs, now } from '../notifications/store.ts';
import { type ReportedStatus, statusState } from './forges.ts';
import { endedText, type SourceStatus } from './statuses.ts';

/** Name of the Secret, which the chart makes. The API may read and patch it, and no other one. */
export const forgeTokenSecret = 'moorage-forge-tokens';

/** A token with the version of the row that it was stored for. */
export interface StoredToken {
  readonly version: string;
  readonly token: string;
}

/** The tokens of all apps, by the UID of each. */
export interface ForgeTokens {
  read(): Promise<ReadonlyMap<string, StoredToken>>;
  /** @param token undefined removes it */
  write(app: string, token: StoredToken | undefined): Promise<void>;
  /** Removes tokens that no row refers to. `listKnown` is called after the Secret was read. */
  removeUnknown(listKnown: () => Promise<ReadonlySet<string>>): Promise<number>;
}

const storedSecret = z.looseObject({
  metadata: z.looseObject({ resourceVersion: z.string() }),
  data: z.record(z.string(), z.string()).optional(),
});
const storedToken = z.strictObject({ version: z.uuid(), token: z.string() });

/** @param namespace of the installation */
export function createForgeTokens(client: Client, namespace: string): ForgeTokens {
  const target = { name: forgeTokenSecret, namespace };
  const readSecret = async (): Promise<z.output<typeof storedSecret>> => {
    const found = await removeContent(client.get(secrets, target));
    if (found === undefined) throw new Error(`the Secret ${forgeTokenSecret} is missing in ${namespace}`);
    return storedSecret.parse(found);
  };
  const patch = async (data: Readonly<Record<string, string | null>>, resourceVersion?: string): Promise<void> => {
    const metadata = resourceVersion === undefined ? {} : { metadata: { resourceVersion } };
    const options = { type: 'application/merge-patch+json', fieldManager: 'moorage-api' } as const;
    await removeContent(client.patch(secrets, target, { ...metadata, data }, options));
  };
  return {
    async read() {
      const { data = {} } = await readSecret();
      return new Map(
        Object.entries(data).map(([app, text]) => [
          app,
          storedToken.parse(JSON.parse(Buffer.from(text, 'base64').toString('utf8'))),
        ]),
      );
    },
    async write(app, token) {
      await patch({ [app]: token === undefined ? null : Buffer.from(JSON.stringify(token)).toString('base64') });
    },
    async removeUnknown(listKnown) {
      const { data = {}, metadata } = await readSecret();
      const known = await listKnown();
      const unknown = Object.keys(data).filter((app) => !known.has(app));
      if (unknown.length === 0) return 0;
      // A token that was set meanwhile makes it fail. The next purge tries again.
      await patch(Object.fromEntries(unknown.map((app) => [app, null])), metadata.resourceVersion);
      return unknown.length;
    },
  };
}

/** A reply may quote what was sent, and errors are logged. */
async function removeContent<Value>(reply: Promise<Value>): Promise<Value> {
  try {
    return await reply;
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 0) throw error;
    throw new ApiError(error.status, error.reason, 'The cluster has refused to read or store forge tokens.');
  }
}

const defineStatement = prefixStatements('commit-statuses');
const one = z.unknown();

const tokenRow = z.object({
  app: z.string(),
  version: z.uuid(),
  repository: z.string(),
  set_at: z.date(),
  refused_at: z.date().nullable(),
  refused_status: z.int().nullable(),
});
export type TokenRow = z.output<typeof tokenRow>;

const claimed = z.object({
  app: z.string(),
  commit: z.string(),
  state: statusState,
  description: z.string(),
  target_url: z.string(),
  revision: z.int(),
  attempts: z.int(),
  claim: z.uuid(),
  version: z.uuid(),
  repository: z.string(),
});
/** A status that this process reports next. No other one reports a status of the commit before the lease ends. */
export type ClaimedStatus = z.output<typeof claimed>;

const statusRow = claimed
  .pick({ commit: true, state: true, description: true, target_url: true, attempts: true })
  .extend({
    delivery: z.enum(['waiting', 'delivered', 'abandoned']),
    changed_at: z.date(),
    due_at: z.date(),
    last_error: z.string().nullable(),
  });
export type StatusRow = z.output<typeof statusRow>;

/** A status that could not be delivered for so long is given up. */
const retryMs = 24 * 3_600_000;
const keepMs = 90 * 24 * 3_600_000;
/** Longer than any cache lags behind. */
const vanishedMs = 600_000;
const tokenColumns = 'app, version, repository, set_at, refused_at, refused_status';

/** Makes a status new. While one is being sent, the next waits for it, so that they arrive in order. */
const renew = `revision = s.revision + 1, changed_at = ${now}, delivery = 'waiting', attempts = 0, last_error = null,
  due_at = case when s.claim is null then ${now} else s.due_at end`;
const end = `state = 'ended', description = '${endedText}', ${renew}`;

const statements = {
  listTokens: defineStatement('list-tokens', `select ${tokenColumns} from author.forge_token`, tokenRow),
  findToken: defineStatement('find-token', `select ${tokenColumns} from author.forge_token where app = $1`, tokenRow),
  /** $1 app, $2 repository. */
  setToken: defineStatement(
    'set-token',
    `insert into author.forge_token as t (app, repository) values ($1, $2)
      on conflict (app) do update set version = gen_random_uuid(), repository = excluded.repository,
        set_at = clock_timestamp(), refused_at = null, refused_status = null
      returning ${tokenColumns}`,
    tokenRow,
  ),
  /** What the old token could not report is tried with the new one. */
  retryAll: defineStatement(
    'retry-all',
    `update author.commit_status s set attempts = 0, changed_at = ${now},
        due_at = case when s.claim is null then ${now} else s.due_at end
      where app = $1 and delivery = 'waiting'`,
    one,
  ),
  deleteToken: defineStatement('delete-token', 'delete from author.forge_token where app = $1 returning app', one),
  /** $1 app, $2 version, $3 HTTP status. */
  refuseToken: defineStatement(
    'refuse-token',
    `update author.forge_token set refused_at = ${now}, refused_status = $3::int
      where app = $1 and version = $2::uuid and refused_at is null`,
    one,
  ),
  /** $1 app, $2 commit, $3 source, $4 seen, $5 state, $6 description, $7 target URL. */
  record: defineStatement(
    'record',
    `insert into author.commit_status as s (app, commit, source, seen, state, description, target_url)
      select $1, $2, $3, $4::bigint, $5, $6, $7 where exists (select from author.forge_token where app = $1)
      on conflict (app, commit) do update set source = excluded.source, seen = excluded.seen, state = excluded.state,
        description = excluded.description, target_url = excluded.target_url, ${renew}
      where s.seen < excluded.seen
        and (s.state, s.description, s.target_url) is distinct from (excluded.state, excluded.description, excluded.target_url)`,
    one,
  ),
  /** $1 app, $2 source, $3 commit that it wants, $4 seen. */
  endOthers: defineStatement(
    'end-others',
    `update author.commit_status s set seen = $4::bigint, ${end}
      where app = $1 and source = $2 and commit <> $3 and state = 'pending' and seen < $4::bigint`,
    one,
  ),
  /** $1 app, $2 sources that exist. */
  endVanished: defineStatement(
    'end-vanished',
    `update author.commit_status s set ${end}
      where app = $1 and source <> all ($2::text[]) and state = 'pending' and changed_at < ${now} - ${formatMs(vanishedMs)}`,
    one,
  ),
  /** $1 lease in ms, $2 limit. */
  claim: defineStatement(
    'claim',
    `with due as (
        select s.app, s.commit from author.commit_status s join author.forge_token t on t.app = s.app
        where s.delivery = 'waiting' and s.due_at <= ${now} and t.refused_at is null
        order by s.due_at limit $2::int for update of s skip locked)
      update author.commit_status s
      set attempts = s.attempts + 1, due_at = ${now} + ${formatMs('$1')}, claim = gen_random_uuid()
      from due join author.forge_token t on t.app = due.app
      where s.app = due.app and s.commit = due.commit
      returning s.app, s.commit, s.state, s.description, s.target_url, s.revision, s.attempts, s.claim, t.version, t.repository`,
    claimed,
  ),
  /** $1 app, $2 commit, $3 claim, $4 revision, $5 delivery, $6 error. A newer revision is due immediately. */
  finish: defineStatement(
    'finish',
    `update author.commit_status set claim = null,
        delivery = case when revision = $4::int then $5 else 'waiting' end,
        last_error = case when revision = $4::int then $6 end,
        due_at = case when revision = $4::int then due_at else ${now} end
      where app = $1 and commit = $2 and claim = $3::uuid`,
    one,
  ),
  /** $1 app, $2 commit, $3 claim, $4 revision, $5 delay in ms, $6 error. */
  retry: defineStatement(
    'retry',
    `update author.commit_status set claim = null, last_error = case when revision = $4::int then $6 end,
        delivery = case when revision = $4::int and ${now} + ${formatMs('$5')} > changed_at + ${formatMs(retryMs)}
          then 'abandoned' else 'waiting' end,
        due_at = case when revision = $4::int then ${now} + ${formatMs('$5')} else ${now} end
      where app = $1 and commit = $2 and claim = $3::uuid`,
    one,
  ),
  /** $1 app, $2 limit. */
  list: defineStatement(
    'list',
    `select commit, state, description, target_url, attempts, delivery, changed_at, due_at, last_error
      from author.commit_status where app = $1 order by changed_at desc, commit limit $2::int`,
    statusRow,
  ),
  /** $1 UIDs of the apps that exist. A day passes first, so that a cache that lags behind deletes nothing. */
  forget: defineStatement(
    'forget',
    `delete from author.forge_token where app <> all ($1::text[]) and set_at < ${now} - interval '1 day' returning app`,
    one,
  ),
  /** Keeps the newest status of each source, which would be reported again. */
  purge: defineStatement(
    'purge',
    `delete from author.commit_status s where changed_at < ${now} - ${formatMs(keepMs)}
        and exists (select from author.commit_status o where o.app = s.app and o.source = s.source and o.changed_at > s.changed_at)
      returning commit`,
    one,
  ),
} as const;

export class CommitStatusStore {
  readonly #database: () => OpenLedger['database'];

  /** @param database throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  constructor(database: () => OpenLedger['database']) {
    this.#database = database;
  }

  async listTokens(): Promise<TokenRow[]> {
    return this.#database().query(statements.listTokens, []);
  }

  async findToken(app: string): Promise<TokenRow | undefined> {
    return (await this.#database().query(statements.findToken, [app]))[0];
  }

  /** Makes a new version of the app's token, which is then stored in the Secret. */
  async setToken(app: string, repository: string): Promise<TokenRow> {
    return this.#database().transaction(async (transaction) => {
      const [row] = await transaction.query(statements.setToken, [app, repository]);
      if (row === undefined) throw new Error('the version of the forge token was not stored');
      await transaction.query(statements.retryAll, [app]);
      return row;
    });
  }

  /** Ends everything that is waiting, too. @returns whether there was a token */
  async deleteToken(app: string): Promise<boolean> {
    return (await this.#database().query(statements.deleteToken, [app])).length > 0;
  }

  /** Records that the forge rejects a token. A token that was set since is not affected. */
  async refuseToken({ app, version }: Pick<ClaimedStatus, 'app' | 'version'>, status: number): Promise<void> {
    await this.#database().replay(statements.refuseToken, [app, version, status]);
  }

  /** Records what an app and its previews say, and ends builds of commits that none of them wants any more. */
  async record(app: string, sources: readonly SourceStatus[]): Promise<void> {
    const database = this.#database();
    for (const { source, seen, wanted, status } of sources) {
      if (status !== undefined) {
        const { commit, state, description, targetUrl } = status;
        await database.query(statements.record, [app, commit, source, seen, state, description, targetUrl]);
      }
      if (wanted !== undefined) await database.query(statements.endOthers, [app, source, wanted, seen]);
    }
    await database.query(statements.endVanished, [app, sources.map(({ source }) => source)]);
  }

  async claim(leaseMs: number, limit: number): Promise<ClaimedStatus[]> {
    return this.#database().query(statements.claim, [leaseMs, limit]);
  }

  /** Ends an attempt. Has no effect if its lease has ended and another process took over. */
  async finish(status: ClaimedStatus, delivery: 'delivered' | 'abandoned', why: string | null = null): Promise<void> {
    const { app, commit, claim, revision } = status;
    await this.#database().replay(statements.finish, [app, commit, claim, revision, delivery, why]);
  }

  /** Schedules another attempt, unless it would be more than 24 hours after the status changed. */
  async retry({ app, commit, claim, revision }: ClaimedStatus, delayMs: number, why: string | null): Promise<void> {
    await this.#database().replay(statements.retry, [app, commit, claim, revision, Math.round(delayMs), why]);
  }

  /** The newest statuses first. */
  async list(app: string, limit: number): Promise<StatusRow[]> {
    return this.#database().query(statements.list, [app, limit]);
  }

  /** Deletes what belongs to apps that are gone, and old statuses. @param apps UIDs of those that exist */
  async purge(apps: readonly string[]): Promise<number> {
    const old = await this.#database().query(statements.purge, []);
    // No app at all is rather a cache that is not filled.
    if (apps.length === 0) return old.length;
    return old.length + (await this.#database().query(statements.forget, [[...apps]])).length;
  }
}

export function toReportedStatus({ commit, state, description, target_url: targetUrl }: ClaimedStatus): ReportedStatus {
  return { commit, state, description, targetUrl };
}
