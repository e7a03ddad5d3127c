// Reads the responses of a router: bodies, events, error messages.
import { createParser } from 'eventsource-parser';
import { chunk, refusal, type Chunk, type RouterUsage } from './answer.ts';
import { parseExact } from './exact-json.ts';
import { RouterFailure } from './failure.ts';
import { header, type RouterHeaders } from './shape.ts';

const maxBodyBytes = 16 * 1024 * 1024;

export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of body) {
    length += bytes.length;
    if (length > maxBodyBytes)
      throw new RouterFailure('malformed', `the response of the router is longer than ${maxBodyBytes} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The data of each server-sent event. */
export async function* events(body: AsyncIterable<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const ready: string[] = [];
  const parser = createParser({
    onEvent: ({ data }) => {
      ready.push(data);
    },
  });
  const decoder = new TextDecoder();
  for await (const bytes of body) {
    parser.feed(decoder.decode(bytes, { stream: true }));
    yield* ready.splice(0);
  }
}

/** An event of a stream. @throws RouterFailure when it is none, or reports an error */
export function readChunk(data: string, headers: RouterHeaders): Chunk {
  const read = chunk.safeParse(parseBody(data, headers));
  if (!read.success)
    throw new RouterFailure('malformed', 'the router sent a stream event of an unexpected form', {
      reference: referenceIn(headers),
    });
  const { error, id } = read.data;
  if (error !== undefined && error !== null)
    throw new RouterFailure('broken', 'the model stopped before its answer was complete', {
      said: typeof error.message === 'string' ? brief(error.message) : undefined,
      reference: id ?? referenceIn(headers),
    });
  return read.data;
}

/** JSON with money kept exact. @throws RouterFailure */
export function parseBody(text: string, headers: RouterHeaders): unknown {
  try {
    return parseExact(text);
  } catch (error) {
    throw new RouterFailure('malformed', 'the response of the router is not JSON', {
      reference: referenceIn(headers),
      cause: error,
    });
  }
}

/** A 200 without an answer in it: some routers put their refusal there. It may have been billed all the same. */
export function unexpectedBody(text: string, headers: RouterHeaders): RouterFailure {
  const said = errorMessageIn(text);
  return new RouterFailure(
    said === undefined ? 'malformed' : 'broken',
    said === undefined ? 'the response of the router has an unexpected form' : 'the router reported an error',
    { reference: referenceIn(headers), said },
  );
}

/** The message of an error body. */
export function errorMessageIn(text: string): string | undefined {
  try {
    const read = refusal.safeParse(JSON.parse(text));
    return read.success && typeof read.data.error.message === 'string' ? brief(read.data.error.message) : undefined;
  } catch {
    return undefined;
  }
}

/** Short, and without anything that looks like a key. */
function brief(message: string): string {
  return message.replaceAll(/sk-[\w-]{4,}/g, 'sk-…').slice(0, 500);
}

/** The router's own id of the call, from the headers. */
export function referenceIn(headers: RouterHeaders): string | undefined {
  return header(headers, 'x-generation-id');
}

/** What a stream has delivered so far. */
export interface StreamProgress {
  id?: string | undefined;
  usage?: RouterUsage | undefined;
  finish?: string | undefined;
  done: boolean;
  text: string;
}

/** Adds one event. @returns it with its piece of the answer; undefined for the mark of the end */
export function addEvent(
  seen: StreamProgress,
  data: string,
  headers: RouterHeaders,
): { text: string; chunk: Chunk } | undefined {
  if (data === '[DONE]') {
    seen.done = true;
    return undefined;
  }
  const part = readChunk(data, headers);
  const [choice] = part.choices ?? [];
  const text = choice?.delta?.content ?? '';
  seen.id = part.id ?? seen.id;
  seen.usage = part.usage ?? seen.usage;
  seen.finish = choice?.finish_reason ?? seen.finish;
  seen.text += text;
  return { text, chunk: part };
}
