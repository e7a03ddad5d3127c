// Uses in the ledger as the tests of the catalog need them: calls of apps and calls of models by apps, at any time.
import { z } from 'zod';
import type { Database } from '../../../api/billing/database/database.ts';

const insert = {
  name: 'test-uses',
  text: `insert into ledger.usage (id, kind, at, caller, app, model, latency_ms, cost, cost_source)
    select gen_random_uuid()::text, u.kind, clock_timestamp() - u.hours * interval '1 hour', u.caller, u.app, u.model, u.latency, u.cost,
      case when u.cost is null then 'pending' when u.kind = 'app' then 'tariff' else 'billed' end
    from jsonb_to_recordset($1::jsonb) as u (kind text, hours float8, caller text, app text, model text, latency int, cost numeric)`,
  row: z.unknown(),
};

/** A use so many hours ago. */
export type Use =
  | {
      readonly kind: 'app';
      readonly app: string;
      readonly caller: string;
      readonly hours: number;
      readonly latency: number;
    }
  | { readonly kind: 'v1'; readonly app: string; readonly hours: number; readonly cost: string | null };

export async function addUses(database: Database, uses: readonly Use[]): Promise<void> {
  const rows = uses.map((use) =>
    use.kind === 'app' ? { ...use, cost: '0.0001' } : { ...use, model: 'm', latency: 900, caller: null },
  );
  await database.query(insert, [JSON.stringify(rows)]);
}

/** Calls of an app by one caller, so many hours ago each. */
export function createCalls(app: string, caller: string, ...hours: number[]): Use[] {
  return hours.map((one) => ({ kind: 'app', app, caller, hours: one, latency: 100 }));
}
