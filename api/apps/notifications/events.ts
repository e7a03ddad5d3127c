// Derives the events that an author is notified of from what an app is now. Nothing depends on having seen what it was before,
// so a restart of the API loses no event, and the database decides which one is new.
import { readSlug } from '../../../crds/slugs.ts';
import { z } from 'zod';
import { isSuspended } from '../../../crds/control.ts';
import { findAuthorContact, readSettings, resolveSpec } from '../../../crds/effective-settings.ts';
import { failingTasksCondition, isSuccessful } from '../../../crds/tasks.ts';
import { type PublicReason, toPublicStatus } from '../../../crds/public-status.ts';
import { type App, readRepository } from '../hosted-apps.ts';

/** The kinds of events that an author can choose among. */
export const chosenKinds = [
  'live',
  'rejected',
  'crashed',
  'rolled_back',
  'secret_missing',
  'budget_low',
  'budget_spent',
  'statement',
  'payout',
  'task_failed',
  'domain_lost',
] as const;
export const chosenKind = z.enum(chosenKinds);
export type ChosenKind = z.output<typeof chosenKind>;

/** `confirm` asks the owner of an address whether mails may be sent to it. */
export const eventKind = z.enum([...chosenKinds, 'test', 'confirm']);
export type EventKind = z.output<typeof eventKind>;

/** What a message says. */
export const eventDetail = z.strictObject({
  /** Display name of the app, which its author chose. */
  title: z.string(),
  /** Git host, owner and name of its repository. */
  host: z.string(),
  owner: z.string(),
  name: z.string(),
  commit: z.string().optional(),
  url: z.string().optional(),
  rule: z.string().optional(),
  file: z.string().optional(),
  line: z.int().optional(),
  message: z.string().optional(),
  fix: z.string().optional(),
  /** Share of the daily budget that is used. */
  percent: z.int().optional(),
  budget_usd: z.string().optional(),
  /** UTC day of the budget. */
  day: z.string().optional(),
  /** Of a statement: the month, what it came to, and until when it can be disputed. Of a payout: what was paid. */
  month: z.string().optional(),
  amount_usd: z.string().optional(),
  disputes_until: z.string().optional(),
});
export type EventDetail = z.output<typeof eventDetail>;

/** An event as a replica noticed it. */
export interface NoticedEvent {
  readonly kind: EventKind;
  /** Distinguishes this event from others of its kind. */
  readonly subject: string;
  /** When it happened. */
  readonly at: Date;
  readonly detail: EventDetail;
  /** Least time since the last event of this kind. An event that comes earlier is recorded later, if it is still true. */
  readonly gapMs?: number;
  /** Time before it is sent, in which another event may replace it. */
  readonly delayMs?: number;
  /** About the author rather than one app: it is recorded for each of their apps, and each recipient gets it once. */
  readonly isOfAuthor?: boolean;
}

const hourMs = 3_600_000;
/** A rollback follows a crash within seconds, and says more. */
const crashDelayMs = 60_000;

/** The release crashed or was stopped, after it had started. */
const crashRules: ReadonlySet<string> = new Set(['run/crashed', 'run/out-of-memory', 'run/out-of-disk']);
/** Not caused by the author, and retried: there is nothing for them to do. */
const passingRules: ReadonlySet<string> = new Set(['run/image-pull', 'platform/suspended']);

/**
 * Lists what the status of an app says that its author wants to know. An app that its author or the operator has suspended
 * or deleted has no events.
 */
export function listStatusEvents(app: App): NoticedEvent[] {
  if (app.metadata.deletionTimestamp !== undefined || isSuspended(app.spec)) return [];
  const status = toPublicStatus(app);
  const failed = [...toTaskEvents(app), ...toDomainEvents(app)];
  if (status.status === 'in_pipeline') return failed;
  if (status.status === 'rejected') return [...toRejectionEvents(app, status.reason), ...failed];
  if (status.problem !== undefined) return [...toRejectionEvents(app, status.problem), ...failed];
  // Only a release that its URL has confirmed.
  if (app.status?.phase !== 'Live') return failed;
  const { commit, since, url } = status;
  const release = app.status.releases?.find((kept) => kept.commit === commit);
  const at = new Date(release?.readyAt ?? since);
  // The same commit in another image, such as after a change of settings, is no news.
  return [{ kind: 'live', subject: commit, at, detail: { ...describeApp(app), commit, url } }, ...failed];
}

/** Scheduled tasks whose last run failed or was missed. The operator says so in a condition, for as long as it is so. */
function toTaskEvents(app: App): NoticedEvent[] {
  const { conditions = [], taskRuns = [] } = app.status ?? {};
  const failing = conditions.find(({ type }) => type === failingTasksCondition);
  const run = taskRuns.find((each) => each.trigger === 'schedule' && each.endedAt !== undefined && !isSuccessful(each));
  if (failing === undefined || run === undefined) return [];
  const at = new Date(run.endedAt ?? failing.lastTransitionTime);
  const detail = { ...describeApp(app), ...omitUndefined({ commit: run.commit }), message: failing.message };
  return [{ kind: 'task_failed', subject: run.id, at, detail, gapMs: hourMs }];
}

