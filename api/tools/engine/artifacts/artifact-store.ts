// Stores the files of tools for a while, so that their links work without running the tool again. Bounded: the oldest
// are removed first.
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Database, Statement } from '../../../billing/index.ts';
import type { Artifact } from '../../tool.ts';

export interface ArtifactStoreOptions {
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  readonly database: () => Database;
  /** How long a file is kept; default an hour. */
  readonly keepMs?: number;
  /** Largest file, all files of one caller, and of all callers together; default 32 MiB, 64 MiB and 1 GiB. */
  readonly maxBytes?: { readonly one: number; readonly owner: number; readonly all: number };
  /** Files of one caller; default 100. */
  readonly maxFiles?: number;
}

/** Where a file is kept. */
export interface StoredArtifact {
  readonly id: string;
  readonly expiresAt: Date;
}

const now = 'clock_timestamp()';
const newestFirst = 'order by nth desc';

const statements = {
  keep: {
    name: 'artifact-keep',
    text: `with gone as (delete from tools.artifact where id in (
        select id from (select id, row_number() over (${newestFirst}) as n, sum(size) over (${newestFirst}) as total from tools.artifact where owner = $2) own
        where n >= $7::int or total + $6::int > $8::bigint))
      insert into tools.artifact (id, owner, media_type, file_name, bytes, size, expires_at)
        values ($1, $2, $3, $4, $5::bytea, $6::int, ${now} + $9::bigint * interval '1 millisecond')
      on conflict (id) do update set expires_at = excluded.expires_at returning expires_at`,
    row: z.object({ expires_at: z.coerce.date() }),
  } satisfies Statement<unknown>,
  get: {
    name: 'artifact-get',
    text: `select bytes, media_type as "mediaType", file_name as "fileName" from tools.artifact where id = $1 and expires_at > ${now}
      union all select artifact, media_type, file_name from tools.job where file_id = $1 and artifact is not null and expires_at > ${now}`,
    row: z.object({ bytes: z.instanceof(Uint8Array), mediaType: z.string(), fileName: z.string() }),
  } satisfies Statement<unknown>,
  sweep: {
    name: 'artifact-sweep',
    text: `delete from tools.artifact where expires_at <= ${now} or id in (
      select id from (select id, sum(size) over (${newestFirst}) as total from tools.artifact) kept where total > $1::bigint) returning id`,
    row: z.object({ id: z.string() }),
  } satisfies Statement<unknown>,
};

/** An id that nobody guesses: 128 random bits. */
export function artifactId(): string {
  return randomBytes(16).toString('base64url');
}
const idForm = /^[A-Za-z0-9_-]{22}$/;

/** Whether this can be the id of a file. */
export function isArtifactId(text: string): boolean {
  return idForm.test(text);
}

export class ArtifactStore {
  readonly #options: ArtifactStoreOptions;
  /** Bytes kept by this process since all were last counted. */
  #added = 0;

  constructor(options: ArtifactStoreOptions) {
    this.#options = options;
  }

  /**
   * Keeps a file of this caller, in place of older ones when there are many. @returns undefined when it is too large to
   * be kept
   */
  async keep(owner: string, { bytes, mediaType, fileName }: Artifact): Promise<StoredArtifact | undefined> {
    const { database, keepMs = 3_600_000, maxFiles = 100 } = this.#options;
    const maximum = this.#maximum;
    if (bytes.length > Math.min(maximum.one, maximum.owner)) return undefined;
    // Not left to the chore alone: many callers could bring much between two rounds of it.
    if (this.#added + bytes.length > maximum.all / 16) await this.sweep();
    this.#added += bytes.length;
    const id = artifactId();
    const [kept] = await database().replay(statements.keep, [
      id,
      owner,
      mediaType,
      fileName,
      bytes,
      bytes.length,
      maxFiles,
      maximum.owner,
      keepMs,
    ]);
    return kept === undefined ? undefined : { id, expiresAt: kept.expires_at };
  }

  /** A file, of a job too; undefined when it is not kept, or no longer. */
  async get(id: string): Promise<Artifact | undefined> {
    if (!isArtifactId(id)) return undefined;
    const [file] = await this.#options.database().replay(statements.get, [id]);
    return file;
  }

  /** Forgets what has expired, and the oldest beyond what is kept for all. To be repeated. @returns how many */
  async sweep(): Promise<number> {
    this.#added = 0;
    return (await this.#options.database().replay(statements.sweep, [this.#maximum.all])).length;
  }

  get #maximum(): { readonly one: number; readonly owner: number; readonly all: number } {
    return this.#options.maxBytes ?? { one: 32 * 1_048_576, owner: 64 * 1_048_576, all: 1_073_741_824 };
  }
}
