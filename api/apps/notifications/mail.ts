// Sends mails through the SMTP server of the installation, and reads its settings.
import { createTransport } from 'nodemailer';
import { z } from 'zod';
import { readConfig } from '../../../lib/config.ts';
import { defineSetting, kinds } from '../../../lib/settings.ts';
import { describeEvent, formatConfirmation, formatMailText, type SentEvent } from './messages.ts';

export interface MailSettings {
  readonly server: SmtpServer;
  readonly from: Sender;
}

interface Sender {
  readonly name: string;
  readonly address: string;
}

interface SmtpServer {
  readonly host: string;
  readonly port: number;
  /** `implicit`: from the first byte; `starttls`: required; `off`: for a server inside the cluster. */
  readonly tls: 'implicit' | 'starttls' | 'off';
  readonly auth?: { readonly user: string; readonly pass: string };
  /** Certificates (PEM) that the server's is checked with, in addition to the public authorities. */
  readonly ca?: string;
}

const smtpForm = 'must be like smtps://user:password@mail.example.org:465 or smtp://user:password@mail.example.org:587';

const smtpUrl = z.string().transform((text, context): SmtpServer => {
  const server = URL.canParse(text) ? parseServer(new URL(text)) : undefined;
  if (server !== undefined) return server;
  // The URL has a password, so the message does not quote it.
  context.addIssue({ code: 'custom', message: smtpForm, input: 'hidden' });
  return z.NEVER;
});

/** What a URL stands for: `smtp:` requires STARTTLS, unless the URL says `?tls=off`. */
const transports: Readonly<Record<string, { readonly tls: SmtpServer['tls']; readonly port: number }>> = {
  'smtps:': { tls: 'implicit', port: 465 },
  'smtp:': { tls: 'starttls', port: 587 },
  'smtp:?tls=off': { tls: 'off', port: 587 },
};

