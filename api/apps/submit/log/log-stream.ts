// The events of a follower written as server-sent events, or as plain text for a person at a terminal.
import { readWithSilence } from '../../../http/index.ts';
import type { FollowEvent } from './follow.ts';
import { harmless } from './log-text.ts';
import { type LinkBase, type StatusView, viewStatus } from '../../status-view.ts';

export const eventStream = 'text/event-stream';
export const plainText = 'text/plain';

/** How an event is written in one of the media types. */
export interface Writer {
  readonly contentType: string;
  /** Sent after a silence, so that no proxy closes the stream as idle. */
  readonly keepalive: string;
  write(event: FollowEvent): string;
}

const goneNote = 'The log of this build is no longer available: its pod was deleted.';

/** Server-sent events: `stage` and `end` carry a view of the status, `log` a stage and a line, `gone` a message. */
export function eventWriter(linkBase: LinkBase): Writer {
  const frame = (event: string, data: unknown, id?: string): string =>
    `event: ${event}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;
  return {
    contentType: eventStream,
    keepalive: ': keepalive\n\n',
    write(event) {
      switch (event.type) {
        case 'stage':
          return frame('stage', brief(viewStatus(event.app, linkBase)));
        case 'log':
          return frame('log', { stage: event.stage, line: event.line }, event.at);
        case 'gone':
          return frame('gone', { message: goneNote });
        case 'end':
          return frame(
            'end',
            event.app === undefined
              ? { status: 'removed', message: 'The app was deleted.' }
              : brief(viewStatus(event.app, linkBase)),
          );
      }
    },
  };
}

/** Plain text: the lines of the log as they are, and ours after a `#`. */
export function textWriter(linkBase: LinkBase): Writer {
  let stage = '';
  return {
    contentType: `${plainText}; charset=utf-8`,
    keepalive: '',
    write(event) {
      switch (event.type) {
        case 'stage':
          return `# ${harmless(viewStatus(event.app, linkBase).message)}\n`;
        case 'log': {
          const heading = event.stage === stage ? '' : `# ${event.stage}\n`;
          stage = event.stage;
          return `${heading}${event.line}\n`;
        }
        case 'gone':
          return `# ${goneNote}\n`;
        case 'end':
          return event.app === undefined ? '# The app was deleted.\n' : endLines(viewStatus(event.app, linkBase));
      }
    },
  };
}

/** The status, and what is to be said of an app that is live: how its image was made, and what does not work. */
function endLines({ status, plan, page, warning }: StatusView): string {
  const said =
    status === 'live'
      ? [
          ...(plan === undefined ? [] : [`plan: ${plan.strategy}. ${plan.reason}`]),
          ...(page?.status === undefined ? [] : [`page: HTTP ${page.status}, ${page.assets ?? 0} files of its own.`]),
          ...(warning === undefined ? [] : [`warning: the app ${warning}.`]),
        ]
      : [];
  return [...said, status].map((line) => `# ${harmless(line)}\n`).join('');
}

/** What a stream of bytes is made of. */
export interface ByteSource {
  readonly events: AsyncGenerator<FollowEvent, void, undefined>;
  readonly writer: Writer;
  /** Silence after which a keepalive is sent, in milliseconds. */
  readonly keepaliveMs: number;
  /** Ends `events`; called when the reader goes away. */
  readonly abort: () => void;
  /** Called at the first read: nothing is taken for a stream that nobody reads, such as that of HEAD. */
  readonly opened: () => void;
  /** Called when the stream is over, in whatever way. */
  readonly closed: () => void;
}

/** Streams events as bytes. Nothing is pulled from `events` before the first read, nor while the reader is slow. */
export function byteStream({
  events,
  writer,
  keepaliveMs,
  abort,
  opened,
  closed,
}: ByteSource): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const readOn = readWithSilence(events, keepaliveMs);
  let first = true;
  const read = async (): Promise<string | undefined> => {
    if (first) opened();
    first = false;
    const result = await readOn();
    if (result === undefined) return writer.keepalive;
    return result.done === true ? undefined : writer.write(result.value);
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const text = await read();
          if (text !== undefined) {
            controller.enqueue(encoder.encode(text));
            return;
          }
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        closed();
      },
      cancel() {
        abort();
        closed();
      },
    },
    { highWaterMark: 0 },
  );
}

/** What changes from one event to the next. */
function brief(view: StatusView): Partial<StatusView> {
  return { ...view, plan: undefined, history: undefined, findings: undefined };
}
