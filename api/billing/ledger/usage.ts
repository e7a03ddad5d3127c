// Usage events that cost nothing by themselves: what was used, by whom and when. Each has its own id, so one sent twice is
// counted once.
import type { Queryable } from '../database/database.ts';
import type { Usage } from './ledger.ts';
import { recordUsage } from './statements.ts';

/** A use that costs nothing by itself, such as a visit of an app, under the id that its source gave it. */
export interface UsageEvent extends Omit<
  Usage,
  'model' | 'tool' | 'tokensIn' | 'tokensOut' | 'priceVersion' | 'request'
> {
  readonly id: string;
  /** A salted hash of the network that a visitor is in. */
  readonly network?: string;
  /** When it was. Sent twice, it has the same id and the same time. */
  readonly at: Date | string;
  /** What kind of request a visit was; a use when left out. */
  readonly class?: string;
  /** Status that the client got. */
  readonly status?: number;
  readonly bytesIn?: number;
  readonly bytesOut?: number;
  /** The run of a gateway that counted it. */
  readonly instance?: bigint;
}

/**
 * Records uses: the one way in for what is not the use of a hold. @returns how many of them were not known before, by
 * instance.
 */
export async function recordUses(
  on: Queryable,
  events: readonly UsageEvent[],
): Promise<Map<bigint | undefined, number>> {
  if (events.length === 0) return new Map();
  const rows = await on.query(recordUsage, toColumns(events));
  return new Map(rows.map(({ instance, count }) => [instance ?? undefined, count]));
}

/** A list a column: what PostgreSQL reads fastest after COPY, and COPY cannot pass over what is known. */
function toColumns(events: readonly UsageEvent[]): string[] {
  const column = (of: (event: UsageEvent) => ArrayElement): string => formatArray(events.map(of));
  return [
    column(({ at }) => (typeof at === 'string' ? at : at.toISOString())),
    column(({ id }) => id),
    column(({ kind }) => kind),
    column((event) => event.class ?? 'use'),
    column(({ caller }) => caller),
    column(({ app }) => app),
    column(({ latencyMs }) => latencyMs),
    column(({ status }) => status),
    column(({ bytesIn }) => bytesIn),
    column(({ bytesOut }) => bytesOut),
    column(({ instance }) => instance),
    column(({ network }) => network),
  ];
}

export type ArrayElement = string | number | bigint | undefined;

/**
 * A list as PostgreSQL writes an array, like `{1,2,NULL}` or `{"a","b \"c\""}`. The drivers do it too, but inspect each element
 * in many ways; for long lists that is most of what a statement takes here.
 */
export function formatArray(elements: readonly ArrayElement[]): string {
  return `{${elements.map(formatElement).join(',')}}`;
}

function formatElement(element: ArrayElement): string {
  if (element === undefined) return 'NULL';
  if (typeof element !== 'string') return String(element);
  return `"${/["\\]/.test(element) ? element.replaceAll(/["\\]/g, '\\$&') : element}"`;
}