function parseServer({ protocol, search, hostname, port, username, password }: URL): SmtpServer | undefined {
  const transport = transports[`${protocol}${search}`];
  if (transport === undefined || hostname === '') return undefined;
  return {
    ...transport,
    host: hostname.replace(/^\[|\]$/g, ''),
    ...(port === '' ? {} : { port: Number(port) }),
    ...(username === '' ? {} : { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
  };
}

const senderForm = /^(?:([^<>"\r\n]{1,80}?)\s*<([^<>\s]+)>|([^<>\s]+))$/;
const sender = z.string().transform((text, context): Sender => {
  const [, name = '', inBrackets, alone] = senderForm.exec(text.trim()) ?? [];
  const address = z.email().safeParse(inBrackets ?? alone);
  if (address.success) return { name: name.trim(), address: address.data };
  context.addIssue({ code: 'custom', message: 'must be like Moorage <notify@example.org>' });
  return z.NEVER;
});

/** Every variable of notifications. */
export const environment = z.object({
  MOORAGE_SMTP_URL: smtpUrl
    .optional()
    .describe(
      'SMTP server for mails to authors, such as smtps://user:password@mail.example.org:465. With smtp://, STARTTLS is required unless the URL ends in ?tls=off, for a server inside the cluster. Without it, no mail is sent.',
    ),
  MOORAGE_SMTP_CA: z
    .string()
    .optional()
    .describe('Certificates (PEM) that the SMTP server is checked with instead of the public authorities.'),
  MOORAGE_MAIL_FROM: defineSetting(
    { ...kinds.text(z.string(), sender.optional()), unset: '' },
    {
      value: 'mail.from',
      description: 'Sender of mails to authors, such as Moorage <notify@example.org>. Required where mails are sent.',
      omitEmpty: true,
    },
  ),
});

/** Reads the settings; undefined: no mail is sent. @throws Error that names every variable that is wrong or missing */
export function readMailSettings(variables: NodeJS.ProcessEnv = process.env): MailSettings | undefined {
  const read = readConfig(environment, variables);
  const { MOORAGE_SMTP_URL: server, MOORAGE_SMTP_CA: ca, MOORAGE_MAIL_FROM: from } = read;
  if (server === undefined) return undefined;
  if (from === undefined)
    throw new Error(
      'invalid configuration in the environment:\n  MOORAGE_MAIL_FROM: is required with MOORAGE_SMTP_URL',
    );
  return { server: ca === undefined ? server : { ...server, ca }, from };
}

/** Why a mail was not accepted, in words for its author. */
export class MailFailure extends Error {
  override readonly name = 'MailFailure';
  /** The server refused this recipient or message. Otherwise the server cannot be used, which is no fault of the address. */
  readonly isRefused: boolean;
  /** Another attempt would have the same result. */
  readonly isFinal: boolean;

  constructor(
    message: string,
    { isRefused, isFinal, cause }: { isRefused: boolean; isFinal: boolean; cause: unknown },
  ) {
    super(message, { cause });
    this.isRefused = isRefused;
    this.isFinal = isFinal;
  }
}

export interface MailRequest {
  readonly event: SentEvent;
  readonly to: string;
  /** Link that stops the mails, also by a POST of the recipient's mail program. */
  readonly stopUrl: string;
  /** Link that confirms the address: the mail asks for that, and says nothing else. */
  readonly confirmUrl?: string;
}

/** Sends one mail. @throws MailFailure */
export type SendMail = (request: MailRequest) => Promise<void>;

/** For one mail, from the DNS query to the last answer of the server. */
const sendMs = 60_000;

/** Creates the function that sends mails. Each has a connection of its own, so nothing outlives a stop of the API. */
export function createMailer({ server, from }: MailSettings, baseUrl: string): SendMail {
  const { host, port, tls, auth, ca } = server;
  const transport = createTransport({
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'off',
    ...(auth === undefined ? {} : { auth }),
    tls: { minVersion: 'TLSv1.2', rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) },
    dnsTimeout: 5_000,
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 20_000,
    // What a message says must never make this process read a file or a URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return async (request) => {
    const { event, to, stopUrl } = request;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      late.reject(new Error('the mail server did not answer in time'));
    }, sendMs);
    const sent = transport.sendMail({
      from: { ...from },
      // As an object, so that it is one address whatever it contains.
      to: { name: '', address: to },
      ...formatContent(request, baseUrl),
      date: event.at,
      // The same in every attempt, so that mail programs show a repeated mail once.
      messageId: `<${event.id}@${new URL(baseUrl).hostname}>`,
      headers: {
        'Auto-Submitted': 'auto-generated',
        'List-Unsubscribe': `<${stopUrl}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      },
    });
    try {
      await Promise.race([sent, late.promise]);
    } catch (error) {
      sent.catch(() => undefined);
      throw toMailFailure(error);
    } finally {
      clearTimeout(timer);
    }
  };
}

function formatContent(
  { event, stopUrl, confirmUrl }: MailRequest,
  baseUrl: string,
): { subject: string; text: string } {
  if (confirmUrl !== undefined) return formatConfirmation(event.slug, { baseUrl, confirmUrl, stopUrl });
  const message = describeEvent(event, baseUrl);
  return { subject: message.subject, text: formatMailText(message, stopUrl) };
}

const smtpError = z.looseObject({
  code: z.string().optional(),
  responseCode: z.int().optional(),
  response: z.string().optional(),
});

function toMailFailure(error: unknown): MailFailure {
  const { code, responseCode, response } = smtpError.catch({}).parse(error);
  // The errors of an envelope with our own sender are the installation's, but the server does not say so.
  const isRefused = code === 'EENVELOPE' || code === 'EMESSAGE';
  if (!isRefused)
    return new MailFailure('The mail server of this installation cannot be used at the moment.', {
      isRefused,
      isFinal: false,
      cause: error,
    });
  const answer = (response ?? '').replaceAll(/\p{C}+/gu, ' ').slice(0, 200);
  return new MailFailure(answer === '' ? 'The mail server refused the mail.' : `The mail server answered: ${answer}`, {
    isRefused,
    isFinal: (responseCode ?? 0) >= 500,
    cause: error,
  });
}
