// Keeps events and deliveries in PostgreSQL, so that of several replicas one records each event and makes each delivery, and
// any of them may be killed at any time.
import { z } from 'zod';
import { type OpenLedger, prefixStatements } from '../../billing/index.ts';
import { eventDetail, eventKind, type NoticedEvent } from './events.ts';

export const channel = z.enum(['mail', 'webhook']);
export type Channel = z.output<typeof channel>;

/** An app as its events name it. */
export interface NotifiedApp {
  readonly uid: string;
  readonly slug: string;
}

const perDay = 24 * 3_600_000;
/** Mails about one app to one contact in 24 hours. */
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
export const now = 'clock_timestamp()';
/** SQL of a time span. @param milliseconds a number, or a parameter such as `$4` */
export const formatMs = (milliseconds: string | number): string => `${milliseconds}::bigint * interval '1 millisecond'`;
export const formatRecent = (column: string, milliseconds: number): string =>
  `${column} > ${now} - ${formatMs(milliseconds)}`;

const claimed = z.object({
  id: z.uuid(),
  channel,
  recipient: z.string(),
  attempts: z.int(),
  app: z.string(),
  slug: z.string(),
  kind: eventKind,
  subject: z.string(),
  detail: eventDetail,
  at: z.date(),
  url: z.string().nullable(),
  version: z.uuid().nullable(),
  address: z.string().nullable(),
  confirmed_at: z.date().nullable(),
  off_at: z.date().nullable(),
});
/** A delivery that this process makes next. No other one makes it before its lease ends. */
export type ClaimedDelivery = z.output<typeof claimed>;

const deliveryRow = z.object({
  id: z.uuid(),
  kind: eventKind,
  subject: z.string(),
  channel,
  recipient: z.string(),
  state: z.enum(['waiting', 'delivered', 'abandoned', 'skipped']),
  attempts: z.int(),
  at: z.date(),
  due_at: z.date(),
  ended_at: z.date().nullable(),
  last_error: z.string().nullable(),
});
export type DeliveryRow = z.output<typeof deliveryRow>;

const one = z.unknown();
const addedDelivery = z.object({ channel });

/** Whether a channel of app $2 sends events of kind $3. A test goes to all. */
const formatChosen = (name: Channel): string =>
  `($3 = 'test' or not exists (
    select from author.notification_choice c where c.app = $2 and c.channel = '${name}' and not $3 = any (c.events)))`;
