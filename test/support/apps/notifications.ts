// What tests of notifications need: a real SMTP server and a real receiver of webhooks on loopback, and replicas of the API on
// one database.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  /** As it was sent. */
  readonly raw: string;
  /** Unfolded headers by name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
}

export interface MailServer {
  readonly port: number;
  readonly mails: ReceivedMail[];
  /** Refuses the next recipients with this code; undefined accepts them. */
  refuse: number | undefined;
  stop(): Promise<void>;
}

/** Starts an SMTP server that accepts everything, without authentication. */
export async function startMailServer(options: Partial<SMTPServerOptions> = {}): Promise<MailServer> {
  const mails: ReceivedMail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    logger: false,
    onRcptTo(_address, _session, callback) {
      if (state.refuse === undefined) callback();
      else callback(Object.assign(new Error('no such mailbox here'), { responseCode: state.refuse }));
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const raw = Buffer.concat(chunks).toString('utf8');
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          raw,
          headers: parseHeaders(raw),
        });
        callback();
      });
    },
    ...options,
  });
  // A client that refuses the certificate leaves in the middle of the handshake.
  server.on('error', () => undefined);
  const listening = server.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  const { port } = listening.address() as AddressInfo;
  const state: MailServer = {
    port,
    mails,
    refuse: undefined,
    stop: async () => {
      await new Promise<void>((resolve) => {
        server.close(resolve);
      });
    },
  };
  return state;
}

function parseHeaders(raw: string): ReadonlyMap<string, string> {
  const head = raw.slice(0, raw.indexOf('\r\n\r\n')).replaceAll(/\r\n[ \t]+/g, ' ');
  return new Map(
    head.split('\r\n').map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
}

export interface ReceivedHook {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Receiver {
  /** Like 127.0.0.1:4000, for the list of hosts that the fetcher of a test may reach. */
  readonly host: string;
  readonly url: string;
  readonly hooks: ReceivedHook[];
  /** What it answers. */
  answer: { readonly status: number; readonly headers?: Readonly<Record<string, string>> };
  stop(): Promise<void>;
}

/** Starts a receiver of webhooks. */
export async function startReceiver(): Promise<Receiver> {
  const hooks: ReceivedHook[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      hooks.push({ path: request.url ?? '', headers: request.headers, body: Buffer.concat(chunks).toString('utf8') });
      response.writeHead(receiver.answer.status, receiver.answer.headers ?? {}).end('{}');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const host = `127.0.0.1:${port}`;
  const receiver: Receiver = {
    host,
    url: `http://${host}/hook`,
    hooks,
    answer: { status: 204 },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return receiver;
}
