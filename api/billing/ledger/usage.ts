// Usage events: what was used, by whom and when. Each has an id of its own, so one sent twice is counted once.
import type { Database } from '../database/database.ts';
import { recordUsage } from './statements.ts';

export interface Usage {
  /** What kind of use: ask, compare, v1, tool, app, visit. */
  readonly kind: string;
  /** When it was; now when left out. */
  readonly at?: Date;
  /** A salted hash; never an address or a key. */
  readonly caller?: string;
  readonly app?: string;
  readonly model?: string;
  /** Name of the tool that was called, or for which a model was asked. */
  readonly tool?: string;
  readonly tokensIn?: number;
  readonly tokensOut?: number;
  readonly latencyMs?: number;
}

/** A use that costs nothing of its own, such as a visit of an app, under the id that its source gave it. */
export interface UsageEvent extends Usage {
  readonly id: string;
}

/** A usage as the SQL functions read it. */
export function usageFields(usage: Usage): Record<string, unknown> {
  const { kind, at, caller, app, model, tool, tokensIn, tokensOut, latencyMs } = usage;
  return { kind, at, caller, app, model, tool, tokens_in: tokensIn, tokens_out: tokensOut, latency_ms: latencyMs };
}

/** Records uses. @returns how many of them were not known before. */
export async function recordUses(
  database: Database,
  events: readonly UsageEvent[],
  now: Date | null = null,
): Promise<number> {
  if (events.length === 0) return 0;
  const fields = events.map((event) => ({ id: event.id, ...usageFields(event) }));
  const [row] = await database.replay(recordUsage, [JSON.stringify(fields), now]);
  return row?.count ?? 0;
}
