// Stores the files that tools create for a while, and serves them at GET /t/artifacts/{id} without running the tool
// again. The total size is limited: the oldest files are removed first.
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { type Database, type Statement, ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import type { Artifact } from '../tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import { costHeaderFields, formatCostHeaders, noCost, createRawResponse } from './response.ts';
import { unknownFile } from '../problems.ts';

export interface ArtifactStoreOptions {
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  readonly database: () => Database;
  /** How long a file is stored; default one hour. */
  readonly keepMs?: number;
  /** Largest file, all files of one caller, and of all callers together; default 32 MiB, 64 MiB and 1 GiB. */
  readonly maxBytes?: { readonly one: number; readonly owner: number; readonly all: number };
  /** Files of one caller; default 100. */
  readonly maxFiles?: number;
}

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

/** An id that cannot be guessed: 128 random bits. */
export function createArtifactId(): string {
  return randomBytes(16).toString('base64url');
}
const idForm = /^[A-Za-z0-9_-]{22}$/;

export function isArtifactId(text: string): boolean {
  return idForm.test(text);
}

export class ArtifactStore {
  readonly #options: ArtifactStoreOptions;
  /** Bytes stored by this process since the last sweep. */
  #added = 0;

  constructor(options: ArtifactStoreOptions) {
    this.#options = options;
  }

  /**
   * Stores a file of this caller and removes the caller's oldest files beyond the limits. @returns undefined if it is
   * too large to store
   */
  async keep(owner: string, { bytes, mediaType, fileName }: Artifact): Promise<StoredArtifact | undefined> {
    const { database, keepMs = 3_600_000, maxFiles = 100 } = this.#options;
    const maximum = this.#maximum;
    if (bytes.length > Math.min(maximum.one, maximum.owner)) return undefined;
    // Do not leave this to the periodic sweep alone: many callers could store too much between two rounds.
    if (this.#added + bytes.length > maximum.all / 16) await this.sweep();
    this.#added += bytes.length;
    const id = createArtifactId();
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

  /** Returns a file of a call or a job; undefined if it is not stored or has expired. */
  async get(id: string): Promise<Artifact | undefined> {
    if (!isArtifactId(id)) return undefined;
    const [file] = await this.#options.database().replay(statements.get, [id]);
    return file;
  }

  /** Deletes expired files, and the oldest beyond the total limit. Call this periodically. @returns the number deleted */
  async sweep(): Promise<number> {
    this.#added = 0;
    return (await this.#options.database().replay(statements.sweep, [this.#maximum.all])).length;
  }

  get #maximum(): { readonly one: number; readonly owner: number; readonly all: number } {
    return this.#options.maxBytes ?? { one: 32 * 1_048_576, owner: 64 * 1_048_576, all: 1_073_741_824 };
  }
}

/** The URL of a file is the permission to read it. */
const path = '/t/artifacts';

export function buildArtifactUrl(baseUrl: string, id: string): string {
  return `${baseUrl}${path}/${id}`;
}

/**
 * Parses the id from the URL of a file of this installation; in the field `artifact`, also from the id alone or the
 * path. Undefined for anything else.
 */
export function parseArtifactId(baseUrl: string, text: string, field: 'url' | 'artifact'): string | undefined {
  if (field === 'artifact' && isArtifactId(text)) return text;
  const base = field === 'artifact' ? baseUrl : undefined;
  if (!URL.canParse(text, base)) return undefined;
  const [given, own] = [new URL(text, base), new URL(buildArtifactUrl(baseUrl, ''))];
  const id = given.pathname.startsWith(own.pathname) ? given.pathname.slice(own.pathname.length) : '';
  return given.origin === own.origin && isArtifactId(id) ? id : undefined;
}

export function defineArtifactEndpoint(artifacts: Pick<ArtifactStore, 'get'>): Endpoint {
  return defineEndpoint({
    method: 'GET',
    head: 'as GET',
    path: `${path}/{id}`,
    operation: 'getArtifact',
    tag: 'tools',
    summary: 'Download a file that a tool created',
    description:
      'Tool responses link to their files here. A file is stored for one hour, the file of a job for 24 hours; when one caller creates many files, the oldest are removed earlier. Downloads are free. Anyone who has the URL can download the file; no key is required.',
    params: z.strictObject({ id: z.string().max(100).describe('Id of the file, from the URL in the tool response.') }),
    output: z.never(),
    outputDescription: 'The bytes of the file.',
    produces: ['*/*'],
    problems: [unknownFile, ledgerUnavailable, ledgerUnconfigured],
    problemHeaders: costHeaderFields,
    async handler({ params: { id } }) {
      const file = await artifacts.get(id);
      if (file === undefined)
        throw new Problem(
          unknownFile,
          'No file with this id is stored; it may have expired. Call the tool again to create it again.',
        );
      return createRawResponse(file, {
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        ...formatCostHeaders(noCost),
      });
    },
  });
}
