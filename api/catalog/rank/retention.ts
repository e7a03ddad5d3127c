// How many callers of each app stay: estimated now and then from the ledger, read from memory.
import type { LedgerHandle } from '../../billing/index.ts';
import { Callers, stayDays } from './callers.ts';
import { type Estimate, kaplanMeier, type Observation } from './kaplan-meier.ts';

export type Retention = { readonly estimate: Estimate } | { readonly reason: string; readonly n: number };

export interface RetentionOptions {
  readonly ledger: Pick<LedgerHandle, 'opened'>;
  /** For tests: how often callers are counted, and how often the estimates are made anew. */
  readonly everyMs?: number;
  readonly estimateMs?: number;
}

const noDatabase =
  'Calls are recorded in a ledger, and none is configured. The operator of this installation can set DATABASE_URL.';
const notRead = 'The calls in the ledger have not been read yet.';
const nobody = 'Nobody has called this app through the API long enough ago.';
const tooEarly = `No caller of this app has been followed for ${stayDays} days yet.`;

export class Retentions {
  #observations: ReadonlyMap<string, readonly Observation[]> | undefined;
  #missing = notRead;
  readonly #estimates = new Map<string, Retention>();

  set(observations: ReadonlyMap<string, readonly Observation[]>): void {
    this.#observations = observations;
    this.#estimates.clear();
  }

  missing(reason: string): void {
    this.#missing = reason;
  }

  of(slug: string): Retention {
    if (this.#observations === undefined) return { reason: this.#missing, n: 0 };
    const known = this.#estimates.get(slug) ?? retentionOf(this.#observations.get(slug) ?? []);
    this.#estimates.set(slug, known);
    return known;
  }
}

/** What observations in hours say. */
export function retentionOf(observations: readonly Observation[]): Retention {
  const n = observations.reduce((sum, { count }) => sum + count, 0);
  if (n === 0) return { reason: nobody, n };
  const estimate = kaplanMeier(observations, stayDays * 24);
  return estimate === undefined ? { reason: tooEarly, n } : { estimate };
}

/** Counts callers about once a minute and estimates about every quarter of an hour, from when the database is open. */
export function startRetention({ ledger, everyMs = 60_000, estimateMs = 900_000 }: RetentionOptions): Retentions {
  const retentions = new Retentions();
  void ledger.opened.then((opened) => {
    if (opened === undefined) {
      retentions.missing(noDatabase);
      return;
    }
    const callers = new Callers(opened.database);
    let estimatedAt = Number.NEGATIVE_INFINITY;
    opened.repeat('count callers', everyMs, async () => {
      await callers.update();
      if (performance.now() - estimatedAt < estimateMs) return 0;
      retentions.set(await callers.observations());
      estimatedAt = performance.now();
      return 0;
    });
  });
  return retentions;
}
