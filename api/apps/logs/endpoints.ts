// The endpoints with which an author reads what an app prints: the log, followed or not, and what came before each crash.
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { parseDuration } from '../../../lib/values.ts';
import { ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import {
  type CallContext,
  createValidationProblem,
  defineEndpoint,
  type Endpoint,
  eventStreamType,
  type RequestContext,
} from '../../http/index.ts';
import type { AuthorAccess } from '../author/access.ts';
import { slugParams } from '../author/endpoints.ts';
import type { App } from '../hosted-apps.ts';
import { readingProblems, tooManyStreams, unknownRun } from '../problems.ts';
import type { StoredRun } from '../tasks/run-store.ts';
import { plainTextType, streamHeaders, streamLog, StreamSlots, type Writer } from '../submit/log-stream.ts';
import { toLogTime } from './container-reader.ts';
import { type Crash, type LogStore, parseLineId, type StoredLine } from './log-store.ts';

export interface LogServices {
  readonly access: Pick<AuthorAccess, 'identify'>;
  readonly store: LogStore;
  /** Finds a run of an app. @throws Problem (unknown-run) */
  readonly getRun: (app: App, id: string) => Promise<StoredRun>;
  /** Maximum concurrent streams. */
  readonly streams: number;
  /** Silence after which a stream sends a keepalive; default 15 000 ms. */
  readonly keepaliveMs?: number;
  /** Between two requests to the database for new lines; default 1 000 ms. */
  readonly pollMs?: number;
  readonly now?: () => Date;
}

export function createLogEndpoints(services: LogServices): Endpoint[] {
  return [createLogEndpoint(services), createCrashesEndpoint(services)];
}

const component = z.string().min(1).max(63).describe('Only the component, or container, of this name.').optional();
const flag = z
  .enum(['true', 'false'])
  .default('false')
  .transform((text) => text === 'true');

const logQuery = z.strictObject({
  component,
  since: z
    .string()
    .max(40)
    .refine(
      (text) => readSince(text, new Date(0)) !== undefined,
      'must be a duration such as 10m, or a time by RFC 3339',
    )
    .optional()
    .describe('Only lines that were printed since then: a time by RFC 3339, or a duration before now, such as 10m.'),
  tail: z.coerce
    .number()
    .int()
    .min(1)
    .max(5_000)
    .optional()
    .describe('Only so many of the last lines, from 1 to 5000; default 200, or with since all of them.'),
  search: z.string().min(1).max(200).optional().describe('Only lines with this text. Case matters.'),
  run: z
    .string()
    .min(1)
    .max(80)
    .optional()
    .describe('Only lines of this run of a task or command. A followed stream ends when the run has.'),
  previous: flag.describe('true: the last lines before the newest crash, with its exit code and reason.'),
  follow: flag.describe('true: new lines are sent as they come. The answer is then text or an event stream.'),
});
type LogQuery = z.output<typeof logQuery>;

const crashView = z.object({
  at: z.string().describe('RFC 3339.'),
  component: z.string(),
  pod: z.string(),
  restarts: z.int().describe('Restarts of the container before that.'),
  exit_code: z.int(),
  signal: z.int().optional().describe('Number of the signal that ended it.'),
  reason: z
    .string()
    .describe('As Kubernetes says it, such as OOMKilled (it needed more memory than its limit) or Error.'),
});
const lineView = z.object({
  at: z.string().describe('RFC 3339 in UTC, with nanoseconds.'),
  component: z.string(),
  pod: z.string(),
  line: z.string().describe('What was printed, with secrets masked.'),
});

export const appLogView = z.object({
  lines: z.array(lineView).describe('In the order in which they were stored.'),
  crash: crashView.optional().describe('With previous: how the component ended after these lines.'),
});

export const appCrashesView = z.object({
  crashes: z.array(crashView.extend({ lines: z.array(lineView.pick({ at: true, line: true })) })),
});

/** What a reader of the log gets, in whichever media type. */
type LogEvent =
  | { readonly type: 'crash'; readonly crash: Crash | undefined }
  | { readonly type: 'log'; readonly line: Omit<StoredLine, 'id'>; readonly id?: string }
  | { readonly type: 'gap' }
  | { readonly type: 'end'; readonly message?: string };

function createLogEndpoint(services: LogServices): Endpoint {
  const { access, store, getRun, streams, keepaliveMs = 15_000, pollMs = 1_000, now = () => new Date() } = services;
  const slots = new StreamSlots(streams, () => undefined, 'read the log without follow');
  const readSelected = async (
    app: string,
    query: LogQuery,
    run?: StoredRun,
  ): Promise<{ events: LogEvent[]; end: string }> => {
    const isWanted = createFilter(query);
    if (query.previous) {
      const [crash] = await store.listCrashes(app, query.component, 1);
      const lines = (crash?.lines ?? []).map((line) => ({
        pod: crash?.pod ?? '',
        component: crash?.component ?? '',
        ...line,
      }));
      const selected = lines.filter(isWanted).slice(-(query.tail ?? lines.length));
      return {
        events: [{ type: 'crash', crash }, ...selected.map((line) => ({ type: 'log', line }) as const)],
        end: '',
      };
    }
    const since = query.since === undefined ? findRunStart(run) : readSince(query.since, now());
    const tail = query.tail ?? (since === undefined ? 200 : undefined);
    const { lines, end } = await store.read(app, { tail, since, isWanted });
    return { events: lines.map(({ id, ...line }) => ({ type: 'log', line, id })), end };
  };
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}/logs',
    operation: 'readAppLog',
    tag: 'apps',
    summary: 'Read what an app prints',
    description:
      'Standard output and standard error of all components, across restarts and releases: the newest 5 MiB. Secrets are masked. ' +
      'JSON, or text with Accept: text/plain, or with Accept: text/event-stream server-sent events: `log` (a line), `crash`, `gap` (older lines were removed before they were sent) and `end`. ' +
      'A followed stream resumes after Last-Event-ID.',
    params: slugParams,
    query: logQuery,
    output: appLogView,
    outputDescription: 'The lines.',
    returnsCallerData: true,
    produces: ['application/json', plainTextType, eventStreamType],
    problems: [...readingProblems, tooManyStreams, unknownRun, ledgerUnconfigured, ledgerUnavailable],
    // HEAD reads nothing and takes no slot.
    async head({ params, query }, context) {
      await access.identify(params.slug, context, 'readAppLog');
      const contentType = chooseWriter(query, context)?.contentType ?? 'application/json';
      return new Response(null, { headers: { ...streamHeaders, 'content-type': contentType } });
    },
    async handler({ params: { slug }, query }, context) {
      const { app } = await access.identify(slug, context, 'readAppLog');
      const { uid } = app.metadata;
      const run = query.run === undefined ? undefined : await getRun(app, query.run);
      if (query.follow && query.previous)
        throw createValidationProblem([
          {
            in: 'query',
            field: 'follow',
            message: 'cannot be combined with previous',
            fix: 'Leave out one of the two.',
          },
        ]);
      const writer = chooseWriter(query, context);
      if (!query.follow) {
        const { events } = await readSelected(uid, query, run);
        return writer === undefined ? toView(events) : respondWith(writer, events);
      }
      // Rejects here, while a status can still be sent. The slot is taken at the first byte.
      slots.check(context.caller().hash);
      const resumed = parseLineId(context.headers.get('last-event-id') ?? undefined);
      const first =
        resumed === undefined
          ? await readSelected(uid, query, run)
          : { events: [], end: `${resumed.chunk}/${resumed.line}` };
      const isAllowed = (): Promise<boolean> => hasAccess(access, slug, uid, context);
      const isOver = async (): Promise<boolean> =>
        run !== undefined && (await getRun(app, run.id).catch(() => run)).endedAt !== undefined;
      const isWanted = createFilter(query);
      const open = (signal: AbortSignal): ReturnType<typeof followLog> =>
        followLog({ store, app: uid, first, isAllowed, isOver, isWanted, pollMs, signal });
      return streamLog({ slots, writer: writer ?? textWriter, keepaliveMs, open }, context);
    },
  });
}

