// Reads what a router sends: bodies, events, error messages.
import { createParser } from 'eventsource-parser';
import { chunk, refusal, type Chunk, type RouterUsage } from './answer.ts';
import { parseExact } from './exact-json.ts';
import { RouterFailure } from './failure.ts';
import { header, type RouterHeaders } from './shape.ts';

const largestBody = 16 * 1024 * 1024;

export async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const bytes of body) {
    length += bytes.length;
    if (length > largestBody) throw new RouterFailure('malformed', `the answer is longer than ${largestBody} bytes`);
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

/** An event of a stream. @throws RouterFailure when it is none, or tells of an error */
export function readChunk(data: string, headers: RouterHeaders): Chunk {
  const read = chunk.safeParse(parseBody(data, headers));
  if (!read.success)
    throw new RouterFailure('malformed', 'an event of the stream is not what the router promises', {
      reference: referenceIn(headers),
    });
  const { error, id } = read.data;
  if (error !== undefined && error !== null)
    throw new RouterFailure('broken', brief(error.message ?? 'the model broke off'), {
      reference: id ?? referenceIn(headers),
    });
  return read.data;
}

/** JSON with money kept exact. @throws RouterFailure */
export function parseBody(text: string, headers: RouterHeaders): unknown {
  try {
    return parseExact(text);
  } catch (error) {
    throw new RouterFailure('malformed', 'the answer is not JSON', { reference: referenceIn(headers), cause: error });
  }
}

/** A 200 without an answer in it: some routers put their refusal there. It may have been billed all the same. */
export function told(text: string, headers: RouterHeaders): RouterFailure {
  const said = saidIn(text);
  return new RouterFailure(
    said === undefined ? 'malformed' : 'broken',
    said ?? 'the answer is not what the router promises',
    { reference: referenceIn(headers) },
  );
}

/** The message of an error body. */
export function saidIn(text: string): string | undefined {
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

/** What the router knows the call by, from the headers. */
export function referenceIn(headers: RouterHeaders): string | undefined {
  return header(headers, 'x-generation-id');
}

/** What a stream has told so far. */
export interface Seen {
  id?: string | undefined;
  usage?: RouterUsage | undefined;
  finish?: string | undefined;
  done: boolean;
  text: string;
}

/** Takes in one event. @returns it with its piece of the answer; undefined for the mark of the end */
export function takeIn(seen: Seen, data: string, headers: RouterHeaders): { text: string; chunk: Chunk } | undefined {
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
