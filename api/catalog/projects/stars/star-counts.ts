// Stars and licences of repositories, as forges reported them: kept in the database, read from memory.
import type { StoredRepository } from './statements.ts';
import { forgeRepository, type ForgeRepository } from './forges.ts';

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

  obstacle(obstacle: Obstacle): void {
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
  of(address: string): StarCount {
    return this.at(forgeRepository(address));
  }

  /** The same for an address that is read already; undefined: it is not that of a repository. */
  at(repository: ForgeRepository | undefined): StarCount {
    if (this.#obstacle !== undefined) return unknown(obstacles[this.#obstacle]);
    if (repository === undefined) return unknown('The address is not that of a repository on a forge.');
    const row = this.#known.get(repository.url);
    if (row === undefined) return unknown(notAsked);
    return {
      stars: row.stars,
      starsAt: row.stars_at,
      reason: row.stars === null ? (row.reason ?? notAsked) : null,
      license: row.license,
    };
  }
}

const notAsked = 'The forge has not been asked yet.';

function unknown(reason: string): StarCount {
  return { stars: null, starsAt: null, reason, license: null };
}
