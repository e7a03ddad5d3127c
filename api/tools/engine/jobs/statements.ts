// SQL statements of jobs, one round trip each. A worker writes to a job only while it owns the job.
import { z } from 'zod';
import { money, prefixStatements } from '../../../billing/index.ts';

const defineStatement = prefixStatements('job');

/** A nullable column, as an optional value. */
function createOptionalColumn<Value>(value: z.ZodType<Value>): z.ZodType<Value | undefined> {
  return value.nullable().transform((given) => given ?? undefined);
}

const found = z.object({ id: z.uuid() });
const fields = z.record(z.string(), z.unknown());
const now = 'clock_timestamp()';
const formatLater = (milliseconds: string): string => `${now} + ${milliseconds}::bigint * interval '1 millisecond'`;

/**
 * $1 id, $2 tool, $3 input, $4 fingerprint, $5 owner, $6 payer, $7 session, $8 runner, $9 lease ms, $10 keep ms, $11
 * maximum of the owner, $12 maximum of all, $13 context, $14 networks of an anonymous owner. No row: the limit is reached, or the same call is in progress.
 */
export const add = defineStatement(
  'add',
  `insert into tools.job (id, tool, input, fingerprint, owner, payer, session, runner, lease_until, expires_at, context, networks)
  select $1::uuid, $2, $3::json, $4, $5, $6, $7, $8::uuid, case when $8::uuid is null then null else ${formatLater('$9')} end, ${formatLater('$10')}, $13, $14::text[]
  where (select count(*) from tools.job where owner = $5 and state in ('queued', 'running')) < $11::int
    and (select count(*) from tools.job where state in ('queued', 'running')) < $12::int
  on conflict (owner, tool, fingerprint) where state in ('queued', 'running') do nothing returning id`,
  found,
);
export const same = defineStatement(
  'same',
  `select id from tools.job where owner = $1 and tool = $2 and fingerprint = $3 and state in ('queued', 'running')`,
  found,
);

/** Limits the ended jobs per owner: deletes the oldest results. */
export const trim = defineStatement(
  'trim',
  `delete from tools.job where id in (select id from tools.job where owner = $1 and state in ('done', 'failed') order by ended_at desc offset $2) returning id`,
  found,
);

/** $1 runner, $2 lease ms, $3 free slots, $4 tools that it can run, $5 jobs that it runs. */
export const claim = defineStatement(
  'claim',
  `with due as (
    select id from tools.job
    where tool = any ($4::text[]) and id <> all ($5::uuid[]) and ((state = 'queued' and (payer = 'anonymous' or runner = $1::uuid)) or (state = 'running' and payer = 'anonymous' and lease_until <= ${now}))
    order by created_at limit $3::int for update skip locked)
  update tools.job j set state = 'running', runner = $1::uuid, attempt = attempt + 1, lease_until = ${formatLater('$2')} from due where j.id = due.id
  returning j.id, j.tool, j.input, j.owner, j.payer, j.networks, j.session, j.attempt::int`,
  z.object({
    id: z.uuid(),
    tool: z.string(),
    input: fields,
    owner: z.string(),
    payer: z.enum(['anonymous', 'key']),
    networks: z.array(z.string()).nullable(),
    session: z.string().nullable(),
    attempt: z.int(),
  }),
);
export type ClaimedJob = z.output<typeof claim.row>;

/**
 * Fails jobs that no process can continue. $1 maximum attempts, $2 problem of a keyed one, $3 of any other, $4 keep ms.
 */
export const lose = defineStatement(
  'lose',
  `update tools.job set state = 'failed', problem = case payer when 'key' then $2::json else $3::json end, runner = null, lease_until = null, ended_at = ${now}, expires_at = ${formatLater('$4')}
  where state in ('queued', 'running') and lease_until <= ${now} and (payer = 'key' or attempt >= $1::int) returning id`,
  found,
);

export const renew = defineStatement(
  'renew',
  `update tools.job set lease_until = ${formatLater('$2')} where runner = $1::uuid and id = any ($3::uuid[]) and state in ('queued', 'running') returning id`,
  found,
);

/** A job without a key is visible to anyone who has its random id; a job with a key, only to its owner. $1 id. */
const formatVisibleTo = (owner: string): string => `id = $1::uuid and (payer = 'anonymous' or owner = ${owner})`;

const own = `id = $1::uuid and runner = $2::uuid and attempt = $3::int and state = 'running'`;
export const progress = defineStatement(
  'progress',
  `update tools.job set progress = $4, message = $5 where ${own} returning id`,
  found,
);
export const announce = defineStatement(
  'announce',
  `update tools.job set holds = holds || $4::uuid where ${own} returning id`,
  found,
);
export const putBack = defineStatement(
  'put-back',
  `update tools.job set state = 'queued', attempt = attempt - 1, runner = case payer when 'key' then runner end, lease_until = case payer when 'key' then lease_until end where ${own} returning id`,
  found,
);
export const succeed = defineStatement(
  'succeed',
  `update tools.job set state = 'done', progress = 1, result = $4::json, artifact = $5::bytea, artifact_bytes = length($5::bytea), media_type = $6, file_name = $7, file_id = $9,
    runner = null, lease_until = null, ended_at = ${now}, expires_at = ${formatLater('$8')} where ${own} returning id`,
  found,
);
export const fail = defineStatement(
  'fail',
  `update tools.job set state = 'failed', problem = $4::json, runner = null, lease_until = null, ended_at = ${now}, expires_at = ${formatLater('$5')} where ${own} returning id`,
  found,
);

