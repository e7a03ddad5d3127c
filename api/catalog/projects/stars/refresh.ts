// Asks forges for stars and licences: one repository at a time in all replicas, each about once a day.
import type { Logger } from '../../../../lib/log.ts';
import type { Database, LedgerHandle } from '../../../billing/index.ts';
import type { Fetcher } from '../../../tools/index.ts';
import { askForge, type ForgeAnswer } from './ask-forge.ts';
import { forgeRepository, type ForgeRepository, type KnownForge } from './forges.ts';
import { StarCounts } from './star-counts.ts';
import * as statements from './statements.ts';

export interface StarTimes {
  /** Between two questions, of all replicas together: GitHub answers 60 an hour without a key. */
  readonly gapMs: number;
  /** How long a count is good. */
  readonly freshMs: number;
  /** First wait after a failure; doubles up to `freshMs`. */
  readonly retryMs: number;
  /** Between two readings of what other replicas were answered. */
  readonly reloadMs: number;
}

export interface StarsOptions {
  /** Called with the account that owns a repository, each time that its forge names it. */
  readonly accountFound?: (database: Database, url: string, account: string) => Promise<void>;
  readonly ledger: Pick<LedgerHandle, 'opened'>;
  /** Addresses of the repositories that the catalog shows now. */
  readonly repositories: () => Iterable<string>;
  readonly fetcher: Pick<Fetcher, 'fetch'>;
  readonly log: Logger;
  /** Aborted when the process is about to end. */
  readonly ending: AbortSignal;
  /** For tests. */
  readonly known?: Readonly<Record<string, KnownForge>>;
  readonly times?: Partial<StarTimes>;
}

const usual: StarTimes = { gapMs: 60_000, freshMs: 86_400_000, retryMs: 600_000, reloadMs: 300_000 };
/** A process that ends in the middle of a question leaves it to another one after so long. */
const leaseMs = 300_000;
type Claim = Awaited<ReturnType<typeof claimOne>>;

/** Keeps star counts up to date from when the database is open. */
export function startStars(options: StarsOptions): StarCounts {
  const counts = new StarCounts();
  void options.ledger.opened.then((opened) => {
    if (opened === undefined) {
      counts.obstacle('no database');
      return;
    }
    const refresh = new StarRefresh(counts, opened.database, options);
    // The first run only reads what is known: a process that is started again and again asks nobody.
    opened.repeat('refresh stars', { ...usual, ...options.times }.gapMs, () => refresh.run());
  });
  return counts;
}

export class StarRefresh {
  readonly #counts: StarCounts;
  readonly #database: Database;
  readonly #options: StarsOptions;
  readonly #times: StarTimes;
  #loadedAt: number | undefined;

  constructor(counts: StarCounts, database: Database, options: StarsOptions) {
    this.#counts = counts;
    this.#database = database;
    this.#options = options;
    this.#times = { ...usual, ...options.times };
  }

  /** Reads what is known, or asks for one repository. @returns 0: the next turn comes after the gap */
  async run(): Promise<number> {
    const isFirst = this.#loadedAt === undefined;
    if (this.#loadedAt === undefined || performance.now() - this.#loadedAt > this.#times.reloadMs) await this.#load();
    if (!isFirst) await this.#askOne();
    return 0;
  }

  async #load(): Promise<void> {
    this.#counts.set(await this.#database.query(statements.all, []));
    if (this.#loadedAt === undefined) this.#counts.obstacle(undefined);
    this.#loadedAt = performance.now();
  }

  async #askOne(): Promise<void> {
    const shown = new Map(
      [...this.#options.repositories()].flatMap((address) => {
        const repository = forgeRepository(address);
        return repository === undefined ? [] : [[repository.url, repository] as const];
      }),
    );
    await this.#add([...shown.values()].filter(({ url }) => !this.#counts.has(url)));
    const claim = await claimOne(this.#database, this.#times.gapMs);
    if (claim === undefined) return;
    const repository = shown.get(claim.url);
    if (repository === undefined) await this.#remove(claim.url);
    else await this.#ask(repository, claim);
  }

  async #add(missing: readonly ForgeRepository[]): Promise<void> {
    if (missing.length === 0) return;
    await this.#database.replay(statements.add, [missing.map(({ url }) => url), missing.map(({ host }) => host)]);
    this.#counts.set(missing.map(({ url }) => ({ url, stars: null, stars_at: null, license: null, reason: null })));
  }

  async #remove(url: string): Promise<void> {
    await this.#database.replay(statements.remove, [url]);
    this.#counts.remove(url);
  }

  async #ask(repository: ForgeRepository, claim: NonNullable<Claim>): Promise<void> {
    const { fetcher, ending: signal, log, known } = this.#options;
    const answer = await askForge({ repository, before: claim, fetcher, signal, known });
    log.debug({ repository: repository.url, outcome: answer.outcome }, 'asked for stars');
    this.#counts.set(await this.#record(repository, claim, answer));
  }

  async #record(
    { url, host }: ForgeRepository,
    { failures }: NonNullable<Claim>,
    answer: ForgeAnswer,
  ): Promise<statements.StoredRepository[]> {
    const fresh = spread(this.#times.freshMs);
    switch (answer.outcome) {
      case 'answered': {
        const { kind, etag, report } = answer;
        if (report.account !== undefined) await this.#options.accountFound?.(this.#database, url, report.account);
        const values = [url, kind, etag, report.stars, report.license ?? null, fresh];
        return this.#database.replay(statements.answered, values);
      }
      case 'unchanged':
        return this.#database.replay(statements.unchanged, [url, fresh]);
      case 'gone':
        return this.#database.query(statements.failed, [url, answer.reason, fresh, true]);
      case 'limited':
        await this.#database.replay(statements.putOff, [host, answer.waitMs]);
        return this.#database.query(statements.failed, [url, answer.reason, answer.waitMs, false]);
      case 'failed': {
        const wait = spread(Math.min(this.#times.retryMs * 2 ** Math.min(failures, 20), this.#times.freshMs));
        return this.#database.query(statements.failed, [url, answer.reason, wait, false]);
      }
    }
  }
}

async function claimOne(
  database: Database,
  gapMs: number,
): Promise<
  { url: string; forge: 'github' | 'gitea' | 'gitlab' | null; etag: string | null; failures: number } | undefined
> {
  // Not replayed: a claim that was lost on the way is free again after its lease.
  const [claim] = await database.query(statements.claim, [Math.round(gapMs * 0.7), leaseMs]);
  return claim;
}

/** Not all at the same time of the day. */
function spread(ms: number): number {
  return Math.round(ms * (0.9 + Math.random() / 5));
}
