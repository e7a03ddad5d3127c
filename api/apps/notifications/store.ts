// Keeps events, targets, stops and deliveries in PostgreSQL, so that of several replicas one records each event and makes each
// delivery, and any of them may be killed at any time.
import { z } from 'zod';
import { type OpenLedger, prefixStatements } from '../../billing/index.ts';
import { type EventKind, eventDetail, eventKind, type NoticedEvent } from './events.ts';

export const channel = z.enum(['mail', 'webhook']);
export type Channel = z.output<typeof channel>;

/** An app as its events name it. */
export interface NotifiedApp {
  readonly uid: string;
  readonly slug: string;
}

const perDay = 24 * 3_600_000;
/** Mails about one app in 24 hours. */
export const mailsPerApp = 20;
/** Mails to one contact in 24 hours, about all apps that name it: anyone can write any address into their own repository. */
const mailsPerContact = 40;
/** A delivery that has failed for so long is given up. */
const retryMs = perDay;
/** A target that has failed for so long is switched off. */
const failingMs = 7 * perDay;
/** Events are kept for so long. */
const keepMs = 90 * perDay;

const defineStatement = prefixStatements('notifications');
const now = 'clock_timestamp()';
const formatMs = (milliseconds: string | number): string => `${milliseconds}::bigint * interval '1 millisecond'`;
const formatRecent = (column: string, milliseconds: number): string => `${column} > ${now} - ${formatMs(milliseconds)}`;

const claimed = z.object({
  id: z.uuid(),
  channel,
  attempts: z.int(),
  contact: z.string().nullable(),
  app: z.string(),
  slug: z.string(),
  kind: eventKind,
  detail: eventDetail,
  at: z.date(),
  url: z.string().nullable(),
  version: z.uuid().nullable(),
  off_at: z.date().nullable(),
});
/** A delivery that this process makes next. No other one makes it before its lease ends. */
export type ClaimedDelivery = z.output<typeof claimed>;

const targetRow = z.object({
  channel,
  url: z.string().nullable(),
  events: z.array(z.string()),
  created_at: z.date(),
  failing_since: z.date().nullable(),
  off_at: z.date().nullable(),
});
export type TargetRow = z.output<typeof targetRow>;

const deliveryRow = z.object({
  id: z.uuid(),
  kind: eventKind,
  subject: z.string(),
  channel,
  state: z.enum(['waiting', 'delivered', 'abandoned', 'skipped']),
  attempts: z.int(),
  at: z.date(),
  due_at: z.date(),
  ended_at: z.date().nullable(),
  last_error: z.string().nullable(),
});
export type DeliveryRow = z.output<typeof deliveryRow>;

