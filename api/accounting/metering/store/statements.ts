// The statements of metering, each parsed once per connection.
import { z } from 'zod';
import type { Statement } from '../../../billing/index.ts';

function statement<Row>(name: string, text: string, row: z.ZodType<Row>): Statement<Row> {
  return { name: `metering-${name}`, text, row };
}

const bigint = z.string().transform(BigInt);
const counted = z.object({ count: z.coerce.number() });

/** Batches of one gateway one after the other. On its own, so that the next statement sees what the one before wrote. */
export const lockGateway = statement(
  'lock',
  "select pg_advisory_xact_lock(hashtextextended('metering ' || $1, 0)) is null as locked",
  z.unknown(),
);

/** The newest run, and those that ended after $2. */
export const runs = statement(
  'runs',
  `select id::text, newest::text, newest_start_ns::text, newest_end_ns::text, last_end_ns::text from metering.instance
    where gateway = $1 and (last_end_ns >= $2 or id = (select max(id) from metering.instance where gateway = $1)) order by id`,
  z
    .object({
      id: bigint,
      newest: bigint,
      newest_start_ns: bigint,
      newest_end_ns: bigint,
      last_end_ns: bigint,
    })
    .transform((row) => ({
      id: row.id,
      newest: row.newest,
      newestStartNs: row.newest_start_ns,
      newestEndNs: row.newest_end_ns,
      lastEndNs: row.last_end_ns,
    })),
);

export const addRun = statement(
  'add-run',
  'insert into metering.instance (gateway, newest, newest_start_ns, newest_end_ns, last_end_ns) values ($1, $2, $3, $4, $5) returning id::text',
  z.object({ id: bigint }),
);

export const updateRun = statement(
  'update-run',
  `update metering.instance set newest = $2, newest_start_ns = $3, newest_end_ns = $4, last_end_ns = $5,
      counters = counters + $6::int8multirange, refused = refused + $7::int8multirange, events = events + $8, last_received_at = clock_timestamp()
    where id = $1`,
  z.unknown(),
);

export const fill = statement('fill', 'select metering.fill($1, $2::int8multirange)::text as count', counted);

export const addGaps = statement(
  'add-gaps',
  `insert into metering.gap (instance, counters, after_at, before_at)
    select $1, c::int8multirange, a, b from unnest($2::text[], $3::timestamptz[], $4::timestamptz[]) as g (c, a, b)`,
  z.unknown(),
);

export const declareLosses = statement('losses', 'select metering.declare_losses($1)::text as count', counted);

export const rollUp = statement('roll-up', 'select metering.roll_up_new() as count', counted);

/** What the metrics show. */
export const standing = statement(
  'standing',
  `select coalesce(sum(missing), 0)::text as missing, coalesce(sum(lost), 0)::text as lost, coalesce(sum(abs(difference)), 0)::text as difference
    from metering.reconciliation`,
  z.object({ missing: z.coerce.number(), lost: z.coerce.number(), difference: z.coerce.number() }),
);
