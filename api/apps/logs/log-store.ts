// Stores what apps print in the ledger's database: the newest lines of each app, how far each container was read, and crashes.
// A batch is stored with the positions that it was read to, in one transaction, so that a collector that is killed at any
// moment leaves neither a gap nor a line twice.
import { z } from 'zod';
import { type OpenLedger, prefixStatements, type Transaction } from '../../billing/index.ts';

/** Where the reading of a container's log has arrived. */
export interface LogPosition {
  /** Time of the last line, as `parseLogLine` gives it. */
  readonly at: string;
  /** Lines with that time that were read, one after another. */
  readonly count: number;
  /** The latest time of all lines so far. */
  readonly maxAt: string;
}

/** A container of a pod, from its first run to its last. */
export interface StreamName {
  readonly podUid: string;
  readonly pod: string;
  readonly container: string;
  readonly component: string;
}

/** The position of a stream in the database. */
export interface StoredPosition extends LogPosition {
  readonly version: number;
}

/** What is new of one stream. */
export interface StreamChange extends StreamName {
  readonly position: LogPosition;
  /** One more than that of the stored position. */
  readonly version: number;
}

export interface NewLine {
  /** The stream in the batch that it belongs to. */
  readonly stream: number;
  readonly at: string;
  /** One line, masked. */
  readonly text: string;
}

export interface StoredLine {
  /** Position in the log of the app, for those who resume: grows from line to line. */
  readonly id: string;
  readonly at: string;
  readonly component: string;
  readonly pod: string;
  readonly line: string;
}

export interface Crash {
  /** Identifies the run of the container that ended. */
  readonly instance: string;
  readonly at: string;
  readonly pod: string;
  readonly component: string;
  readonly restarts: number;
  readonly exitCode: number;
  readonly signal: number | undefined;
  readonly reason: string;
  readonly lines: readonly { readonly at: string; readonly line: string }[];
}

/** Another collector has stored lines of one of these streams in the meantime. Nothing was stored. */
export class StalePosition extends Error {}

export interface LogLimits {
  /** Bytes that are kept of an app. */
  readonly appBytes: number;
  /** A chunk gets more lines until it has this many bytes. */
  readonly chunkBytes: number;
  /** Crashes that are kept of an app. */
  readonly crashes: number;
}

export const logLimits: LogLimits = { appBytes: 5 * 1024 * 1024, chunkBytes: 8 * 1024, crashes: 20 };

/** The newest chunks are read this many at a time. */
const pageSize = 32;

export class LogStore {
  readonly #database: () => OpenLedger['database'];
  readonly #limits: LogLimits;

  /** @param database throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  constructor(database: () => OpenLedger['database'], limits: Partial<LogLimits> = {}) {
    this.#database = database;
    this.#limits = { ...logLimits, ...limits };
  }

  get database(): OpenLedger['database'] {
    return this.#database();
  }

  /** Becomes the collector, or stays it, for so many milliseconds. False if another one is. */
  async claim(holder: string, forMs: number): Promise<boolean> {
    return (await this.database.query(statements.claim, [holder, forMs])).length > 0;
  }

  /** Lets another one become the collector immediately. */
  async release(holder: string): Promise<void> {
    await this.database.query(statements.release, [holder]);
  }

  /** How far a container was read; undefined if no line of it was. */
  async findPosition(podUid: string, container: string): Promise<StoredPosition | undefined> {
    const [position] = await this.database.query(statements.findPosition, [podUid, container]);
    return position;
  }

