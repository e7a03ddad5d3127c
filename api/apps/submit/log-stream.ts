// Streams the events of a followed app as server-sent events, or as plain text for a terminal.
import { eventStreamType, readWithSilence, type RequestContext } from '../../http/index.ts';
import type { FollowEvent } from './follow-log.ts';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { type LinkBase, type Reader, type StatusView, toStatusView } from '../status-view.ts';
import { Problem } from '../../../lib/problem.ts';
import { tooManyStreams } from '../problems.ts';

export const plainTextType = 'text/plain';

/** Writes events in one of the media types. */
export interface Writer<Event = FollowEvent> {
  readonly contentType: string;
  /** Sent after a silence, so that no proxy closes an idle stream. */
  readonly keepalive: string;
  write(event: Event): string;
}

const goneNote = 'The log of this build is no longer available: its pod was deleted.';

/** Writes server-sent events: `stage` and `end` carry the status, `log` a stage and a line, `gone` a message. */
export function createEventWriter(linkBase: LinkBase, reader: Reader): Writer {
  const formatFrame = (event: string, data: unknown, id?: string): string =>
    `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
  return {
    contentType: eventStreamType,
    keepalive: ': keepalive\n\n',
    write(event) {
      switch (event.type) {
        case 'stage':
          return formatFrame('stage', shortenView(toStatusView(event.app, linkBase, reader)));
        case 'log':
          return formatFrame('log', { stage: event.stage, line: event.line }, event.at);
        case 'gone':
          return formatFrame('gone', { message: goneNote });
        case 'end':
          return formatFrame(
            'end',
            event.app === undefined
              ? { status: 'removed', message: 'The app was deleted.' }
              : shortenView(toStatusView(event.app, linkBase, reader)),
          );
      }
    },
  };
}

/** Writes plain text: the log lines unchanged, and comments after a `#`. */
export function createTextWriter(linkBase: LinkBase, reader: Reader): Writer {
  let stage = '';
  return {
    contentType: `${plainTextType}; charset=utf-8`,
    keepalive: '',
    write(event) {
      switch (event.type) {
        case 'stage':
          return `# ${toHarmlessText(toStatusView(event.app, linkBase, reader).message)}\n`;
        case 'log': {
          const heading = event.stage === stage ? '' : `# ${event.stage}\n`;
          stage = event.stage;
          return `${heading}${event.line}\n`;
        }
        case 'gone':
          return `# ${goneNote}\n`;
        case 'end':
          return event.app === undefined
            ? '# The app was deleted.\n'
            : formatEnd(toStatusView(event.app, linkBase, reader));
      }
    },
  };
}

/** Formats the status; for a live app also how its image was built, and what does not work. */
function formatEnd({ status, plan, page, warning }: StatusView): string {
  const details =
    status === 'live'
      ? [
          ...(plan === undefined ? [] : [`plan: ${plan.strategy}. ${plan.reason}`]),
          ...(page?.status === undefined ? [] : [`page: HTTP ${page.status}, ${page.assets ?? 0} files of its own.`]),
          ...(warning === undefined ? [] : [`warning: the app ${warning}.`]),
        ]
      : [];
  return [...details, status].map((line) => `# ${toHarmlessText(line)}\n`).join('');
}

export interface ByteSource<Event> {
  readonly events: AsyncGenerator<Event, void, undefined>;
  readonly writer: Writer<Event>;
  /** Silence after which a keepalive is sent, in milliseconds. */
  readonly keepaliveMs: number;
  /** Called when the reader goes away. Ends `events`. */
  readonly abort: () => void;
  /** Called at the first read, so that a stream that is never read takes no slot. */
  readonly onOpen: () => void;
  /** Called when the stream is over, for whatever reason. */
  readonly onClose: () => void;
}

/** Streams events as bytes. Pulls nothing from `events` before the first read or while the reader is slow. */
export function createByteStream<Event>({
  events,
  writer,
  keepaliveMs,
  abort,
  onOpen,
  onClose,
}: ByteSource<Event>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const readOn = readWithSilence(events, keepaliveMs);
  let first = true;
  const readNext = async (): Promise<string | undefined> => {
    if (first) onOpen();
    first = false;
    const result = await readOn();
    if (result === undefined) return writer.keepalive;
    return result.done === true ? undefined : writer.write(result.value);
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const text = await readNext();
          if (text !== undefined) {
            controller.enqueue(encoder.encode(text));
            return;
          }
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        onClose();
      },
      cancel() {
        abort();
        onClose();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Without X-Accel-Buffering, nginx holds a stream back. */
export const streamHeaders = { 'cache-control': 'no-store', 'x-accel-buffering': 'no' } as const;

export interface StreamedLog<Event> {
  readonly slots: StreamSlots;
  readonly writer: Writer<Event>;
  readonly keepaliveMs: number;
  /** Aborts when the reader leaves or the process is about to exit. */
  readonly open: (signal: AbortSignal) => AsyncGenerator<Event, void, undefined>;
}

/** Streams a log to the caller, who holds a slot from the first byte until the stream is over, on every path. */
export function streamLog<Event>(
  { slots, writer, keepaliveMs, open }: StreamedLog<Event>,
  context: RequestContext,
): Response {
  const leaving = new AbortController();
  const abort = (): void => {
    leaving.abort();
  };
  let releaseSlot = (): void => undefined;
  const close = (): void => {
    releaseSlot();
  };
  context.onFinished(() => {
    abort();
    close();
  });
  const body = createByteStream({
    events: open(AbortSignal.any([context.signal, leaving.signal])),
    writer,
    keepaliveMs,
    abort,
    onOpen: () => {
      releaseSlot = slots.take(context.caller().hash);
    },
    onClose: close,
  });
  return new Response(body, { headers: { ...streamHeaders, 'content-type': writer.contentType } });
}

/** Leaves out what does not change from one event to the next. */
function shortenView(view: StatusView): Partial<StatusView> {
  return { ...view, plan: undefined, history: undefined, findings: undefined };
}

/** Limits how many log streams are open in this process, and how many of them for one caller. */
export class StreamSlots {
  readonly #max: number;
  /** Lower than `#max`, so that one caller leaves some for the others. */
  readonly #maxPerCaller: number;
  readonly #onChange: (taken: number) => void;
  /** What to do without a stream, in the words of a problem. */
  readonly #instead: string;
  /** Slots by caller; callers without a slot have no entry. */
  readonly #callers = new Map<string, number>();
  #taken = 0;

  /** Calls `changed` with the number of slots that are taken. */
  constructor(max: number, changed: (taken: number) => void, instead = 'poll /api/submit-status') {
    this.#max = max;
    this.#maxPerCaller = Math.ceil(max / 4);
    this.#onChange = changed;
    this.#instead = instead;
  }

  /** @throws Problem (too-many-streams) if no slot is left for this caller */
  check(caller: string): void {
    if (this.#taken >= this.#max)
      throw createRefusal(
        `This replica has reached its limit of ${this.#max} log streams. Try again in 10 seconds, or ${this.#instead}.`,
      );
    if ((this.#callers.get(caller) ?? 0) >= this.#maxPerCaller)
      throw createRefusal(
        `You have ${this.#maxPerCaller} log streams open, which is the limit per caller. Close one, or ${this.#instead}.`,
      );
  }

  /** @returns a function that gives the slot back, once. @throws Problem (too-many-streams) */
  take(caller: string): () => void {
    this.check(caller);
    this.#count(caller, 1);
    let isTaken = true;
    return () => {
      if (isTaken) this.#count(caller, -1);
      isTaken = false;
    };
  }

  #count(caller: string, change: 1 | -1): void {
    this.#taken += change;
    const slots = (this.#callers.get(caller) ?? 0) + change;
    if (slots === 0) this.#callers.delete(caller);
    else this.#callers.set(caller, slots);
    this.#onChange(this.#taken);
  }
}

function createRefusal(detail: string): Problem {
  return new Problem(tooManyStreams, detail, { headers: { 'retry-after': '10' } });
}