function createCrashesEndpoint({ access, store }: LogServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}/crashes',
    operation: 'listAppCrashes',
    tag: 'apps',
    summary: 'List the crashes of an app',
    description:
      'When and how components ended although nobody stopped them, with the last 200 lines before that. The newest 20 are kept, newest first.',
    params: slugParams,
    query: z.strictObject({
      component,
      limit: z.coerce.number().int().min(1).max(20).default(20).describe('Crashes, from 1 to 20; default 20.'),
    }),
    output: appCrashesView,
    outputDescription: 'The crashes.',
    returnsCallerData: true,
    problems: [...readingProblems, ledgerUnconfigured, ledgerUnavailable],
    head: 'as GET',
    async handler({ params, query }, context) {
      const { app } = await access.identify(params.slug, context, 'listAppCrashes');
      const crashes = await store.listCrashes(app.metadata.uid, query.component, query.limit);
      return { crashes: crashes.map((crash) => ({ ...toCrashView(crash), lines: [...crash.lines] })) };
    },
  });
}

/** The time in the form of lines; undefined if it is none. */
function readSince(text: string, now: Date): string | undefined {
  if (/^(?=.)(?:\d{1,5}h)?(?:\d{1,5}m)?(?:\d{1,5}s)?$/.test(text))
    return toLogTime(new Date(Math.max(0, now.getTime() - parseDuration(text))));
  const time = z.iso.datetime({ offset: true }).safeParse(text);
  return time.success ? toLogTime(new Date(time.data)) : undefined;
}

/** Lines of a run are not older than it. */
function findRunStart(run: StoredRun | undefined): string | undefined {
  const at = run?.requestedAt ?? run?.scheduledAt ?? run?.startedAt;
  return at === undefined ? undefined : toLogTime(new Date(Date.parse(at) - 60_000));
}

function createFilter({ component: wanted, search, run }: LogQuery): (line: Omit<StoredLine, 'id'>) => boolean {
  return ({ component: name, pod, line }) =>
    (wanted === undefined || name === wanted) &&
    // The pods of a Job are named after it.
    (run === undefined || pod.startsWith(`${run}-`)) &&
    (search === undefined || line.includes(search));
}

