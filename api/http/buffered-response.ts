// A web Response whose content is in memory, so that it is sent in one piece, with its length, and without a stream.
import { FastResponse } from 'srvx/node';

/** What may be said beside the content; names of headers in lower case. */
export interface BufferedResponseInit {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Becomes a full Response only if something reads it as one. */
export class BufferedResponse extends FastResponse {
  constructor(content: string | Uint8Array<ArrayBuffer>, init: BufferedResponseInit = {}) {
    super(content, init);
  }

  static override json(value: unknown, { headers, ...init }: BufferedResponseInit = {}): BufferedResponse {
    return new BufferedResponse(JSON.stringify(value), {
      ...init,
      headers: { 'content-type': 'application/json', ...headers },
    });
  }
}