/** $1 id, $2 tool, $3 owner, $4 problem, $5 keep ms. The process that runs it then finds that it no longer owns it. */
export const cancel = defineStatement(
  'cancel',
  `update tools.job set state = 'failed', problem = $4::json, runner = null, lease_until = null, ended_at = ${now}, expires_at = ${formatLater('$5')}
  where ${formatVisibleTo('$3')} and tool = $2 and state in ('queued', 'running') returning id`,
  found,
);

const entry = z.object({
  id: z.uuid(),
  tool: z.string(),
  context: createOptionalColumn(z.string()),
  state: z.enum(['queued', 'running', 'done', 'failed']),
  at: z.coerce.date(),
  problem: createOptionalColumn(z.string()),
});
const entryOf = `select id, tool, context, state, coalesce(ended_at, created_at) as at, problem ->> 'slug' as problem from tools.job`;
const alive = `(expires_at > ${now} or state = 'running')`;

/** $1 id, $2 owner. */
export const find = defineStatement('find', `${entryOf} where ${formatVisibleTo('$2')} and ${alive}`, entry);

/** $1 owner, with a key. The newest first; the number per owner is limited. */
export const list = defineStatement(
  'list',
  `${entryOf} where owner = $1 and payer = 'key' and ${alive} order by at desc, id limit 1000`,
  entry,
);

/** $1 context, a secret of the caller that started the jobs. */
export const listByContext = defineStatement(
  'list-of-context',
  `${entryOf} where context = $1 and payer = 'anonymous' and ${alive} order by at desc, id limit 1000`,
  entry,
);

/** $1 ids. Returns state and progress. */
export const glance = defineStatement(
  'glance',
  'select id, state, progress::float8 as progress, message from tools.job where id = any ($1::uuid[])',
  z.object({
    id: z.uuid(),
    state: z.enum(['queued', 'running', 'done', 'failed']),
    progress: z.number(),
    message: z.string(),
  }),
);

/** $1 id, $2 tool, $3 owner. */
export const view = defineStatement(
  'view',
  `select j.id, j.tool, j.input, j.session, j.context, j.state, j.progress::float8 as progress, j.message, j.attempt::int, j.created_at, j.ended_at, j.expires_at, j.result, j.problem, j.artifact_bytes, j.file_id, j.media_type, j.file_name, h.cost, h.charged, h.pending
  from tools.job j cross join lateral (
    select coalesce(sum(cost) filter (where state = 'settled'), 0)::text as cost, (count(*) filter (where state not in ('settled', 'voided')))::int as pending,
      (select coalesce(sum(e.amount), 0)::text from ledger.hold charged join ledger.entry e using (transaction_id) join ledger.account a on a.id = e.account_id
        where charged.id = any (j.holds) and a.kind = 'key') as charged
    from ledger.hold where id = any (j.holds)) h
  where j.id = $1::uuid and j.tool = $2 and (j.payer = 'anonymous' or j.owner = $3) and (j.expires_at > ${now} or j.state = 'running')`,
  z.object({
    id: z.uuid(),
    tool: z.string(),
    input: fields,
    session: z.string().nullable(),
    context: createOptionalColumn(z.string()),
    state: z.enum(['queued', 'running', 'done', 'failed']),
    progress: z.number(),
    message: z.string(),
    attempt: z.int(),
    created_at: z.coerce.date(),
    ended_at: z.coerce.date().nullable(),
    expires_at: z.coerce.date(),
    result: fields.nullable(),
    problem: z.object({ slug: z.string(), detail: z.string(), members: fields }).nullable(),
    artifact_bytes: z.int().nullable(),
    file_id: z.string().nullable(),
    media_type: z.string().nullable(),
    file_name: z.string().nullable(),
    cost: money,
    charged: money,
    pending: z.int(),
  }),
);
export const artifact = defineStatement(
  'artifact',
  `select artifact as bytes, media_type as "mediaType", file_name as "fileName" from tools.job where ${formatVisibleTo('$3')} and tool = $2 and expires_at > ${now} and artifact is not null`,
  z.object({ bytes: z.instanceof(Uint8Array), mediaType: z.string(), fileName: z.string() }),
);

/** Deletes expired jobs, and the oldest jobs with files beyond $1 bytes in total. */
export const purge = defineStatement(
  'purge',
  `delete from tools.job where (expires_at <= ${now} and state <> 'running') or id in (
    select id from (select id, sum(artifact_bytes) over (order by ended_at desc, id) as total from tools.job where artifact_bytes is not null) files where total > $1::bigint)
  returning id`,
  found,
);
