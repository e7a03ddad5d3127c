// The audit log of an app: who did what with it, when, and with which author key or token. Rows are added and never changed.
import { z } from 'zod';
import { type OpenLedger, prefixStatements } from '../../billing/index.ts';

/** Who does something. */
export interface Actor {
  /** First digits of the hash of an author key, or a kind, a colon and an id. */
  readonly id: string;
  /** What its owner calls it; a key has no name. */
  readonly name?: string | undefined;
}

/** An action before it is carried out. */
export interface ActionRecord {
  /** UID of the app. */
  readonly app: string;
  readonly slug: string;
  readonly actor: Actor;
  /** Like `restart` or `set-secret`. */
  readonly action: string;
  /** What was changed, without secret values. */
  readonly detail: Readonly<Record<string, unknown>>;
  /** Id of the request. */
  readonly request: string;
}

const defineStatement = prefixStatements('author-actions');
const row = z.object({
  id: z.coerce.string(),
  at: z.date(),
  actor: z.string(),
  actor_name: z.string().nullable(),
  action: z.string(),
  detail: z.record(z.string(), z.unknown()),
  outcome: z.enum(['accepted', 'failed']),
  request: z.string(),
});
export type AuditEntry = z.output<typeof row>;

const statements = {
  add: defineStatement(
    'add',
    `insert into author.action (app, slug, actor, actor_name, action, detail, outcome, request) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    z.unknown(),
  ),
  list: defineStatement(
    'list',
    `select id, at, actor, actor_name, action, detail, outcome, request from author.action
      where app = $1 and ($2::bigint is null or id < $2) order by id desc limit $3`,
    row,
  ),
} as const;

export class AuditLog {
  readonly #database: () => OpenLedger['database'];

  /** @param database throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  constructor(database: () => OpenLedger['database']) {
    this.#database = database;
  }

  /**
   * Records an action and carries it out. The record comes first: an action that nobody can attribute must not happen.
   *
   * @throws whatever `work` throws, after a second record that it failed
   */
  async record<Result>(action: ActionRecord, work: () => Promise<Result>): Promise<Result> {
    await this.#add(action, 'accepted');
    try {
      return await work();
    } catch (error) {
      // What the caller must see is why the action failed, even if that cannot be recorded either.
      await this.#add(action, 'failed').catch(() => undefined);
      throw error;
    }
  }

  /** The newest actions first. @param before the id of the last entry of the page before */
  async list(app: string, limit: number, before?: string): Promise<AuditEntry[]> {
    return this.#database().query(statements.list, [app, before ?? null, limit]);
  }

  async #add({ app, slug, actor, action, detail, request }: ActionRecord, outcome: string): Promise<void> {
    const values = [app, slug, actor.id, actor.name ?? null, action, JSON.stringify(detail), outcome, request];
    await this.#database().query(statements.add, values);
  }
}