/** Domains whose proof is gone: once when that was seen, and once when the app has lost the domain. */
function toDomainEvents(app: App): NoticedEvent[] {
  return (app.status?.domains ?? []).flatMap(({ name, state, message, lostAt }): NoticedEvent[] => {
    if (lostAt === undefined || (state !== 'ProofLost' && state !== 'Removed')) return [];
    const subject = `${name}/${state}/${lostAt}`;
    return [{ kind: 'domain_lost', subject, at: new Date(lostAt), detail: { ...describeApp(app), message } }];
  });
}

/** Whether the app lacks a variable that its author can set. */
function isForVariable({ status }: App, rule: string): boolean {
  return rule === 'run/misconfigured' || (status?.rejection?.variables ?? []).length > 0;
}

function toRejectionEvents(app: App, reason: PublicReason): NoticedEvent[] {
  const { rule, file, line, message, fix } = reason;
  if (passingRules.has(rule)) return [];
  const { source, since, url, served } = app.status ?? {};
  const commit = source?.commit;
  const found = {
    ...describeApp(app),
    ...omitUndefined({ commit, rule, file, line, url: served === undefined ? undefined : url }),
    message,
    fix,
  };
  const at = new Date(since ?? app.metadata.creationTimestamp);
  // Anyone can submit a repository again. The same commit and rule are no news then.
  const subject = `${commit ?? ''}/${rule}`;
  const moment = `${commit ?? ''}/${at.toISOString()}`;
  if (isForVariable(app, rule)) return [{ kind: 'secret_missing', subject: moment, at, detail: found, gapMs: hourMs }];
  if (isRolledBack(app)) return [{ kind: 'rolled_back', subject, at, detail: found }];
  if (crashRules.has(rule))
    return [{ kind: 'crashed', subject: moment, at, detail: found, gapMs: hourMs, delayMs: crashDelayMs }];
  return [{ kind: 'rejected', subject, at, detail: found }];
}

function isRolledBack({ status }: App): boolean {
  return status?.conditions?.some(({ reason }) => reason === 'RolloutTakenBack') === true;
}

/** Thresholds of the daily budget, the highest first. */
const thresholds = [
  [100, 'budget_spent'],
  [80, 'budget_low'],
] as const;

/** The use of an app's daily budget for models. */
export interface BudgetUse {
  readonly used: bigint;
  readonly limit: bigint;
  readonly limitUsd: string;
  /** UTC day, like 2026-11-30. */
  readonly day: string;
}

/** Returns the event of the highest threshold that an app's budget has passed on a day. */
export function findBudgetEvent(
  app: App,
  { used, limit, limitUsd, day }: BudgetUse,
  now: Date,
): NoticedEvent | undefined {
  if (limit <= 0n) return undefined;
  const percent = Number((used * 100n) / limit);
  const [, kind] = thresholds.find(([least]) => percent >= least) ?? [];
  if (kind === undefined) return undefined;
  return { kind, subject: day, at: now, detail: { ...describeApp(app), percent, budget_usd: limitUsd, day } };
}

/** What happened to the account of an author, as accounting reports it. */
export interface AuthorNews {
  /** Git host and owner, in lower case. */
  readonly author: string;
  readonly kind: 'statement' | 'payout';
  /** The same for all apps of the author: the month of a statement, the line of a payout. */
  readonly subject: string;
  readonly at: Date;
  readonly amountUsd: string;
  /** Of a statement. */
  readonly month?: string;
  readonly disputesUntil?: Date;
}

/** The event of one of the author's apps. Each recipient gets it for one of them. */
export function createAuthorEvent(app: App, news: AuthorNews): NoticedEvent {
  const { kind, author, subject, at, amountUsd, month, disputesUntil } = news;
  const found = omitUndefined({ month, disputes_until: disputesUntil?.toISOString() });
  return {
    ...{ kind, at, isOfAuthor: true, subject: `${author}/${subject}` },
    detail: { ...describeApp(app), title: author, amount_usd: amountUsd, ...found },
  };
}

/** Least time between two tests, since anyone with a key could flood the webhook of somebody else with them. */
export const testGapMs = 30_000;

export function createTestEvent(app: App, id: string, now: Date): NoticedEvent {
  return { kind: 'test', subject: id, at: now, detail: describeApp(app), gapMs: testGapMs };
}

/** Title and repository. The title is the author's text, so nothing but one line of it is kept. */
export function describeApp(app: App): Pick<EventDetail, 'title' | 'host' | 'owner' | 'name'> {
  const { host, owner, name } = readRepository(app);
  const { listing } = resolveSpec(app, readSettings(app.status?.settings?.values));
  const title = (listing.title ?? readSlug(app)).replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, ' ').trim();
  return { title: title === '' ? readSlug(app) : title.slice(0, 80), host, owner, name };
}

export const mailAddress = z.email().max(200);

/** The address that mails go to: the contact, if someone who may speak for the app gave it and it is an e-mail address. */
export function findMailContact(app: App): string | undefined {
  const found = findAuthorContact(app);
  return found?.verified === true ? mailAddress.safeParse(found.contact).data : undefined;
}

function omitUndefined<Fields extends object>(
  fields: Fields,
): { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Fields]?: Exclude<Fields[Key], undefined>;
  };
}