  /**
   * Stores lines of an app in this order, and the positions that were read to. The oldest lines make room.
   *
   * @throws StalePosition
   */
  async append(app: string, changes: readonly StreamChange[], lines: readonly NewLine[]): Promise<void> {
    await this.database.transaction(async (transaction) => {
      // One batch of an app at a time, so that who reads ids in their order misses none.
      await transaction.query(statements.lock, [app]);
      const moved = await transaction.query(statements.move, [app, JSON.stringify(changes)]);
      if (moved.length < changes.length) throw new StalePosition(`another collector has read these logs of ${app}`);
      const ids = changes.map(({ podUid, container }) => moved.find((one) => isSame(one, { podUid, container }))?.id);
      const texts = lines.map(({ stream, at, text }) => ({ at, text: `${at} ${ids[stream] ?? ''} ${text}\n` }));
      for (const chunk of this.#cut(texts)) await this.#add(transaction, app, chunk);
    });
  }

  /** The newest lines, in their order. `tail`: at most so many that match. `end` is where those that come later begin. */
  async read(
    app: string,
    { tail = Infinity, since, isWanted = () => true }: LineSelection,
  ): Promise<{ readonly lines: StoredLine[]; readonly end: string }> {
    const [newest] = await this.database.query(statements.findEnd, [app]);
    if (newest === undefined) return { lines: [], end: '0/0' };
    const end = { chunk: newest.id, line: newest.count };
    const found: StoredLine[][] = [];
    for (let [count, before] = [0, (BigInt(newest.id) + 1n).toString()]; ;) {
      const chunks = await this.database.query(statements.readBefore, [app, since ?? null, before, pageSize]);
      const lines = (await this.#toLines(chunks.toReversed())).filter(
        (line) => (since === undefined || line.at >= since) && !isAfter(line.id, end) && isWanted(line),
      );
      found.push(lines.slice(-(tail - count)));
      count += lines.length;
      const oldest = chunks.at(-1);
      if (oldest === undefined || chunks.length < pageSize || count >= tail) break;
      before = oldest.id;
    }
    return { lines: found.reverse().flat(), end: `${end.chunk}/${end.line}` };
  }

  /**
   * Lines after a position, in their order, at most a page of chunks. `missed`: older lines were removed before they could be
   * read from there.
   */
  async readAfter(
    app: string,
    after: string,
  ): Promise<{ readonly lines: StoredLine[]; readonly end: string; readonly missed: boolean }> {
    const { chunk, line } = parseLineId(after) ?? { chunk: '0', line: 0 };
    const chunks = await this.database.query(statements.readAfter, [app, chunk, line, pageSize]);
    const lines = (await this.#toLines(chunks)).filter(({ id }) => isAfter(id, { chunk, line }));
    const last = chunks.at(-1);
    const [first] = chunks;
    return {
      lines,
      end: last === undefined ? after : `${last.id}/${last.count}`,
      missed: chunk !== '0' && first !== undefined && first.id !== chunk && first.isOldest,
    };
  }

  async hasCrash(app: string, instance: string): Promise<boolean> {
    return (await this.database.query(statements.hasCrash, [app, instance])).length > 0;
  }

  /** Stores a crash once, and removes the oldest ones. */
  async addCrash(app: string, crash: Crash): Promise<void> {
    const { instance, at, pod, component, restarts, exitCode, signal = null, reason, lines } = crash;
    const values = [app, instance, at, pod, component, restarts, exitCode, signal, reason, JSON.stringify(lines)];
    await this.database.transaction(async (transaction) => {
      await transaction.query(statements.addCrash, values);
      await transaction.query(statements.trimCrashes, [app, this.#limits.crashes]);
    });
  }

  /** The newest crashes first. @param component that of the app or, undefined, any */
  async listCrashes(app: string, component: string | undefined, limit: number): Promise<Crash[]> {
    return this.database.query(statements.listCrashes, [app, component ?? null, limit]);
  }

  /**
   * Removes what is kept of apps that are gone, unless it is younger than ten minutes, since an app may be newer than the list,
   * and positions of pods that are gone and of which no line is left.
   */
  async clean(apps: readonly string[], podUids: readonly string[]): Promise<void> {
    for (const statement of statements.removeApps) await this.database.query(statement, [apps]);
    await this.database.query(statements.removeStreams, [podUids]);
  }

  /** Cuts lines into chunks. A line that is longer than a chunk is one of its own. */
  #cut(lines: readonly { readonly at: string; readonly text: string }[]): Chunk[] {
    const chunks: Chunk[] = [];
    for (const { at, text } of lines) {
      const bytes = Buffer.byteLength(text);
      const last = chunks.at(-1);
      if (last === undefined || last.bytes + bytes > this.#limits.chunkBytes)
        chunks.push({ parts: [text], bytes, lastAt: at });
      else {
        last.parts.push(text);
        last.bytes += bytes;
        if (at > last.lastAt) last.lastAt = at;
      }
    }
    return chunks;
  }

  async #add(transaction: Transaction, app: string, { parts, bytes, lastAt }: Chunk): Promise<void> {
    const values = [app, parts.join(''), parts.length, bytes, lastAt];
    const grown = await transaction.query(statements.grow, [...values, this.#limits.chunkBytes]);
    if (grown.length > 0) return;
    await transaction.query(statements.add, values);
    await transaction.query(statements.trim, [app, this.#limits.appBytes]);
  }

  async #toLines(chunks: readonly z.output<typeof chunkRow>[]): Promise<StoredLine[]> {
    const lines = chunks.flatMap(({ id, lines: text }) =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line, index) => {
          const [at = '', stream = ''] = line.split(' ', 2);
          return { id: `${id}/${index + 1}`, at, stream, line: line.slice(at.length + stream.length + 2) };
        }),
    );
    const ids = [...new Set(lines.map(({ stream }) => stream))];
    const streams = ids.length === 0 ? [] : await this.database.query(statements.listStreams, [ids]);
    const byId = new Map(streams.map(({ id, component, pod }) => [id, { component, pod }]));
    return lines.map(({ stream, ...line }) => ({
      ...line,
      ...(byId.get(stream) ?? { component: 'unknown', pod: 'unknown' }),
    }));
  }
}

/** Which lines to read. */
export interface LineSelection {
  readonly tail?: number | undefined;
  /** The time of the first line, as `parseLogLine` gives it. */
  readonly since?: string | undefined;
  readonly isWanted?: (line: StoredLine) => boolean;
}

interface Chunk {
  readonly parts: string[];
  bytes: number;
  lastAt: string;
}

interface StreamKey {
  readonly podUid: string;
  readonly container: string;
}

function isSame(a: StreamKey, b: StreamKey): boolean {
  return a.podUid === b.podUid && a.container === b.container;
}

/** Reads the id of a line; undefined for anything else. */
export function parseLineId(id: string | undefined): { readonly chunk: string; readonly line: number } | undefined {
  const [, chunk, line] = /^(\d{1,18})\/(\d{1,9})$/.exec(id ?? '') ?? [];
  return chunk === undefined ? undefined : { chunk, line: Number(line) };
}

function isAfter(id: string, { chunk, line }: { readonly chunk: string; readonly line: number }): boolean {
  const own = parseLineId(id);
  if (own === undefined) return false;
  return own.chunk === chunk ? own.line > line : BigInt(own.chunk) > BigInt(chunk);
}

const defineStatement = prefixStatements('app-logs');
const none = z.unknown();
const chunkRow = z.object({ id: z.coerce.string(), lines: z.string(), count: z.int() });
const kept = ['log_stream', 'log_chunk', 'crash', 'secret_fingerprint'] as const;

const statements = {
  claim: defineStatement(
    'claim',
    `insert into author.log_collector as c (holder, until) values ($1, now() + $2::int * interval '1 millisecond')
      on conflict (id) do update set holder = excluded.holder, until = excluded.until
        where c.holder = excluded.holder or c.until <= now()
      returning holder`,
    none,
  ),
  release: defineStatement('release', `update author.log_collector set until = now() where holder = $1`, none),
  findPosition: defineStatement(
    'find-position',
    `select last_at as at, last_count as count, max_at as "maxAt", version from author.log_stream
      where pod_uid = $1 and container = $2`,
    z.object({ at: z.string(), count: z.int(), maxAt: z.string(), version: z.coerce.number() }),
  ),
  lock: defineStatement('lock', `select pg_advisory_xact_lock(hashtextextended('app log ' || $1::text, 0))`, none),
  move: defineStatement(
    'move',
    `insert into author.log_stream as s (app, pod_uid, pod, container, component, last_at, last_count, max_at, version)
      select $1, c."podUid", c.pod, c.container, c.component, c.position->>'at', (c.position->>'count')::int,
          c.position->>'maxAt', c.version
        from jsonb_to_recordset($2)
          c ("podUid" text, pod text, container text, component text, position jsonb, version bigint)
      on conflict (pod_uid, container) do update
        set last_at = excluded.last_at, last_count = excluded.last_count, max_at = excluded.max_at,
          version = excluded.version, updated_at = now()
        where s.version = excluded.version - 1 and s.app = excluded.app
      returning id, pod_uid as "podUid", container`,
    z.object({ id: z.coerce.string(), podUid: z.string(), container: z.string() }),
  ),
  grow: defineStatement(
    'grow',
    `update author.log_chunk set lines = lines || $2, count = count + $3, bytes = bytes + $4, last_at = greatest(last_at, $5)
      where id = (select max(id) from author.log_chunk where app = $1) and bytes + $4 <= $6 returning id`,
    none,
  ),
  add: defineStatement(
    'add',
    `insert into author.log_chunk (app, lines, count, bytes, last_at) values ($1, $2, $3, $4, $5)`,
    none,
  ),
  trim: defineStatement(
    'trim',
    `delete from author.log_chunk where id in (
        select id from (select id, sum(bytes) over (order by id desc) as total from author.log_chunk where app = $1) c
          where total > $2
      )`,
    none,
  ),
  findEnd: defineStatement(
    'find-end',
    `select id, count from author.log_chunk where app = $1 order by id desc limit 1`,
    chunkRow.omit({ lines: true }),
  ),
  readBefore: defineStatement(
    'read-before',
    `select id, lines, count from author.log_chunk
      where app = $1 and ($2::text is null or last_at >= $2) and id < $3 order by id desc limit $4`,
    chunkRow,
  ),
  readAfter: defineStatement(
    'read-after',
    `select id, lines, count, id = (select min(id) from author.log_chunk where app = $1) as "isOldest"
      from author.log_chunk where app = $1 and (id > $2 or id = $2 and count > $3) order by id limit $4`,
    chunkRow.extend({ isOldest: z.boolean() }),
  ),
  listStreams: defineStatement(
    'list-streams',
    `select id, component, pod from author.log_stream where id = any($1)`,
    z.object({ id: z.coerce.string(), component: z.string(), pod: z.string() }),
  ),
  hasCrash: defineStatement('has-crash', `select id from author.crash where app = $1 and instance = $2`, none),
  addCrash: defineStatement(
    'add-crash',
    `insert into author.crash (app, instance, at, pod, component, restarts, exit_code, signal, reason, lines)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict (app, instance) do nothing`,
    none,
  ),
  trimCrashes: defineStatement(
    'trim-crashes',
    `delete from author.crash where id in (
        select id from author.crash where app = $1 order by at desc, id desc offset $2
      )`,
    none,
  ),
  listCrashes: defineStatement(
    'list-crashes',
    `select instance, at, pod, component, restarts, exit_code as "exitCode", signal, reason, lines from author.crash
      where app = $1 and ($2::text is null or component = $2) order by at desc, id desc limit $3`,
    z.object({
      instance: z.string(),
      at: z.date().transform((date) => date.toISOString()),
      pod: z.string(),
      component: z.string(),
      restarts: z.int(),
      exitCode: z.int(),
      signal: z
        .int()
        .nullable()
        .transform((signal) => signal ?? undefined),
      reason: z.string(),
      lines: z.array(z.object({ at: z.string(), line: z.string() })),
    }),
  ),
  removeApps: kept.map((table) =>
    defineStatement(
      `remove-apps-${table}`,
      `delete from author.${table} where not (app = any($1)) and app in (
          select app from author.${table} group by app having max(created_at) < now() - interval '10 minutes'
        )`,
      none,
    ),
  ),
  removeStreams: defineStatement(
    'remove-streams',
    `delete from author.log_stream s where not (pod_uid = any($1))
      and updated_at < coalesce((select min(created_at) from author.log_chunk c where c.app = s.app), now() - interval '1 hour')
      and updated_at < now() - interval '1 hour'`,
    none,
  ),
} as const;