/** Whether the key still opens the app. A stream must not outlast it. A database that is away for a while only delays it. */
async function hasAccess(
  access: LogServices['access'],
  slug: string,
  uid: string,
  context: CallContext,
): Promise<boolean> {
  try {
    return (await access.identify(slug, context, 'readAppLog')).app.metadata.uid === uid;
  } catch (error) {
    return error instanceof Problem && error.type.status === 503;
  }
}

/** Polls without a line after the end of a run, until all that it printed has been stored. */
const quietPolls = 3;

interface FollowedLog {
  readonly store: LogStore;
  readonly app: string;
  readonly first: { readonly events: readonly LogEvent[]; readonly end: string };
  readonly isWanted: (line: StoredLine) => boolean;
  readonly isAllowed: () => Promise<boolean>;
  /** Whether what is followed has ended. */
  readonly isOver: () => Promise<boolean>;
  readonly pollMs: number;
  readonly signal: AbortSignal;
}

/** Yields what is there, then what comes, until the reader leaves or may not read any more. */
async function* followLog(options: FollowedLog): AsyncGenerator<LogEvent, void, undefined> {
  const { store, app, first, isWanted, isAllowed, isOver, pollMs, signal } = options;
  yield* first.events;
  let after = first.end;
  let quiet = 0;
  while (!signal.aborted) {
    if (!(await isAllowed())) {
      yield { type: 'end', message: 'Your key does not open this app any more, or the app was deleted.' };
      return;
    }
    // A database that is away for a while only delays the stream.
    const { lines, end, missed } = await store.readAfter(app, after).catch(() => createEmptyPage(after));
    if (missed) yield { type: 'gap' };
    for (const { id, ...line } of lines) if (isWanted({ id, ...line })) yield { type: 'log', line, id };
    quiet = end === after && (await isOver()) ? quiet + 1 : 0;
    if (quiet > quietPolls) {
      yield { type: 'end' };
      return;
    }
    if (end === after) await sleep(pollMs, undefined, { signal }).catch(() => undefined);
    after = end;
  }
}

function createEmptyPage(end: string): Awaited<ReturnType<LogStore['readAfter']>> {
  return { lines: [], end, missed: false };
}

/** undefined: JSON, which no stream can be. */
function chooseWriter({ follow }: LogQuery, { mediaType }: RequestContext): Writer<LogEvent> | undefined {
  if (mediaType === eventStreamType) return eventWriter;
  return mediaType === plainTextType || follow ? textWriter : undefined;
}

const gapNote = 'Older lines were removed before they could be sent.';

const eventWriter: Writer<LogEvent> = {
  contentType: eventStreamType,
  keepalive: ': keepalive\n\n',
  write(event) {
    const data =
      event.type === 'log'
        ? event.line
        : event.type === 'crash'
          ? event.crash && toCrashView(event.crash)
          : { message: event.type === 'gap' ? gapNote : event.message };
    const id = event.type === 'log' && event.id !== undefined ? `id: ${event.id}\n` : '';
    return `event: ${event.type}\n${id}data: ${JSON.stringify(data ?? {})}\n\n`;
  },
};

/** Writes the time, the component and the text of each line, and comments after a `#`. */
const textWriter: Writer<LogEvent> = {
  contentType: `${plainTextType}; charset=utf-8`,
  keepalive: '',
  write(event) {
    switch (event.type) {
      case 'log':
        return `${event.line.at} ${event.line.component} ${event.line.line}\n`;
      case 'crash':
        return event.crash === undefined ? '# No crash is recorded.\n' : `# ${describeCrash(event.crash)}\n`;
      case 'gap':
        return `# ${gapNote}\n`;
      case 'end':
        return event.message === undefined ? '' : `# ${event.message}\n`;
    }
  },
};

function describeCrash({ component: name, exitCode, signal, reason, at }: Crash): string {
  const by = signal === undefined ? '' : `, signal ${signal}`;
  return `${name} ended at ${at} with exit code ${exitCode}${by} (${reason}). Before that:`;
}

function toCrashView({
  at,
  component: name,
  pod,
  restarts,
  exitCode,
  signal,
  reason,
}: Crash): z.input<typeof crashView> {
  return { at, component: name, pod, restarts, exit_code: exitCode, signal, reason };
}

function toView(events: readonly LogEvent[]): { lines: z.input<typeof lineView>[]; crash?: z.input<typeof crashView> } {
  const crash = events.flatMap((event) => (event.type === 'crash' && event.crash !== undefined ? event.crash : []))[0];
  return {
    lines: events.flatMap((event) => (event.type === 'log' ? event.line : [])),
    ...(crash === undefined ? {} : { crash: toCrashView(crash) }),
  };
}

function respondWith(writer: Writer<LogEvent>, events: readonly LogEvent[]): Response {
  const text = [...events, { type: 'end' } as const].map((event) => writer.write(event)).join('');
  return new Response(text, { headers: { ...streamHeaders, 'content-type': writer.contentType } });
}