const one = z.unknown();
const statements = {
  isKnown: defineStatement(
    'is-known',
    'select 1 as known from author.event where app = $1 and kind = $2 and subject = $3',
    one,
  ),
  lock: defineStatement('lock', `select pg_advisory_xact_lock(hashtextextended('author.event:' || $1, 0))`, one),
  /** $1 app, $2 slug, $3 kind, $4 subject, $5 detail, $6 least ms since the last event of this kind, or null. */
  add: defineStatement(
    'add',
    `insert into author.event (app, slug, kind, subject, detail) select $1, $2, $3, $4, $5::jsonb
      where $6::bigint is null or not exists (
        select from author.event where app = $1 and kind = $3 and at > ${now} - ${formatMs('$6')})
      on conflict do nothing returning id`,
    z.object({ id: z.uuid() }),
  ),
  /** $1 event, $2 app, $3 kind, $4 delay in ms. */
  addWebhook: defineStatement(
    'add-webhook',
    `insert into author.delivery (event, channel, app, due_at)
      select $1::uuid, 'webhook', $2, ${now} + ${formatMs('$4')} from author.notification_target
      where app = $2 and channel = 'webhook' and off_at is null and ($3 = any (events) or $3 = 'test') returning channel`,
    z.object({ channel }),
  ),
  addMailTarget: defineStatement(
    'add-mail-target',
    `insert into author.notification_target (app, channel) values ($1, 'mail') on conflict do nothing`,
    one,
  ),
  /** $1 event, $2 app, $3 contact, $4 delay in ms. */
  addMail: defineStatement(
    'add-mail',
    `with recent as (
        select count(*) filter (where app = $2) as of_app, count(*) filter (where contact = $3) as of_contact
        from author.delivery
        where channel = 'mail' and (app = $2 or contact = $3) and state <> 'skipped' and ${formatRecent('created_at', perDay)}),
      judged as (select of_app >= ${mailsPerApp} or of_contact >= ${mailsPerContact} as is_over from recent)
      insert into author.delivery (event, channel, app, contact, due_at, state, ended_at, last_error)
      select $1::uuid, 'mail', $2, $3, ${now} + ${formatMs('$4')},
        case when is_over then 'skipped' else 'waiting' end, case when is_over then ${now} end,
        case when is_over then 'The daily limit of mails was reached.' end
      from judged
      where not exists (select from author.notification_stop where app = $2 and contact = $3)
        and not exists (select from author.notification_target where app = $2 and channel = 'mail' and off_at is not null)
      returning channel`,
    z.object({ channel }),
  ),
  /** $1 app, $2 kind, $3 why. Ends deliveries of a kind that were not tried yet. */
  supersede: defineStatement(
    'supersede',
    `update author.delivery set state = 'skipped', ended_at = ${now}, last_error = $3
      where app = $1 and state = 'waiting' and attempts = 0 and event in (select id from author.event where app = $1 and kind = $2)`,
    one,
  ),
  /** $1 lease in ms, $2 limit. */
  claim: defineStatement(
    'claim',
    `with due as (
        select event, channel from author.delivery where state = 'waiting' and due_at <= ${now}
        order by due_at limit $2::int for update skip locked)
      update author.delivery d set attempts = d.attempts + 1, due_at = ${now} + ${formatMs('$1')}
      from due join author.event e on e.id = due.event
        left join author.notification_target t on t.app = e.app and t.channel = due.channel
      where d.event = due.event and d.channel = due.channel
      returning d.event as id, d.channel, d.attempts, d.contact, e.app, e.slug, e.kind, e.detail, e.at, t.url, t.version, t.off_at`,
    claimed,
  ),
  /** $1 event, $2 channel, $3 attempts, $4 state, $5 error. */
  end: defineStatement(
    'end',
    `update author.delivery set state = $4, ended_at = ${now}, last_error = $5
      where event = $1::uuid and channel = $2 and attempts = $3::int and state = 'waiting'`,
    one,
  ),
  /** $1 event, $2 channel, $3 attempts, $4 delay in ms, $5 error. */
  retry: defineStatement(
    'retry',
    `update author.delivery set due_at = ${now} + ${formatMs('$4')}, last_error = $5,
        state = case when ${now} + ${formatMs('$4')} > created_at + ${formatMs(retryMs)} then 'abandoned' else 'waiting' end,
        ended_at = case when ${now} + ${formatMs('$4')} > created_at + ${formatMs(retryMs)} then ${now} end
      where event = $1::uuid and channel = $2 and attempts = $3::int and state = 'waiting'`,
    one,
  ),
  /** $1 app, $2 channel, $3 version, $4 whether to switch it off immediately. */
  markFailing: defineStatement(
    'mark-failing',
    `update author.notification_target set failing_since = coalesce(failing_since, ${now}),
        off_at = case when $4::boolean or failing_since < ${now} - ${formatMs(failingMs)} then coalesce(off_at, ${now}) end
      where app = $1 and channel = $2 and version is not distinct from $3::uuid`,
    one,
  ),
  markWorking: defineStatement(
    'mark-working',
    `update author.notification_target set failing_since = null
      where app = $1 and channel = $2 and version is not distinct from $3::uuid and failing_since is not null`,
    one,
  ),
  /** $1 app, $2 url, $3 events. */
  setWebhook: defineStatement(
    'set-webhook',
    `insert into author.notification_target (app, channel, url, version, events)
      values ($1, 'webhook', $2, gen_random_uuid(), $3::text[])
      on conflict (app, channel) do update set url = excluded.url, version = excluded.version, events = excluded.events,
        created_at = ${now}, failing_since = null, off_at = null
      returning version`,
    z.object({ version: z.uuid() }),
  ),
  removeWebhook: defineStatement(
    'remove-webhook',
    `delete from author.notification_target where app = $1 and channel = 'webhook' returning channel`,
    z.object({ channel }),
  ),
  stop: defineStatement(
    'stop',
    'insert into author.notification_stop (app, contact) values ($1, $2) on conflict do nothing',
    one,
  ),
  skipStopped: defineStatement(
    'skip-stopped',
    `update author.delivery set state = 'skipped', ended_at = ${now}, last_error = 'The mails were stopped.'
      where app = $1 and contact = $2 and state = 'waiting'`,
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
  listTargets: defineStatement(
    'list-targets',
    'select channel, url, events, created_at, failing_since, off_at from author.notification_target where app = $1',
    targetRow,
  ),
  listDeliveries: defineStatement(
    'list-deliveries',
    `select e.id, e.kind, e.subject, d.channel, d.state, d.attempts, e.at, d.due_at, d.ended_at, d.last_error
      from author.delivery d join author.event e on e.id = d.event
      where d.app = $1 order by d.created_at desc, d.channel limit $2::int`,
    deliveryRow,
  ),
  purge: defineStatement(
    'purge',
    `delete from author.event where id in (select id from author.event where at < ${now} - ${formatMs(keepMs)} limit 500) returning id`,
    one,
  ),
} as const;

/** What became of an event: `postponed` because another one of its kind was recorded shortly before. */
export type NoticeOutcome = 'recorded' | 'known' | 'postponed';

export interface RecordedEvent {
  readonly outcome: NoticeOutcome;
  /** Of an event that was recorded now. */
  readonly id?: string;
  /** Where it is sent. */
  readonly channels: readonly Channel[];
}

export interface Recording {
  /** Keyed hash of the contact that gets a mail; undefined: nobody does. */
  readonly contact: string | undefined;
  /** An event that is old when it is noticed, as after an upgrade, is recorded and sent to nobody. */
  readonly isNews: boolean;
}

export class NotificationStore {
  readonly #database: () => OpenLedger['database'];

  /** @param database throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  constructor(database: () => OpenLedger['database']) {
    this.#database = database;
  }

  /** Records an event that no replica has recorded yet, and what has to be sent. */
  async record(
    { uid, slug }: NotifiedApp,
    event: NoticedEvent,
    { contact, isNews }: Recording,
  ): Promise<RecordedEvent> {
    const { kind, subject, detail, gapMs = null, delayMs = 0 } = event;
    const isKnown = async (): Promise<boolean> =>
      (await this.#database().query(statements.isKnown, [uid, kind, subject])).length > 0;
    if (await isKnown()) return { outcome: 'known', channels: [] };
    const recorded = await this.#database().transaction(async (transaction) => {
      // One event of an app at a time, so that the limits below are exact.
      await transaction.query(statements.lock, [uid]);
      const gap = isNews ? gapMs : null;
      const values = [uid, slug, kind, subject, JSON.stringify(detail), gap];
      const [added] = await transaction.query(statements.add, values);
      if (added === undefined) return undefined;
      if (!isNews) return { id: added.id, channels: [] };
      if (kind === 'rolled_back')
        await transaction.query(statements.supersede, [uid, 'crashed', 'The rollback was reported instead.']);
      const webhook = await transaction.query(statements.addWebhook, [added.id, uid, kind, delayMs]);
      if (contact !== undefined) await transaction.query(statements.addMailTarget, [uid]);
      const mail =
        contact === undefined ? [] : await transaction.query(statements.addMail, [added.id, uid, contact, delayMs]);
      return { id: added.id, channels: [...webhook, ...mail].map((delivery) => delivery.channel) };
    });
    if (recorded !== undefined) return { outcome: 'recorded', ...recorded };
    return { outcome: (await isKnown()) ? 'known' : 'postponed', channels: [] };
  }

  async claim(leaseMs: number, limit: number): Promise<ClaimedDelivery[]> {
    return this.#database().query(statements.claim, [leaseMs, limit]);
  }

  /** Ends a delivery that was made. Has no effect if the lease has ended and another process made it too. */
  async succeed({ id, channel: to, attempts, app, version }: ClaimedDelivery): Promise<void> {
    await this.#database().replay(statements.end, [id, to, attempts, 'delivered', null]);
    await this.#database().replay(statements.markWorking, [app, to, version]);
  }

  async skip({ id, channel: to, attempts }: ClaimedDelivery, why: string): Promise<void> {
    await this.#database().replay(statements.end, [id, to, attempts, 'skipped', why]);
  }

  /** Gives a delivery up. */
  async abandon({ id, channel: to, attempts }: ClaimedDelivery, why: string): Promise<void> {
    await this.#database().replay(statements.end, [id, to, attempts, 'abandoned', why]);
  }

  /** Schedules another attempt, unless it would be more than 24 hours after the first. */
  async retry({ id, channel: to, attempts }: ClaimedDelivery, delayMs: number, why: string | null): Promise<void> {
    await this.#database().replay(statements.retry, [id, to, attempts, Math.round(delayMs), why]);
  }

  /** Notes that a target failed, and switches it off after seven days of that, or immediately. */
  async markFailing({ app, channel: to, version }: ClaimedDelivery, isGone: boolean): Promise<void> {
    await this.#database().replay(statements.markFailing, [app, to, version, isGone]);
  }

  /** Sets or replaces the webhook of an app. @returns its version, from which the signing secret is derived */
  async setWebhook(app: string, url: string, events: readonly EventKind[]): Promise<string> {
    const [row] = await this.#database().query(statements.setWebhook, [app, url, [...events]]);
    if (row === undefined) throw new Error('the webhook was not stored');
    return row.version;
  }

  /** @returns whether there was one */
  async removeWebhook(app: string): Promise<boolean> {
    return (await this.#database().query(statements.removeWebhook, [app])).length > 0;
  }

  async stopMail(app: string, contact: string): Promise<void> {
    await this.#database().replay(statements.stop, [app, contact]);
    await this.#database().replay(statements.skipStopped, [app, contact]);
  }

  async startMail(app: string, contact: string): Promise<void> {
    await this.#database().replay(statements.start, [app, contact]);
    await this.#database().replay(statements.startMail, [app]);
  }

  async findStop(app: string, contact: string): Promise<Date | undefined> {
    return (await this.#database().query(statements.findStop, [app, contact]))[0]?.at;
  }

  async listTargets(app: string): Promise<TargetRow[]> {
    return this.#database().query(statements.listTargets, [app]);
  }

  /** The newest deliveries first. */
  async listDeliveries(app: string, limit: number): Promise<DeliveryRow[]> {
    return this.#database().query(statements.listDeliveries, [app, limit]);
  }

  /** Deletes old events with their deliveries. @returns the number deleted */
  async purge(): Promise<number> {
    return (await this.#database().query(statements.purge, [])).length;
  }
}
