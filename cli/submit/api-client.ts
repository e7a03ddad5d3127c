// Connects to an installation over HTTP, and calls its submit API: submits, reads the status and follows the log.
import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { Agent, fetch } from 'undici';
import { z } from 'zod';
import { Fault, LogUnavailable, Unavailable, parseJson, type Installation } from './installation.ts';

const reason = z.object({
  rule: z.string(),
  file: z.string().nullish(),
  line: z.number().nullish(),
  message: z.string(),
  fix: z.string(),
  log: z.string().nullish(),
});
export type Reason = z.output<typeof reason>;

const finding = z.object({
  severity: z.string(),
  rule: z.string(),
  file: z.string().nullish(),
  line: z.number().nullish(),
  message: z.string(),
  fix: z.string(),
});
export type Finding = z.output<typeof finding>;

const status = z.object({
  status: z.enum(['live', 'in_pipeline', 'rejected', 'removed']),
  message: z.string(),
  slug: z.string(),
  url: z.string(),
  status_url: z.string(),
  log_url: z.string(),
  commit: z.string().optional(),
  newest_commit: z.string().optional(),
  stage: z.string().optional(),
  position: z.number().optional(),
  update: z.object({ stage: z.string(), position: z.number().optional() }).optional(),
  warning: z.string().optional(),
  problem: reason.optional(),
  rejection: reason.optional(),
  license: z
    .object({ links: z.array(z.object({ title: z.string(), url: z.string() })), text: z.string().optional() })
    .optional(),
  findings: z.array(finding).optional(),
  page: z.object({ status: z.number().optional(), assets: z.number().optional() }).optional(),
  plan: z
    .object({
      strategy: z.string(),
      framework: z.string().optional(),
      reason: z.string(),
      certainty: z.string().optional(),
    })
    .optional(),
});
export type Status = z.output<typeof status>;

const submitted = status.extend({ created: z.boolean(), polled: z.boolean(), retried: z.boolean().default(false) });
export type SubmittedStatus = z.output<typeof submitted>;

const problem = z.object({
  detail: z.string(),
  errors: z.array(z.object({ field: z.string(), message: z.string(), fix: z.string() })).optional(),
});

/** An event of the log stream. */
export type LogEvent =
  | {
      readonly type: 'stage' | 'end';
      readonly status: Status['status'];
      readonly stage: string | undefined;
      readonly position: number | undefined;
      readonly message: string;
    }
  | { readonly type: 'log'; readonly stage: string; readonly line: string }
  | { readonly type: 'gone' };

const view = z.object({
  status: status.shape.status,
  message: z.string().default(''),
  stage: z.string().optional(),
  position: z.number().optional(),
  update: status.shape.update,
});
const line = z.object({ stage: z.string(), line: z.string() });

/** The API of one installation. */
export interface ApiClient {
  submit(repo: string): Promise<SubmittedStatus>;
  readStatus(url: string): Promise<Status>;
  /** Events from the beginning to the `end`; reconnects after an interruption. @throws LogUnavailable */
  log(url: string): AsyncGenerator<LogEvent, void, undefined>;
  close(): Promise<void>;
}

/** How a broken log stream is resumed. */
export interface ReconnectOptions {
  /** Consecutive interruptions after which the log is given up; default 30. */
  readonly maximumBreaks?: number;
  /** Milliseconds before each new attempt; default 1000. */
  readonly reconnectMs?: number;
}

/** Several times the interval at which the API keeps a silent stream alive. */
const silenceMs = 60_000;

/** What is sent besides the URL. */
export interface RequestOptions {
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type ApiResponse = Awaited<ReturnType<typeof fetch>>;

/** HTTP to one installation. */
export interface Connection {
  /** @throws Unavailable without an answer, for 429 and for 5xx; Fault for other refusals */
  ask(url: string, options?: RequestOptions): Promise<ApiResponse>;
  close(): Promise<void>;
}

/**
 * Creates a connection. Names below .localhost resolve to this machine, whatever its resolver answers.
 *
 * @param advice what to do if nothing answers
 */
export function createConnection(
  { baseUrl, authority }: Pick<Installation, 'baseUrl' | 'authority'>,
  advice = 'check the cluster with `npm run status`; `npm run up` starts it',
): Connection {
  const ca = authority?.pem;
  const dispatcher = new Agent({
    bodyTimeout: silenceMs,
    connect: { lookup: resolveHost, ...(ca === undefined ? {} : { ca }) },
  });
  return {
    async ask(url, options = {}) {
      const response = await fetch(url, { ...options, dispatcher }).catch((error: unknown) => {
        throw new Unavailable(`${baseUrl} does not answer (${describeCause(error)}): ${advice}`);
      });
      if (response.ok) return response;
      const { status, headers } = response;
      const text = await response.text();
      const message = formatRefusal(status, text);
      const refusal = { status, problem: parseJson(text), requestId: headers.get('x-request-id') ?? undefined };
      if (status !== 429 && status < 500) throw new Fault(message, { refusal });
      throw new Unavailable(message, { retryAfterMs: parseRetryAfter(headers.get('retry-after')), refusal });
    },
    close: () => dispatcher.close(),
  };
}

/**
 * Creates a client of the submit API.
 *
 * @param key of the author, which opens the status and the log of a private repository
 */
export function createApiClient(installation: Installation, reconnect: ReconnectOptions = {}, key?: string): ApiClient {
  const connection = createConnection(installation);
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return {
    async submit(repo) {
      const response = await connection.ask(`${installation.baseUrl}/api/submit`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ repo }),
      });
      return parseAnswer(submitted, await response.text(), 'POST /api/submit');
    },
    readStatus: async (url) => parseAnswer(status, await (await connection.ask(url, { headers })).text(), `GET ${url}`),
    async *log(url) {
      try {
        for await (const { event, data } of followEvents(connection, url, { ...reconnect, headers })) {
          const read = readEvent(event, data);
          if (read !== undefined) yield read;
          if (read?.type === 'end') return;
        }
      } catch (error) {
        throw error instanceof Fault
          ? new LogUnavailable(error.message, { cause: error, refusal: error.refusal })
          : error;
      }
    },
    close: () => connection.close(),
  };
}

