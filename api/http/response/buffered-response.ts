// Web Responses whose content is in memory, so that they are sent in one piece, with their length, and without a stream.
import { FastResponse } from 'srvx/node';

/** What may be said beside the content; names of headers in lower case. */
export interface BufferedResponseInit {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A Response of text or bytes. It becomes a full one only if something reads it as such. */
export function createBufferedResponse(
  content: string | Uint8Array<ArrayBuffer>,
  init: BufferedResponseInit = {},
): Response {
  return new FastResponse(content, init);
}

export function createJsonResponse(value: unknown, { headers, ...init }: BufferedResponseInit = {}): Response {
  return createBufferedResponse(JSON.stringify(value), {
    ...init,
    headers: { 'content-type': 'application/json', ...headers },
  });
}

/** Every Response is an instance of the light class too, so it is known by what it can do. */
export function isBuffered(response: Response): response is InstanceType<typeof FastResponse> {
  return '_toNodeResponse' in response;
}
