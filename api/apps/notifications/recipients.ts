// Keeps who is notified in PostgreSQL: the webhook, contacts that confirmed their address, which events each channel sends, and
// who stopped the mails. Addresses are sealed, and rows name contacts by a keyed hash.
import { z } from 'zod';
import { type OpenLedger, prefixStatements } from '../../billing/index.ts';
import { type ChosenKind, chosenKinds, type EventDetail } from './events.ts';
import { type Channel, channel, formatMs, formatRecent, type NotifiedApp, now } from './store.ts';

const hourMs = 3_600_000;
/** Contacts of an app besides the one in the repository. */
export const maximumContacts = 5;
/** Requests to confirm an address in 24 hours, by app and by address, since anyone can enter the address of somebody else. */
const confirmationsPerApp = 5;
const confirmationsPerContact = 3;
/** The link in a request to confirm an address is valid for so long. */
export const confirmMs = 48 * hourMs;

const defineStatement = prefixStatements('notification-recipients');

const recipientRow = z.object({
  channel,
  recipient: z.string(),
  url: z.string().nullable(),
  address: z.string().nullable(),
  created_at: z.date(),
  confirmed_at: z.date().nullable(),
  /** The link that confirms the address is still valid. */
  is_confirmable: z.boolean(),
  stopped_at: z.date().nullable(),
  failing_since: z.date().nullable(),
  off_at: z.date().nullable(),
});
export type RecipientRow = z.output<typeof recipientRow>;

/** What became of a contact that an author wants to add. */
const contactOutcome = z.enum(['requested', 'confirmed', 'stopped', 'too-many', 'limited']);
export type ContactOutcome = z.output<typeof contactOutcome>;

