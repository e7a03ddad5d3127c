// What notifications say: one table of texts, the mail of an event, and the signed body that a webhook gets.
import { createHmac } from 'node:crypto';
import { derivePurposeKey, isSameSecret, openText, sealText } from '../../../lib/sealed-text.ts';
import { formatStatusPageUrl } from '../status-view.ts';
import type { EventDetail, EventKind } from './events.ts';

/** An event as it is sent. */
export interface SentEvent {
  /** The same in every attempt. */
  readonly id: string;
  readonly app: string;
  readonly slug: string;
  readonly kind: EventKind;
  readonly detail: EventDetail;
  readonly at: Date;
}

interface EventText {
  /** After the title of the app. */
  readonly subject: (detail: EventDetail) => string;
  /** The fact, in one or two sentences. What the status says and the fix follow. */
  readonly fact: (detail: EventDetail) => string;
}

const texts: Readonly<Record<EventKind, EventText>> = {
  live: {
    subject: (detail) => `${nameCommit(detail)} is live`,
    fact: (detail) => `${nameCommit(detail, true)} of ${detail.title} is live at ${detail.url ?? 'its address'}.`,
  },
  rejected: {
    subject: (detail) => `${nameCommit(detail)} was rejected (${detail.rule ?? 'no rule'})`,
    fact: (detail) => `${nameCommit(detail, true)} of ${detail.title} was rejected.${describeServing(detail)}`,
  },
  crashed: {
    subject: (detail) => `${nameCommit(detail)} crashed`,
    fact: (detail) =>
      `${nameCommit(detail, true)} of ${detail.title} crashed again and again, or was stopped at one of its limits.`,
  },
  rolled_back: {
    subject: (detail) => `${nameCommit(detail)} was rolled back`,
    fact: (detail) => `${nameCommit(detail, true)} of ${detail.title} failed.${describeServing(detail)}`,
  },
  secret_missing: {
    subject: (detail) => `${nameCommit(detail)} lacks a variable or secret`,
    fact: (detail) =>
      `${nameCommit(detail, true)} of ${detail.title} does not start: a variable or secret that it needs is not set.${describeServing(detail)}`,
  },
  budget_low: {
    subject: (detail) => `${detail.percent ?? 80} % of the model budget of ${nameDay(detail)} is used`,
    fact: (detail) =>
      `${detail.title} has used ${detail.percent ?? 80} % of its daily budget for models (${detail.budget_usd ?? '?'} USD). When it is used up, calls of models are refused until the day ends (00:00 UTC).`,
  },
  budget_spent: {
    subject: (detail) => `the model budget of ${nameDay(detail)} is used up`,
    fact: (detail) =>
      `${detail.title} has used its daily budget for models (${detail.budget_usd ?? '?'} USD). Calls of models are refused until the day ends (00:00 UTC). Only the operator of this installation can raise the budget.`,
  },
  statement: {
    subject: ({ month }) => `the statement for ${month ?? 'the last month'} is ready`,
    fact: (detail) =>
      `The statement of ${detail.title} for ${detail.month ?? 'the last month'} is ready: ${detail.amount_usd ?? '?'} USD.${detail.disputes_until === undefined ? '' : ` You can dispute it until ${detail.disputes_until.slice(0, 10)}.`}`,
  },
  payout: {
    subject: (detail) => `${detail.amount_usd ?? '?'} USD were paid out`,
    fact: (detail) =>
      `The operator of this installation recorded a payout of ${detail.amount_usd ?? '?'} USD to ${detail.title}.`,
  },
  task_failed: {
    subject: () => 'a task failed or was missed',
    fact: ({ title }) =>
      `A scheduled task of ${title} failed, or did not start in time. Its runs and their logs are on the page of the app.`,
  },
  domain_lost: {
    subject: () => 'the proof of a domain is gone',
    fact: ({ title }) => `DNS does not say any more that a domain of ${title} belongs to it.`,
  },
  test: {
    subject: () => 'Test notification',
    fact: ({ title }) => `This is a test. Notifications about ${title} arrive here.`,
  },
  confirm: {
    subject: () => 'Confirm your address',
    fact: ({ title }) => `The author of ${title} wants to send notifications to this address.`,
  },
};

function nameCommit({ commit }: EventDetail, startsSentence = false): string {
  if (commit === undefined) return startsSentence ? 'The newest commit' : 'the newest commit';
  return `${startsSentence ? 'Commit' : 'commit'} ${commit.slice(0, 12)}`;
}

/** Events that an earlier version recorded have no day: they were of the day on which they were sent. */
function nameDay({ day }: EventDetail): string {
  return day ?? 'today';
}

function describeServing({ url }: EventDetail): string {
  return url === undefined ? '' : ` The release before it still serves at ${url}.`;
}

export interface EventMessage {
  readonly subject: string;
  /** Paragraphs of plain text: the fact, what the status says, the fix. */
  readonly paragraphs: readonly string[];
  readonly links: { readonly status: string; readonly manage: string };
}

/** Puts an event into words. @param baseUrl without a slash at the end */
export function describeEvent(
  { slug, kind, detail }: Pick<SentEvent, 'slug' | 'kind' | 'detail'>,
  baseUrl: string,
): EventMessage {
  const { subject, fact } = texts[kind];
  const { rule, file, line, message, fix, title } = detail;
  const position = file === undefined ? '' : ` in ${file}${line === undefined ? '' : `, line ${line}`}`;
  return {
    subject: `${title}: ${subject(detail)}`,
    paragraphs: [
      fact(detail),
      ...(message === undefined ? [] : [`${rule ?? 'Reason'}${position}: ${message}`]),
      ...(fix === undefined ? [] : [`Fix: ${fix}`]),
    ],
    links: {
      status: formatStatusPageUrl(detail, baseUrl),
      manage: `${baseUrl}/apps/${encodeURIComponent(slug)}/manage`,
    },
  };
}

