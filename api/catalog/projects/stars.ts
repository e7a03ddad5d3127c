// Keeps star counts and licences up to date: all replicas together request one repository at a time, each about once a day.
import { z } from 'zod';
import type { Logger } from '../../../lib/telemetry.ts';
import { type Database, type LedgerHandle, prefixStatements } from '../../billing/index.ts';
import type { KnownForge } from '../../apps/index.ts';
import type { Fetcher } from '../../tools/index.ts';
import { requestReport, type ForgeAnswer, forgeKinds, parseForgeRepository, type ForgeRepository } from './forges.ts';

export interface StarTimes {
  /** Between two questions, of all replicas together: GitHub answers 60 an hour without a key. */
  readonly gapMs: number;
  /** Age at which a count is refreshed. */
  readonly freshMs: number;
  /** First wait after a failure; doubles up to `freshMs`. */
  readonly retryMs: number;
  /** Between two readings of what other replicas were answered. */
  readonly reloadMs: number;
}

export interface StarsOptions {
  /** Called with the account that owns a repository, each time that its forge names it. */
  readonly onAccountFound?: (database: Database, url: string, account: string) => Promise<void>;
  readonly ledger: Pick<LedgerHandle, 'opened'>;
  /** Addresses of the repositories that the catalog shows now. */
  readonly listRepositories: () => Iterable<string>;
  readonly fetcher: Pick<Fetcher, 'fetch'>;
  readonly log: Logger;
  /** Aborted when the process is about to end. */
  readonly ending: AbortSignal;
  /** For tests. */
  readonly known?: Readonly<Record<string, KnownForge>>;
  readonly times?: Partial<StarTimes>;
}

const defaultTimes: StarTimes = { gapMs: 60_000, freshMs: 86_400_000, retryMs: 600_000, reloadMs: 300_000 };
/** If a process ends during a request, another process may claim the repository after this time. */
const leaseMs = 300_000;
type Claim = Awaited<ReturnType<typeof claimOne>>;

