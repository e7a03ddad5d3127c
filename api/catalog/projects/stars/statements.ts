// The statements on catalog.repository: what is known, what is due, and what a forge answered.
import { z } from 'zod';
import type { Statement } from '../../../billing/index.ts';
import { forgeKinds } from './forges.ts';

function statement<Row>(name: string, text: string, row: z.ZodType<Row>): Statement<Row> {
  return { name: `catalog-stars-${name}`, text, row };
}

const nothing = z.unknown();

export const storedRepository = z.object({
  url: z.string(),
  stars: z.number().nullable(),
  stars_at: z.coerce.date().nullable(),
  license: z.string().nullable(),
  reason: z.string().nullable(),
});
export type StoredRepository = z.output<typeof storedRepository>;
const columns = 'url, stars, stars_at, license, reason';

export const all = statement('all', `select ${columns} from catalog.repository`, storedRepository);

export const add = statement(
  'add',
  `insert into catalog.repository (url, host, next_at)
    select url, host, clock_timestamp() from unnest($1::text[], $2::text[]) as given (url, host) on conflict do nothing`,
  nothing,
);

/** What is due the longest is lent to one process, $1 ms after the last one; two never get the same. */
export const claim = statement(
  'claim',
  `update catalog.repository set claimed_at = clock_timestamp(), next_at = clock_timestamp() + $2::bigint * interval '1 millisecond'
    where url = (
      select url from catalog.repository where next_at <= clock_timestamp()
        and not exists (select from catalog.repository where claimed_at > clock_timestamp() - $1::bigint * interval '1 millisecond')
      order by next_at limit 1 for update skip locked)
    returning url, forge, etag, failures`,
  z.object({
    url: z.string(),
    forge: z.enum(forgeKinds).nullable().catch(null),
    etag: z.string().nullable(),
    failures: z.number(),
  }),
);

export const remove = statement('remove', 'delete from catalog.repository where url = $1', nothing);

export const answered = statement(
  'answered',
  `update catalog.repository set forge = $2, etag = $3, stars = $4, stars_at = clock_timestamp(), license = $5, reason = null,
      failures = 0, next_at = clock_timestamp() + $6::bigint * interval '1 millisecond'
    where url = $1 returning ${columns}`,
  storedRepository,
);

export const unchanged = statement(
  'unchanged',
  `update catalog.repository set stars_at = clock_timestamp(), reason = null, failures = 0,
      next_at = clock_timestamp() + $2::bigint * interval '1 millisecond'
    where url = $1 and stars is not null returning ${columns}`,
  storedRepository,
);

/** A count that was known stays, with its date; of a repository that is gone, it does not. */
export const failed = statement(
  'failed',
  `update catalog.repository set reason = $2, failures = failures + 1, next_at = clock_timestamp() + $3::bigint * interval '1 millisecond',
      etag = case when $4 then null else etag end, stars = case when $4 then null else stars end,
      stars_at = case when $4 then null else stars_at end, license = case when $4 then null else license end
    where url = $1 returning ${columns}`,
  storedRepository,
);

export const putOff = statement(
  'put-off',
  `update catalog.repository set next_at = greatest(next_at, clock_timestamp() + $2::bigint * interval '1 millisecond') where host = $1`,
  nothing,
);
