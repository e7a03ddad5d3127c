// SQL statements for push notifications, one round trip each.
import { z } from 'zod';
import { prefixStatements } from '../../billing/index.ts';

const defineStatement = prefixStatements('push');

const one = z.object({ id: z.string() });
const now = 'clock_timestamp()';
const formatLater = (milliseconds: string): string => `${now} + ${milliseconds}::bigint * interval '1 millisecond'`;

const config = z.object({
  id: z.string(),
  url: z.string(),
  token: z.string().nullable(),
  scheme: z.string().nullable(),
  credentials: z.string().nullable(),
});
export type ConfigRow = z.output<typeof config>;

/** $1 job. Serializes callers that add configs, so that the count is correct. */
export const lock = defineStatement('lock', 'select id from tools.job where id = $1::uuid for update', one);

/**
 * $1 job, $2 id, $3 url, $4 token, $5 scheme, $6 credentials, $7 version, $8 maximum. Returns no row if there are too
 * many.
 */
export const save = defineStatement(
  'save',
  `insert into agents.push_config (job, id, url, token, scheme, credentials, version)
  select $1::uuid, $2, $3, $4, $5, $6, $7
  where (select count(*) from agents.push_config where job = $1::uuid and id <> $2) < $8::int
  on conflict (job, id) do update set url = excluded.url, token = excluded.token, scheme = excluded.scheme, credentials = excluded.credentials,
    version = excluded.version, state = 'waiting', attempts = 0, due_at = ${now}
  returning id`,
  one,
);

/** $1 job. */
export const list = defineStatement(
  'list',
  'select id, url, token, scheme, credentials from agents.push_config where job = $1::uuid order by created_at, id',
  config,
);

/** $1 job, $2 id. */
export const remove = defineStatement(
  'remove',
  'delete from agents.push_config where job = $1::uuid and id = $2 returning id',
  one,
);

/** $1 lease ms, $2 limit. Claims configs of jobs that have ended, each for one process at a time. */
export const claim = defineStatement(
  'claim',
  `with due as (
    select p.job, p.id from agents.push_config p join tools.job j on j.id = p.job
    where p.state = 'waiting' and p.due_at <= ${now} and j.state in ('done', 'failed')
    order by p.due_at limit $2::int for update of p skip locked)
  update agents.push_config p set attempts = attempts + 1, due_at = ${formatLater('$1')} from due, tools.job j
  where p.job = due.job and p.id = due.id and j.id = p.job
  returning p.job, p.id, p.url, p.token, p.scheme, p.credentials, p.version, p.attempts::int, j.tool, j.owner`,
  config.extend({
    job: z.uuid(),
    version: z.string(),
    attempts: z.int(),
    tool: z.string(),
    owner: z.string(),
  }),
);
export type ClaimedPush = z.output<typeof claim.row>;

/** $1 job, $2 id, $3 attempts, $4 ms. Schedules another attempt, unless the config was replaced in the meantime. */
export const retry = defineStatement(
  'retry',
  `update agents.push_config set due_at = ${formatLater('$4')} where job = $1::uuid and id = $2 and attempts = $3::int and state = 'waiting' returning id`,
  one,
);

/** $1 job, $2 id, $3 attempts, $4 state. Ends the delivery and deletes its secrets. */
export const end = defineStatement(
  'end',
  `update agents.push_config set state = $4, token = null, scheme = null, credentials = null
  where job = $1::uuid and id = $2 and attempts = $3::int and state = 'waiting' returning id`,
  one,
);
