// Answers with server-sent events, and sees the generator behind them through to its end when the reader leaves.
import { readWithSilence } from './silence.ts';

export const eventStreamType = 'text/event-stream';

/** One event as text. */
export function formatEvent(event: string | undefined, data: unknown): string {
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
}

export interface EventStreamOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Silence after which a comment is sent, so that no proxy takes the stream for dead; default 15 000 ms. */
  readonly keepaliveMs?: number;
  /** Called when the reader goes away; has to make the frames end. */
  readonly abort: () => void;
}

/**
 * Streams frames as they come. A reader that leaves ends nothing half way: the frames are read to their end, unsent.
 */
export function createEventStreamResponse(
  frames: AsyncGenerator<string, unknown, undefined>,
  { headers = {}, keepaliveMs = 15_000, abort }: EventStreamOptions,
): Response {
  const encoder = new TextEncoder();
  const readOn = readWithSilence(frames, keepaliveMs);
  const read = async (): Promise<string | undefined> => {
    const result = await readOn();
    if (result === undefined) return ': keepalive\n\n';
    return result.done === true ? undefined : result.value;
  };
  const drain = async (): Promise<void> => {
    abort();
    for (;;) {
      const result = await readOn();
      if (result?.done === true) return;
    }
  };
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const text = await read();
        if (text === undefined) controller.close();
        else controller.enqueue(encoder.encode(text));
      },
      cancel: () => drain(),
    },
    { highWaterMark: 0 },
  );
  // X-Accel-Buffering: proxies of one widespread kind hold a stream back without it.
  return new Response(body, {
    headers: { 'content-type': eventStreamType, 'cache-control': 'no-store', 'x-accel-buffering': 'no', ...headers },
  });
}