const one = z.unknown();
const version = z.object({ version: z.uuid() });
const statements = {
  lock: defineStatement('lock', `select pg_advisory_xact_lock(hashtextextended('author.recipient:' || $1, 0))`, one),
  removeWebhook: defineStatement(
    'remove-webhook',
    `delete from author.notification_target where app = $1 and channel = 'webhook' returning channel`,
    z.object({ channel }),
  ),
  /** $1 app, $2 url. */
  setWebhook: defineStatement(
    'set-webhook',
    `insert into author.notification_target (app, channel, url, version) values ($1, 'webhook', $2, gen_random_uuid())
      on conflict (app, channel, recipient) do update set url = excluded.url, version = excluded.version,
        created_at = ${now}, failing_since = null, off_at = null
      returning version`,
    version,
  ),
  /** $1 app, $2 channel. */
  chooseAll: defineStatement(
    'choose-all',
    'delete from author.notification_choice where app = $1 and channel = $2',
    one,
  ),
  /** $1 app, $2 channel, $3 kinds. */
  choose: defineStatement(
    'choose',
    `insert into author.notification_choice (app, channel, events) values ($1, $2, $3::text[])
      on conflict (app, channel) do update set events = excluded.events`,
    one,
  ),
  listChoices: defineStatement(
    'list-choices',
    'select channel, events from author.notification_choice where app = $1',
    z.object({ channel, events: z.array(z.string()) }),
  ),
  stop: defineStatement(
    'stop',
    'insert into author.notification_stop (app, contact) values ($1, $2) on conflict do nothing',
    one,
  ),
  skipStopped: defineStatement(
    'skip-stopped',
    `update author.delivery set state = 'skipped', ended_at = ${now}, last_error = 'The mails were stopped.'
      where app = $1 and channel = 'mail' and recipient = $2 and state = 'waiting'`,
    one,
  ),
  start: defineStatement('start', 'delete from author.notification_stop where app = $1 and contact = $2', one),
  startMail: defineStatement(
    'start-mail',
    `update author.notification_target set failing_since = null, off_at = null where app = $1 and channel = 'mail'`,
    one,
  ),
  findStop: defineStatement(
    'find-stop',
    'select at from author.notification_stop where app = $1 and contact = $2',
    z.object({ at: z.date() }),
  ),
  /** $1 app, $2 ms for which an address can be confirmed. */
  list: defineStatement(
    'list',
    `select t.channel, t.recipient, t.url, t.address, t.created_at, t.confirmed_at,
        t.created_at > ${now} - ${formatMs('$2')} as is_confirmable, s.at as stopped_at, t.failing_since, t.off_at
      from author.notification_target t
        left join author.notification_stop s on t.channel = 'mail' and s.app = t.app and s.contact = t.recipient
      where t.app = $1 order by t.created_at, t.recipient`,
    recipientRow,
  ),
  /** $1 app, $2 contact. What becomes of a contact that is added now. */
  judgeContact: defineStatement(
    'judge-contact',
    `with contacts as (
        select recipient, confirmed_at from author.notification_target where app = $1 and channel = 'mail' and address is not null),
      requests as (
        select d.app, d.recipient from author.delivery d join author.event e on e.id = d.event
        where e.kind = 'confirm' and (d.app = $1 or d.recipient = $2) and ${formatRecent('d.created_at', 24 * hourMs)})
      select case
        when exists (select from contacts where recipient = $2 and confirmed_at is not null) then 'confirmed'
        when exists (select from author.notification_stop where app = $1 and contact = $2) then 'stopped'
        when (select count(*) from contacts where recipient <> $2) >= ${maximumContacts} then 'too-many'
        when (select count(*) from requests where app = $1) >= ${confirmationsPerApp}
          or (select count(*) from requests where recipient = $2) >= ${confirmationsPerContact} then 'limited'
        else 'requested' end as outcome`,
    z.object({ outcome: contactOutcome }),
  ),
  /** $1 app, $2 contact, $3 sealed address. */
  addContact: defineStatement(
    'add-contact',
    `insert into author.notification_target (app, channel, recipient, address, version) values ($1, 'mail', $2, $3, gen_random_uuid())
      on conflict (app, channel, recipient) do update set address = excluded.address, version = excluded.version,
        created_at = ${now}, failing_since = null, off_at = null
      returning version`,
    version,
  ),
  /** $1 app, $2 slug, $3 version of the contact, $4 detail, $5 contact. */
  requestConfirmation: defineStatement(
    'request-confirmation',
    `with event as (
        insert into author.event (app, slug, kind, subject, detail) values ($1, $2, 'confirm', $3, $4::jsonb) returning id)
      insert into author.delivery (event, channel, recipient, app) select id, 'mail', $5, $1 from event`,
    one,
  ),
  /** $1 app, $2 contact, $3 version, $4 ms for which an address can be confirmed. */
  findConfirmation: defineStatement(
    'find-confirmation',
    `select confirmed_at is not null as is_confirmed from author.notification_target
      where app = $1 and channel = 'mail' and recipient = $2 and version = $3::uuid
        and (confirmed_at is not null or created_at > ${now} - ${formatMs('$4')})`,
    z.object({ is_confirmed: z.boolean() }),
  ),
  confirm: defineStatement(
    'confirm',
    `update author.notification_target set confirmed_at = coalesce(confirmed_at, ${now})
      where app = $1 and channel = 'mail' and recipient = $2 and version = $3::uuid
        and (confirmed_at is not null or created_at > ${now} - ${formatMs('$4')})
      returning recipient`,
    z.object({ recipient: z.string() }),
  ),
  /** $1 app, $2 channel, $3 recipient. The row of the contact in the repository stays. */
  remove: defineStatement(
    'remove',
    `delete from author.notification_target where app = $1 and channel = $2 and recipient = $3 and address is not null
      returning recipient`,
    z.object({ recipient: z.string() }),
  ),
  skipRemoved: defineStatement(
    'skip-removed',
    `update author.delivery set state = 'skipped', ended_at = ${now}, last_error = 'The recipient was removed.'
      where app = $1 and channel = $2 and recipient = $3 and state = 'waiting'`,
    one,
  ),
  /** $1 UIDs of the apps that exist. A day passes first, so that a cache that lags behind deletes nothing. */
  forget: defineStatement(
    'forget',
    `with targets as (
        delete from author.notification_target where app <> all ($1::text[]) and created_at < ${now} - interval '1 day' returning 1),
      choices as (
        delete from author.notification_choice c where app <> all ($1::text[])
          and not exists (select from author.notification_target t where t.app = c.app) returning 1)
      select (select count(*) from targets)::int + (select count(*) from choices)::int as count`,
    z.object({ count: z.int() }),
  ),
} as const;

/** What a link in a request for confirmation names. */
export interface Confirmation {
  readonly app: string;
  readonly contact: string;
  readonly version: string;
}

export class RecipientStore {
  readonly #database: () => OpenLedger['database'];