/** Whether no other app of the author has sent the event $5 of kind $3 to the recipient. */
const formatNotSent = (name: Channel): string =>
  `not exists (
    select from author.event e join author.delivery d on d.event = e.id
    where e.kind = $3 and e.subject = $5 and d.channel = '${name}' and d.recipient = t.recipient and d.state <> 'skipped')`;

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
  /** $1 event, $2 app, $3 kind, $4 delay in ms, $5 subject of an event that several apps may have, else null. */
  addWebhook: defineStatement(
    'add-webhook',
    `insert into author.delivery (event, channel, app, due_at)
      select $1::uuid, 'webhook', $2, ${now} + ${formatMs('$4')} from author.notification_target t
      where t.app = $2 and t.channel = 'webhook' and t.off_at is null and ${formatChosen('webhook')}
        and not exists (
          select from author.event e join author.notification_target o on o.app = e.app and o.channel = 'webhook'
            join author.delivery d on d.event = e.id and d.channel = 'webhook' and d.state <> 'skipped'
          where e.kind = $3 and e.subject = $5 and o.url = t.url)
      returning channel`,
    addedDelivery,
  ),
  /** $1 app, $2 hash of the contact in the repository. */
  addMailTarget: defineStatement(
    'add-mail-target',
    `insert into author.notification_target (app, channel, recipient) values ($1, 'mail', $2) on conflict do nothing`,
    one,
  ),
  /** As {@link addWebhook}, and $6 hash of the contact in the repository, or null. */
  addMail: defineStatement(
    'add-mail',
    `with chosen as (
        select t.recipient,
          (select count(*) from author.delivery d where d.channel = 'mail' and d.recipient = t.recipient and d.app = $2
            and d.state <> 'skipped' and ${formatRecent('d.created_at', perDay)}) >= ${mailsPerApp}
          or (select count(*) from author.delivery d where d.channel = 'mail' and d.recipient = t.recipient
            and d.state <> 'skipped' and ${formatRecent('d.created_at', perDay)}) >= ${mailsPerContact} as is_over
        from author.notification_target t
        where t.app = $2 and t.channel = 'mail' and t.off_at is null and (t.recipient = $6 or t.confirmed_at is not null)
          and ${formatChosen('mail')} and ${formatNotSent('mail')}
          and not exists (select from author.notification_stop s where s.app = $2 and s.contact = t.recipient))
      insert into author.delivery (event, channel, recipient, app, due_at, state, ended_at, last_error)
      select $1::uuid, 'mail', recipient, $2, ${now} + ${formatMs('$4')},
        case when is_over then 'skipped' else 'waiting' end, case when is_over then ${now} end,
        case when is_over then 'The daily limit of mails was reached.' end
      from chosen returning channel`,
    addedDelivery,
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
        select event, channel, recipient from author.delivery where state = 'waiting' and due_at <= ${now}
        order by due_at limit $2::int for update skip locked)
      update author.delivery d set attempts = d.attempts + 1, due_at = ${now} + ${formatMs('$1')}
      from due join author.event e on e.id = due.event
        left join author.notification_target t on t.app = e.app and t.channel = due.channel and t.recipient = due.recipient
      where d.event = due.event and d.channel = due.channel and d.recipient = due.recipient
      returning d.event as id, d.channel, d.recipient, d.attempts, e.app, e.slug, e.kind, e.subject, e.detail, e.at,
        t.url, t.version, t.address, t.confirmed_at, t.off_at`,
    claimed,
  ),
  /** $1 event, $2 channel, $3 attempts, $4 state, $5 error, $6 recipient. */
  end: defineStatement(
    'end',
    `update author.delivery set state = $4, ended_at = ${now}, last_error = $5
      where event = $1::uuid and channel = $2 and recipient = $6 and attempts = $3::int and state = 'waiting'`,
    one,
  ),
  /** $1 event, $2 channel, $3 attempts, $4 delay in ms, $5 error, $6 recipient. */
  retry: defineStatement(
    'retry',
    `update author.delivery set due_at = ${now} + ${formatMs('$4')}, last_error = $5,
        state = case when ${now} + ${formatMs('$4')} > created_at + ${formatMs(retryMs)} then 'abandoned' else 'waiting' end,
        ended_at = case when ${now} + ${formatMs('$4')} > created_at + ${formatMs(retryMs)} then ${now} end
      where event = $1::uuid and channel = $2 and recipient = $6 and attempts = $3::int and state = 'waiting'`,
    one,
  ),
  /** $1 app, $2 channel, $3 version, $5 recipient, $4 whether to switch it off immediately. */
  markFailing: defineStatement(
    'mark-failing',
    `update author.notification_target set failing_since = coalesce(failing_since, ${now}),
        off_at = case when $4::boolean or failing_since < ${now} - ${formatMs(failingMs)} then coalesce(off_at, ${now}) end
      where app = $1 and channel = $2 and recipient = $5 and version is not distinct from $3::uuid`,
    one,
  ),
  markWorking: defineStatement(
    'mark-working',
    `update author.notification_target set failing_since = null
      where app = $1 and channel = $2 and recipient = $4 and version is not distinct from $3::uuid and failing_since is not null`,
    one,
  ),
  listDeliveries: defineStatement(
    'list-deliveries',
    `select e.id, e.kind, e.subject, d.channel, d.recipient, d.state, d.attempts, e.at, d.due_at, d.ended_at, d.last_error
      from author.delivery d join author.event e on e.id = d.event
      where d.app = $1 order by d.created_at desc, d.channel, d.recipient limit $2::int`,
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
  /** Whether mails are sent. */
  readonly sendsMail: boolean;
  /** Keyed hash of the contact in the repository, if it has one. */
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
    { sendsMail, contact, isNews }: Recording,
  ): Promise<RecordedEvent> {
    const { kind, subject, detail, gapMs = null, delayMs = 0, isOfAuthor = false } = event;
    const isKnown = async (): Promise<boolean> =>
      (await this.#database().query(statements.isKnown, [uid, kind, subject])).length > 0;
    if (await isKnown()) return { outcome: 'known', channels: [] };
    const recorded = await this.#database().transaction(async (transaction) => {
      // One event of an app at a time, so that the limits below are exact.
      await transaction.query(statements.lock, [uid]);
      if (isOfAuthor) await transaction.query(statements.lock, [`${kind}:${subject}`]);
      const gap = isNews ? gapMs : null;
      const values = [uid, slug, kind, subject, JSON.stringify(detail), gap];
      const [added] = await transaction.query(statements.add, values);
      if (added === undefined) return undefined;
      if (!isNews) return { id: added.id, channels: [] };
      if (kind === 'rolled_back')
        await transaction.query(statements.supersede, [uid, 'crashed', 'The rollback was reported instead.']);
      const sent = [added.id, uid, kind, delayMs, isOfAuthor ? subject : null];
      const webhook = await transaction.query(statements.addWebhook, sent);
      if (contact !== undefined) await transaction.query(statements.addMailTarget, [uid, contact]);
      const mail = sendsMail ? await transaction.query(statements.addMail, [...sent, contact ?? null]) : [];
      return { id: added.id, channels: [...new Set([...webhook, ...mail].map((delivery) => delivery.channel))] };
    });
    if (recorded !== undefined) return { outcome: 'recorded', ...recorded };
    return { outcome: (await isKnown()) ? 'known' : 'postponed', channels: [] };
  }

  async claim(leaseMs: number, limit: number): Promise<ClaimedDelivery[]> {
    return this.#database().query(statements.claim, [leaseMs, limit]);
  }

  /** Ends a delivery that was made. Has no effect if the lease has ended and another process made it too. */
  async succeed({ id, channel: to, recipient, attempts, app, version }: ClaimedDelivery): Promise<void> {
    await this.#database().replay(statements.end, [id, to, attempts, 'delivered', null, recipient]);
    await this.#database().replay(statements.markWorking, [app, to, version, recipient]);
  }

  async skip({ id, channel: to, recipient, attempts }: ClaimedDelivery, why: string): Promise<void> {
    await this.#database().replay(statements.end, [id, to, attempts, 'skipped', why, recipient]);
  }

  /** Gives a delivery up. */
  async abandon({ id, channel: to, recipient, attempts }: ClaimedDelivery, why: string): Promise<void> {
    await this.#database().replay(statements.end, [id, to, attempts, 'abandoned', why, recipient]);
  }

  /** Schedules another attempt, unless it would be more than 24 hours after the first. */
  async retry(delivery: ClaimedDelivery, delayMs: number, why: string | null): Promise<void> {
    const { id, channel: to, recipient, attempts } = delivery;
    await this.#database().replay(statements.retry, [id, to, attempts, Math.round(delayMs), why, recipient]);
  }

  /** Notes that a target failed, and switches it off after seven days of that, or immediately. */
  async markFailing({ app, channel: to, recipient, version }: ClaimedDelivery, isGone: boolean): Promise<void> {
    await this.#database().replay(statements.markFailing, [app, to, version, isGone, recipient]);
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