/** Plain text of a mail. @param stopUrl the link that stops the mails */
export function formatMailText({ paragraphs, links }: EventMessage, stopUrl: string): string {
  return [
    ...paragraphs,
    `Status: ${links.status}\nManage: ${links.manage}`,
    `-- \nYou get this mail because your address is the contact of this app.\nStop these mails: ${stopUrl}`,
    '',
  ].join('\n\n');
}

/**
 * The mail that asks the owner of an address to confirm it. Nothing in it was chosen by the person who entered the address,
 * except for the name of the app.
 */
export function formatConfirmation(
  slug: string,
  { baseUrl, confirmUrl, stopUrl }: { readonly baseUrl: string; readonly confirmUrl: string; readonly stopUrl: string },
): { readonly subject: string; readonly text: string } {
  const host = new URL(baseUrl).host;
  const text = [
    `The author of the app ${slug} on ${host} wants to send notifications about it to this address.`,
    `To get them, open this link within 48 hours and confirm:\n${confirmUrl}`,
    'If you do not know this app, do nothing. Without your confirmation, no notification is sent to you.',
    `-- \nRefuse all further requests about this app: ${stopUrl}`,
    '',
  ].join('\n\n');
  return { subject: `Confirm notifications about ${slug} on ${host}`, text };
}

/** Body of a webhook. */
export function formatWebhookBody(event: SentEvent, baseUrl: string): string {
  const { slug, kind, detail, at } = event;
  const { subject, links } = describeEvent(event, baseUrl);
  const { title, host, owner, name, ...facts } = detail;
  return JSON.stringify({
    type: kind,
    timestamp: at.toISOString(),
    data: {
      app: slug,
      title,
      repository: `${host}/${owner}/${name}`,
      summary: subject,
      ...facts,
      status_url: links.status,
      manage_url: links.manage,
    },
  });
}

/** Names the app and the contact of a link that stops mails. */
export interface StopTarget {
  /** UID of the app. */
  readonly app: string;
  /** Keyed hash of the contact. */
  readonly contact: string;
}

/** The same of a link that confirms an address. The version is new with each request. */
export interface ConfirmTarget extends StopTarget {
  readonly version: string;
}

const stopForm = /^([A-Za-z0-9-]{1,64})\.([0-9a-f]{32})\.([A-Za-z0-9_-]{43})$/;
const confirmForm = /^([A-Za-z0-9-]{1,64})\.([0-9a-f]{32})\.([0-9a-f-]{36})\.([A-Za-z0-9_-]{43})$/;

/** The keys of notifications. All are derived from one secret of the installation, so none is stored. */
export class NotificationKeys {
  readonly #derive: (purpose: string) => Buffer;

  /** @param secret of the installation */
  constructor(secret: string) {
    this.#derive = (purpose) => derivePurposeKey(secret, `moorage notifications ${purpose}`);
  }

  /** Hashes a contact, so that the database has no addresses. */
  hashContact(contact: string): string {
    return this.#sign('contact', contact.toLowerCase()).toString('hex').slice(0, 32);
  }

  /** The token of the link that stops mails. It stays valid: RFC 8058 asks that links in old mails work. */
  createStopToken({ app, contact }: StopTarget): string {
    return `${app}.${contact}.${this.#sign('stop', `${app}\n${contact}`).toString('base64url')}`;
  }

  /** @returns undefined for a token that this installation did not make */
  parseStopToken(token: string): StopTarget | undefined {
    const [, app, contact] = stopForm.exec(token) ?? [];
    if (app === undefined || contact === undefined) return undefined;
    return isSameSecret(token, this.createStopToken({ app, contact })) ? { app, contact } : undefined;
  }

  /** The token of the link that confirms an address. */
  createConfirmToken({ app, contact, version }: ConfirmTarget): string {
    const names = `${app}.${contact}.${version}`;
    return `${names}.${this.#sign('confirm', names).toString('base64url')}`;
  }

  /** @returns undefined for a token that this installation did not make */
  parseConfirmToken(token: string): ConfirmTarget | undefined {
    const [, app, contact, version] = confirmForm.exec(token) ?? [];
    if (app === undefined || contact === undefined || version === undefined) return undefined;
    const target = { app, contact, version };
    return isSameSecret(token, this.createConfirmToken(target)) ? target : undefined;
  }

  /** Seals what a recipient of an app is reached at. */
  sealAddress(app: string, address: string): string {
    return sealText(address, { key: this.#derive('address'), context: app });
  }

  /** @returns undefined if the secret of the installation has changed since */
  openAddress(app: string, sealed: string): string | undefined {
    return openText(sealed, { key: this.#derive('address'), context: app });
  }

  /** The signing secret of a webhook, in the form of Standard Webhooks. */
  createWebhookSecret(app: string, version: string): string {
    return `whsec_${this.#sign('webhook', `${app}\n${version}`).toString('base64')}`;
  }

  /** The headers that sign a webhook: https://www.standardwebhooks.com. */
  signWebhook(
    { app, version }: { readonly app: string; readonly version: string },
    { id, body, sentAt }: { readonly id: string; readonly body: string; readonly sentAt: Date },
  ): Record<string, string> {
    const timestamp = String(Math.floor(sentAt.getTime() / 1000));
    const key = this.#sign('webhook', `${app}\n${version}`);
    const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
    return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
  }

  #sign(purpose: string, text: string): Buffer {
    return createHmac('sha256', this.#derive(purpose)).update(text).digest();
  }
}