/** Keeps star counts up to date from when the database is open. */
export function startStars(options: StarsOptions): StarCounts {
  const counts = new StarCounts();
  void options.ledger.opened.then((opened) => {
    if (opened === undefined) {
      counts.setObstacle('no database');
      return;
    }
    const refresh = new StarRefresh(counts, opened.database, options);
    // The first run only reads the database, so that a process in a restart loop sends no requests.
    opened.repeat('refresh stars', { ...defaultTimes, ...options.times }.gapMs, () => refresh.run());
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
    this.#times = { ...defaultTimes, ...options.times };
  }

  /** Reads what is known, or asks for one repository. @returns 0: the next turn comes after the gap */
  async run(): Promise<number> {
    const isFirst = this.#loadedAt === undefined;
    if (this.#loadedAt === undefined || performance.now() - this.#loadedAt > this.#times.reloadMs) await this.#load();
    if (!isFirst) await this.#askOne();
    return 0;
  }

  async #load(): Promise<void> {
    this.#counts.set(await this.#database.query(selectRepositories, []));
    if (this.#loadedAt === undefined) this.#counts.setObstacle(undefined);
    this.#loadedAt = performance.now();
  }

  async #askOne(): Promise<void> {
    const shown = new Map(
      [...this.#options.listRepositories()].flatMap((address) => {
        const repository = parseForgeRepository(address);
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
    await this.#database.replay(insertRepositories, [missing.map(({ url }) => url), missing.map(({ host }) => host)]);
    this.#counts.set(missing.map(({ url }) => ({ url, stars: null, stars_at: null, license: null, reason: null })));
  }

  async #remove(url: string): Promise<void> {
    await this.#database.replay(deleteRepository, [url]);
    this.#counts.remove(url);
  }

  async #ask(repository: ForgeRepository, claim: NonNullable<Claim>): Promise<void> {
    const { fetcher, ending: signal, log, known } = this.#options;
    const answer = await requestReport({ repository, before: claim, fetcher, signal, known });
    log.debug({ repository: repository.url, outcome: answer.outcome }, 'requested stars');
    this.#counts.set(await this.#record(repository, claim, answer));
  }

  async #record(
    { url, host }: ForgeRepository,
    { failures }: NonNullable<Claim>,
    answer: ForgeAnswer,
  ): Promise<StoredRepository[]> {
    const fresh = addJitter(this.#times.freshMs);
    switch (answer.outcome) {
      case 'answered': {
        const { kind, etag, report } = answer;
        if (report.account !== undefined) await this.#options.onAccountFound?.(this.#database, url, report.account);
        const values = [url, kind, etag, report.stars, report.license ?? null, fresh];
        return this.#database.replay(recordReport, values);
      }
      case 'unchanged':
        return this.#database.replay(recordUnchanged, [url, fresh]);
      case 'gone':
        return this.#database.query(recordFailure, [url, answer.reason, fresh, true]);
      case 'limited':
        await this.#database.replay(postponeHost, [host, answer.waitMs]);
        return this.#database.query(recordFailure, [url, answer.reason, answer.waitMs, false]);
      case 'failed': {
        const wait = addJitter(Math.min(this.#times.retryMs * 2 ** Math.min(failures, 20), this.#times.freshMs));
        return this.#database.query(recordFailure, [url, answer.reason, wait, false]);
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
  const [claim] = await database.query(claimRepository, [Math.round(gapMs * 0.7), leaseMs]);
  return claim;
}

/** Spreads requests over the day. */
function addJitter(ms: number): number {
  return Math.round(ms * (0.9 + Math.random() / 5));
}

/** What is known of a repository, and why something is not. */
export interface StarCount {
  readonly stars: number | null;
  readonly starsAt: Date | null;
  /** Where `stars` is null. */
  readonly reason: string | null;
  readonly license: string | null;
}

/** Why nothing can be known at all; undefined where it can. */
export type Obstacle = 'no database' | 'not open yet' | undefined;

const obstacles: Readonly<Record<Exclude<Obstacle, undefined>, string>> = {
  'no database':
    'Star counts are kept in a database, and none is configured. The operator of this installation can set DATABASE_URL.',
  'not open yet': 'The database is not available yet.',
};

export class StarCounts {
  readonly #known = new Map<string, StoredRepository>();
  #obstacle: Obstacle = 'not open yet';
  #version = 0;

  /** Counts up with each change, so that what is sorted by stars can be kept until then. */
  get version(): number {
    return this.#version;
  }

  setObstacle(obstacle: Obstacle): void {
    this.#obstacle = obstacle;
    this.#version += 1;
  }

  has(url: string): boolean {
    return this.#known.has(url);
  }

  set(rows: readonly StoredRepository[]): void {
    for (const row of rows) this.#known.set(row.url, row);
    this.#version += 1;
  }

  remove(url: string): void {
    this.#known.delete(url);
    this.#version += 1;
  }

  /** What is known of the repository at this address. */
  getCount(address: string): StarCount {
    return this.getCountAt(parseForgeRepository(address));
  }

  /** The same for an address that is read already; undefined: it is not that of a repository. */
  getCountAt(repository: ForgeRepository | undefined): StarCount {
    if (this.#obstacle !== undefined) return createUnknownCount(obstacles[this.#obstacle]);
    if (repository === undefined) return createUnknownCount('The address is not that of a repository on a forge.');
    const row = this.#known.get(repository.url);
    if (row === undefined) return createUnknownCount(notAsked);
    return {
      stars: row.stars,
      starsAt: row.stars_at,
      reason: row.stars === null ? (row.reason ?? notAsked) : null,
      license: row.license,
    };
  }
}

const notAsked = 'The forge has not been asked yet.';

function createUnknownCount(reason: string): StarCount {
  return { stars: null, starsAt: null, reason, license: null };
}

const defineStatement = prefixStatements('catalog-stars');

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

export const selectRepositories = defineStatement('all', `select ${columns} from catalog.repository`, storedRepository);

export const insertRepositories = defineStatement(
  'add',
  `insert into catalog.repository (url, host, next_at)
    select url, host, clock_timestamp() from unnest($1::text[], $2::text[]) as given (url, host) on conflict do nothing`,
  nothing,
);

/** What is due the longest is lent to one process, $1 ms after the last one; two never get the same. */
export const claimRepository = defineStatement(
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

export const deleteRepository = defineStatement('remove', 'delete from catalog.repository where url = $1', nothing);

export const recordReport = defineStatement(
  'answered',
  `update catalog.repository set forge = $2, etag = $3, stars = $4, stars_at = clock_timestamp(), license = $5, reason = null,
      failures = 0, next_at = clock_timestamp() + $6::bigint * interval '1 millisecond'
    where url = $1 returning ${columns}`,
  storedRepository,
);

export const recordUnchanged = defineStatement(
  'unchanged',
  `update catalog.repository set stars_at = clock_timestamp(), reason = null, failures = 0,
      next_at = clock_timestamp() + $2::bigint * interval '1 millisecond'
    where url = $1 and stars is not null returning ${columns}`,
  storedRepository,
);

/** A count that was known stays, with its date; of a repository that is gone, it does not. */
export const recordFailure = defineStatement(
  'failed',
  `update catalog.repository set reason = $2, failures = failures + 1, next_at = clock_timestamp() + $3::bigint * interval '1 millisecond',
      etag = case when $4 then null else etag end, stars = case when $4 then null else stars end,
      stars_at = case when $4 then null else stars_at end, license = case when $4 then null else license end
    where url = $1 returning ${columns}`,
  storedRepository,
);

export const postponeHost = defineStatement(
  'put-off',
  `update catalog.repository set next_at = greatest(next_at, clock_timestamp() + $2::bigint * interval '1 millisecond') where host = $1`,
  nothing,
);
