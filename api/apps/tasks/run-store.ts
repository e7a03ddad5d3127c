// Keeps the runs of tasks in PostgreSQL. They are copied from what an app is now, so that no run is lost if a replica is killed,
// and all replicas may copy the same one.
import { z } from 'zod';
import { commandName, isSuccessful, startWithinMs, type TaskRun, triggers } from '../../../crds/tasks.ts';
import { type OpenLedger, prefixStatements } from '../../billing/index.ts';
import type { App } from '../hosted-apps.ts';

/** Runs that are kept of an app, and for how long. */
const keptRuns = 500;
const keepMs = 90 * 86_400_000;
/** A request without a run is given up: the operator does not start it any more. */
const givenUpMs = startWithinMs + 300_000;

export interface StoredRun extends Omit<TaskRun, 'scheduledAt' | 'startedAt' | 'endedAt'> {
  readonly command?: readonly string[] | undefined;
  readonly requestedAt?: string | undefined;
  readonly scheduledAt?: string | undefined;
  readonly startedAt?: string | undefined;
  readonly endedAt?: string | undefined;
}

export type RunState = 'waiting' | 'running' | 'succeeded' | 'failed' | 'missed';

export function readRunState(run: StoredRun): RunState {
  if (run.endedAt === undefined) return run.startedAt === undefined ? 'waiting' : 'running';
  if (isSuccessful(run)) return 'succeeded';
  return run.startedAt === undefined ? 'missed' : 'failed';
}

/** Lists the runs that an app shows, those that were only requested included. */
export function listAppRuns({ spec, status }: Pick<App, 'spec' | 'status'>, now: Date): StoredRun[] {
  const runs: readonly StoredRun[] = status?.taskRuns ?? [];
  const requested = (spec.control?.runs ?? []).map((request): StoredRun => {
    const { id, task = commandName, command, requestedAt } = request;
    const isGivenUp = now.getTime() - Date.parse(requestedAt) > givenUpMs;
    const end = isGivenUp ? { endedAt: now.toISOString(), reason: 'NotStarted' } : {};
    const found = runs.find((run) => run.id === id) ?? end;
    return { id, task, trigger: 'manual', command, requestedAt, ...found };
  });
  const ids = new Set(requested.map(({ id }) => id));
  return [...requested, ...runs.filter(({ id }) => !ids.has(id))];
}

const time = z
  .date()
  .nullable()
  .transform((at) => at?.toISOString());
const text = z
  .string()
  .nullable()
  .transform((value) => value ?? undefined);
const number = z
  .int()
  .nullable()
  .transform((value) => value ?? undefined);
const words = z
  .array(z.string())
  .nullable()
  .transform((value) => value ?? undefined);

const row = z
  .object({
    ...{ id: z.string(), task: z.string(), trigger: z.enum(triggers), command: words },
    ...{ commit: text, exit_code: number, reason: text },
    ...{ requested_at: time, scheduled_at: time, started_at: time, ended_at: time },
  })
  .transform(({ exit_code, requested_at, scheduled_at, started_at, ended_at, ...run }): StoredRun => ({
    ...run,
    ...{ exitCode: exit_code, requestedAt: requested_at, scheduledAt: scheduled_at },
    ...{ startedAt: started_at, endedAt: ended_at },
  }));

const columns =
  'id, task, trigger, command, commit, requested_at, scheduled_at, started_at, ended_at, exit_code, reason';
const defineStatement = prefixStatements('task-runs');
const none = z.unknown();
const statements = {
  /** $1 app, $2 runs. A replica whose cache is old must not open a run that has ended. */
  record: defineStatement(
    'record',
    `insert into author.task_run as old (app, ${columns}, at)
      select $1, ${columns}, coalesce(requested_at, scheduled_at, started_at, ended_at, clock_timestamp())
      from jsonb_to_recordset($2::jsonb) as new (
        id text, task text, trigger text, command jsonb, commit text, requested_at timestamptz, scheduled_at timestamptz,
        started_at timestamptz, ended_at timestamptz, exit_code int, reason text)
      on conflict (app, id) do update set commit = excluded.commit, started_at = excluded.started_at,
        ended_at = excluded.ended_at, exit_code = excluded.exit_code, reason = excluded.reason
      where old.ended_at is null or (excluded.ended_at is not null and excluded.reason is distinct from old.reason)`,
    none,
  ),
  get: defineStatement('get', `select ${columns} from author.task_run where app = $1 and id = $2`, row),
  /** $1 app, $2 task or null, $3 limit, $4 id of the run before the page, or null. */
  list: defineStatement(
    'list',
    `select ${columns} from author.task_run where app = $1 and ($2::text is null or task = $2)
        and ($4::text is null or (at, id) < (select at, id from author.task_run where app = $1 and id = $4))
      order by at desc, id desc limit $3`,
    row,
  ),
  listLast: defineStatement(
    'list-last',
    `select distinct on (task) ${columns} from author.task_run where app = $1 order by task, at desc, id desc`,
    row,
  ),
  purge: defineStatement(
    'purge',
    `delete from author.task_run where at < clock_timestamp() - $1::bigint * interval '1 millisecond'
      or (app, id) in (select app, id from (
        select app, id, row_number() over (partition by app order by at desc, id desc) as position from author.task_run
      ) as numbered where position > $2) returning id`,
    z.object({ id: z.string() }),
  ),
} as const;

export class TaskRunStore {
  readonly #database: () => OpenLedger['database'];
  /** What was last recorded of each app, so that nothing is written while nothing changes. */
  readonly #recorded = new Map<string, string>();

  /** @param database throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  constructor(database: () => OpenLedger['database']) {
    this.#database = database;
  }

  /** Records the runs that an app shows. */
  async record(app: App, now: Date): Promise<void> {
    const { uid } = app.metadata;
    const runs = listAppRuns(app, now).map((run) => ({
      ...{ id: run.id, task: run.task, trigger: run.trigger, command: run.command, commit: run.commit },
      ...{ requested_at: run.requestedAt, scheduled_at: run.scheduledAt, started_at: run.startedAt },
      ...{ ended_at: run.endedAt, exit_code: run.exitCode, reason: run.reason },
    }));
    const shown = JSON.stringify(runs);
    if (runs.length === 0 || this.#recorded.get(uid) === shown) return;
    await this.#database().query(statements.record, [uid, shown]);
    this.#recorded.set(uid, shown);
  }

  /** Records the runs of all apps, and forgets what was recorded of those that are gone. */
  async recordAll(apps: readonly App[], now: Date): Promise<void> {
    for (const app of apps) await this.record(app, now);
    const uids = new Set(apps.map(({ metadata }) => metadata.uid));
    for (const uid of this.#recorded.keys()) if (!uids.has(uid)) this.#recorded.delete(uid);
  }

  async get(app: string, id: string): Promise<StoredRun | undefined> {
    return (await this.#database().query(statements.get, [app, id]))[0];
  }

  /** The newest runs first. @param before the id of the last run of the page before */
  async list(app: string, task: string | undefined, limit: number, before?: string): Promise<StoredRun[]> {
    return this.#database().query(statements.list, [app, task ?? null, limit, before ?? null]);
  }

  /** The last run of each task. */
  async listLast(app: string): Promise<StoredRun[]> {
    return this.#database().query(statements.listLast, [app]);
  }

  /** Removes old runs. Returns how many. */
  async purge(): Promise<number> {
    return (await this.#database().query(statements.purge, [keepMs, keptRuns])).length;
  }
}