/** Reads the JSON of an answer. @throws Fault that names the fields of another form, without values, which may be secret */
export function parseAnswer<Schema extends z.ZodType>(schema: Schema, text: string, request: string): z.output<Schema> {
  // 204 has no body.
  const parsed = schema.safeParse(text === '' ? {} : parseJson(text));
  if (parsed.success) return parsed.data;
  const fields = parsed.error.issues.map(({ path }) => path.join('.')).join(', ');
  throw new Fault(
    `${request} answered in a form that this version of Moorage does not know (${fields === '' ? 'not JSON' : fields}): use the version of the installation`,
  );
}

/**
 * Follows an event stream without an end: after an interruption it asks for what came after the last event.
 *
 * @throws Fault if the API refuses the stream, or if it breaks too often in a row
 */
export async function* followEvents(
  connection: Connection,
  url: string,
  { maximumBreaks = 30, reconnectMs = 1_000, headers = {} }: ReconnectOptions & Pick<RequestOptions, 'headers'>,
): AsyncGenerator<EventSourceMessage, void, undefined> {
  let last: string | undefined;
  let opened = false;
  for (let breaks = 0; breaks < maximumBreaks; breaks += 1) {
    const response = await connection
      .ask(url, {
        headers: { ...headers, accept: 'text/event-stream', ...(last === undefined ? {} : { 'last-event-id': last }) },
      })
      .catch((error: unknown) => {
        // When a replica stops, there may be no answer for some seconds.
        if (opened && error instanceof Unavailable) return { body: null };
        throw error;
      });
    opened = true;
    for await (const message of readMessages(response.body)) {
      breaks = 0;
      last = message.id ?? last;
      yield message;
    }
    await delay(reconnectMs);
  }
  throw new Unavailable(`the log stream broke ${maximumBreaks} times in a row`);
}

/** Messages of a stream, until it ends or breaks. */
async function* readMessages(
  body: AsyncIterable<Uint8Array> | null,
): AsyncGenerator<EventSourceMessage, void, undefined> {
  const ready: EventSourceMessage[] = [];
  const parser = createParser({
    onEvent: (message) => {
      ready.push(message);
    },
  });
  const decoder = new TextDecoder();
  try {
    for await (const chunk of body ?? []) {
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* ready.splice(0);
    }
  } catch {
    // A replica that stops ends its streams; another one continues after the last event.
  }
}

function readEvent(event: string | undefined, data: string): LogEvent | undefined {
  if (event === 'gone') return { type: 'gone' };
  if (event === 'log') return { type: 'log', ...line.parse(JSON.parse(data)) };
  if (event !== 'stage' && event !== 'end') return undefined;
  const { status: statusWord, message, stage, position, update } = view.parse(JSON.parse(data));
  return {
    type: event,
    status: statusWord,
    stage: stage ?? update?.stage,
    position: position ?? update?.position,
    message,
  };
}

function formatRefusal(code: number, text: string): string {
  const parsed = problem.safeParse(parseJson(text));
  if (!parsed.success) return `the API answered ${code}: ${text.slice(0, 300)}`;
  const { detail, errors = [] } = parsed.data;
  return [detail, ...errors.map(({ field, message, fix }) => `  ${field}: ${message}. ${fix}`)].join('\n');
}

/** Milliseconds of a Retry-After in seconds; the API does not use the other form, a date. */
function parseRetryAfter(retryAfter: string | null): number | undefined {
  return retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1_000 : undefined;
}

function describeCause(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}

export const resolveHost: LookupFunction = (hostname, options, callback) => {
  if (hostname !== 'localhost' && !hostname.endsWith('.localhost')) systemLookup(hostname, options, callback);
  else if (options.all === true) callback(null, [{ address: '127.0.0.1', family: 4 }]);
  else callback(null, '127.0.0.1', 4);
};
