// Traffic of an app at the gateway, and what it used of CPU and memory: from the sums by hour and day.
import { z } from 'zod';
import type { Statement } from '../../billing/index.ts';

const traffic = z.object({
  hours: z.number(),
  is_metered: z.boolean(),
  is_computed: z.boolean(),
  visits: z.coerce.number(),
  answered: z.coerce.number(),
  failed: z.coerce.number(),
  cpu_seconds: z.coerce.number(),
  memory_byte_seconds: z.coerce.number(),
});
/** Of one window. `is_metered`: a gateway has sent its access log; `is_computed`: an operator has reported. */
export type Traffic = z.output<typeof traffic>;

/**
 * Requests that count for the error rate: uses by visitors and calls that were recorded, which an app has answered, and
 * any of both that it answered with a server error.
 */
export const answeredWell = `((kind = 'visit' and class = 'use') or kind = 'app')`;
export const answeredWrong = `(kind = 'visit' and class in ('failed', 'call') and status_class = 5)`;

/** Whole days where the window has them, hours at its ends. A window of $3 hours begins with the hour it begins in. */
export const trafficOf: Statement<Traffic> = {
  name: 'catalog-traffic',
  text: `with bounds as (
      select h as hours, date_trunc('hour', $2::timestamptz - h * interval '1 hour', 'UTC') as since,
        least(((date_trunc('hour', $2::timestamptz - h * interval '1 hour', 'UTC') at time zone 'utc') + interval '1 day' - interval '1 microsecond')::date,
          ($2::timestamptz at time zone 'utc')::date) as first_day,
        ($2::timestamptz at time zone 'utc')::date as today
      from unnest($3::int[]) as h)
    select b.hours, exists (select from metering.instance) as is_metered, exists (select from metering.compute_hour) as is_computed,
      u.*, c.*
    from bounds b
    cross join lateral (
      select coalesce(sum(uses) filter (where kind = 'visit' and class = 'use'), 0)::text as visits,
        coalesce(sum(uses) filter (where ${answeredWell} or ${answeredWrong}), 0)::text as answered,
        coalesce(sum(uses) filter (where ${answeredWrong}), 0)::text as failed
      from (
        select kind, class, status_class, uses from metering.day where app = $1 and day >= b.first_day and day < b.today
        union all
        select kind, class, status_class, uses from metering.hour
          where app = $1 and hour >= b.since and hour < ledger.day_start(b.first_day)
        union all
        select kind, class, status_class, uses from metering.hour
          where app = $1 and hour >= greatest(b.since, ledger.day_start(b.today)) and hour <= $2) s) u
    cross join lateral (
      select coalesce(sum(cpu_seconds), 0)::text as cpu_seconds, coalesce(sum(memory_byte_seconds), 0)::text as memory_byte_seconds
      from metering.compute_hour where app = $1 and hour >= b.since and hour <= $2) c`,
  row: traffic,
};
