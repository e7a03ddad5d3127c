// Runs `moorage` in this process against an API on loopback that records what it is asked, with streams that record what is
// printed.
import { mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { runProgram } from '../../cli/moorage/main.ts';

/** A request as the API received it. */
export interface RecordedRequest {
  /** Method and path with query, such as `GET /api/apps/hello`. */
  readonly line: string;
  readonly authorization: string | undefined;
  readonly lastEventId: string | undefined;
  readonly body: unknown;
}

/** Answers a request: JSON with 200, or whatever it writes. */
export type Answer = object | ((response: ServerResponse, request: IncomingMessage) => void);

export interface LoopbackApi {
  readonly url: string;
  readonly requests: RecordedRequest[];
  /** Answers by method and path without query. */
  readonly answers: Record<string, Answer>;
  close(): void;
}

/** Starts an API that knows these answers, and refuses everything else as the real one does. */
export async function startLoopbackApi(answers: Record<string, Answer>): Promise<LoopbackApi> {
  const requests: RecordedRequest[] = [];
  const url = await listen((request, response) => {
    void record(request, response);
  });
  async function record(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString('utf8');
    const { method = '', url: path = '', headers } = request;
    requests.push({
      line: `${method} ${path}`,
      authorization: headers.authorization,
      lastEventId: headers['last-event-id']?.toString(),
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
    });
    const answer = answers[`${method} ${path.split('?')[0] ?? ''}`];
    if (answer === undefined) refuse(404, 'not-found', 'Not found', 'There is no endpoint at this path.')(response);
    else if (typeof answer === 'function') answer(response, request);
    else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  }
  return { url: url.origin, requests, answers, close: url.close };
}

async function listen(listener: RequestListener): Promise<{ origin: string; close: () => void }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** A problem as the API sends it. */
export function refuse(
  status: number,
  slug: string,
  title: string,
  detail: string,
): (response: ServerResponse) => void {
  return (response) => {
    const body = { type: `https://moorage.test/problems/${slug}`, title, status, detail, request_id: 'req-1' };
    response
      .writeHead(status, { 'content-type': 'application/problem+json', 'x-request-id': 'req-1' })
      .end(JSON.stringify(body));
  };
}

export interface ProgramRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** What is entered, or comes from standard input. */
  readonly input?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Columns of the terminal; absent for pipes. */
  readonly terminal?: number;
  readonly folder?: string;
}

/** A home of its own, and the program in it. */
export class MoorageHome {
  readonly folder = mkdtempSync(join(tmpdir(), 'moorage-cli-'));
  readonly configFile = join(this.folder, 'config', 'moorage', 'config.json');

  async run(args: readonly string[], options: RunOptions = {}): Promise<ProgramRun> {
    const { input = '', environment = {}, terminal, folder = this.folder } = options;
    const isTTY = terminal !== undefined;
    const printed = { stdout: '', stderr: '' };
    const createStream = (name: 'stdout' | 'stderr') => ({
      isTTY,
      ...(isTTY ? { columns: terminal } : {}),
      write: (text: string | Uint8Array) => {
        printed[name] += typeof text === 'string' ? text : Buffer.from(text).toString('utf8');
        return true;
      },
    });
    const stdin = Object.assign(new PassThrough(), { isTTY });
    // Each line answers one question: readline would drop what comes before it is asked.
    const lines = input.split(/(?<=\n)/);
    const typing = isTTY
      ? setInterval(() => {
          const line = lines.shift();
          if (line !== undefined) stdin.write(line);
        }, 100)
      : undefined;
    if (!isTTY) stdin.end(input);
    try {
      const code = await runProgram(args, {
        streams: { stdin, stdout: createStream('stdout'), stderr: createStream('stderr') },
        environment: { XDG_CONFIG_HOME: join(this.folder, 'config'), PATH: process.env['PATH'], ...environment },
        folder,
        localFolder: join(this.folder, 'no-cluster'),
        reconnect: { reconnectMs: 1, maximumBreaks: 3 },
      });
      return { code, ...printed };
    } finally {
      clearInterval(typing);
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