  /** @param database throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  constructor(database: () => OpenLedger['database']) {
    this.#database = database;
  }

  /** Sets or replaces the webhook of an app. @returns its version, from which the signing secret is derived */
  async setWebhook(app: string, url: string, kinds: readonly ChosenKind[]): Promise<string> {
    return this.#database().transaction(async (transaction) => {
      const [row] = await transaction.query(statements.setWebhook, [app, url]);
      if (row === undefined) throw new Error('the webhook was not stored');
      await transaction.query(...toChoice(app, 'webhook', kinds));
      return row.version;
    });
  }

  /** @returns whether there was one */
  async removeWebhook(app: string): Promise<boolean> {
    return (await this.#database().query(statements.removeWebhook, [app])).length > 0;
  }

  /** Chooses the events that a channel sends. */
  async choose(app: string, name: Channel, kinds: readonly ChosenKind[]): Promise<void> {
    await this.#database().replay(...toChoice(app, name, kinds));
  }

  /** The events that each channel sends; one that is missing sends all. */
  async listChoices(app: string): Promise<ReadonlyMap<Channel, readonly string[]>> {
    const rows = await this.#database().query(statements.listChoices, [app]);
    return new Map(rows.map((row) => [row.channel, row.events]));
  }

  async stopMail(app: string, contact: string): Promise<void> {
    await this.#database().replay(statements.stop, [app, contact]);
    await this.#database().replay(statements.skipStopped, [app, contact]);
  }

  /** Starts the mails to the contact in the repository again, and those to all that failed for too long. */
  async startMail(app: string, contact: string): Promise<void> {
    await this.#database().replay(statements.start, [app, contact]);
    await this.#database().replay(statements.startMail, [app]);
  }

  async findStop(app: string, contact: string): Promise<Date | undefined> {
    return (await this.#database().query(statements.findStop, [app, contact]))[0]?.at;
  }

  /** The recipients of an app, the oldest first. */
  async list(app: string): Promise<RecipientRow[]> {
    return this.#database().query(statements.list, [app, confirmMs]);
  }

  /**
   * Adds a contact, and asks them to confirm their address. Both are stored together, so that a process that is killed leaves
   * neither a contact without a mail nor a mail without a contact.
   *
   * @param address sealed
   */
  async addContact(
    { uid, slug }: NotifiedApp,
    { contact, address }: { readonly contact: string; readonly address: string },
    detail: EventDetail,
  ): Promise<ContactOutcome> {
    return this.#database().transaction(async (transaction) => {
      // One contact at a time, so that the limits are exact.
      for (const name of [uid, contact]) await transaction.query(statements.lock, [name]);
      const [judged] = await transaction.query(statements.judgeContact, [uid, contact]);
      if (judged?.outcome !== 'requested') return judged?.outcome ?? 'limited';
      const [row] = await transaction.query(statements.addContact, [uid, contact, address]);
      const values = [uid, slug, row?.version, JSON.stringify(detail), contact];
      await transaction.query(statements.requestConfirmation, values);
      return 'requested';
    });
  }

  /** Whether an address is confirmed; undefined if there is nothing to confirm (any more). */
  async findConfirmation({ app, contact, version: asked }: Confirmation): Promise<boolean | undefined> {
    const [row] = await this.#database().query(statements.findConfirmation, [app, contact, asked, confirmMs]);
    return row?.is_confirmed;
  }

  /** Confirms an address. @returns false if there is nothing to confirm (any more) */
  async confirm({ app, contact, version: asked }: Confirmation): Promise<boolean> {
    return this.#database().transaction(async (transaction) => {
      const rows = await transaction.query(statements.confirm, [app, contact, asked, confirmMs]);
      // Who opens the link now wants mails, even if they stopped them before.
      if (rows.length > 0) await transaction.query(statements.start, [app, contact]);
      return rows.length > 0;
    });
  }

  /** Removes a recipient that was added. @returns whether there was one */
  async remove(app: string, name: Channel, recipient: string): Promise<boolean> {
    const rows = await this.#database().query(statements.remove, [app, name, recipient]);
    if (rows.length > 0) await this.#database().replay(statements.skipRemoved, [app, name, recipient]);
    return rows.length > 0;
  }

  /** Deletes the recipients of apps that no longer exist. @param apps UIDs of those that do. @returns the number deleted */
  async forget(apps: readonly string[]): Promise<number> {
    // No app at all is rather a cache that is not filled.
    if (apps.length === 0) return 0;
    return (await this.#database().query(statements.forget, [[...apps]]))[0]?.count ?? 0;
  }
}

/** All events need no row, so that those that are added later are sent, too. */
function toChoice(app: string, name: Channel, kinds: readonly ChosenKind[]): [typeof statements.choose, unknown[]] {
  const isAll = chosenKinds.every((kind) => kinds.includes(kind));
  return isAll ? [statements.chooseAll, [app, name]] : [statements.choose, [app, name, [...new Set(kinds)]]];
}
