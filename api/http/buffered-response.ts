// A web Response whose content is in memory, so that it is sent in one piece, with its length, and without a stream.

/** Content in memory: text or bytes. */
export type Content = string | Uint8Array<ArrayBuffer>;

/** What may be said beside the content; names of headers in lower case. */
export interface BufferedResponseInit {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export class BufferedResponse extends Response {
  readonly content: Content;

  constructor(content: Content, init: BufferedResponseInit = {}) {
    super(content, init);
    this.content = content;
  }

  static override json(value: unknown, { headers, ...init }: BufferedResponseInit = {}): BufferedResponse {
    return new BufferedResponse(JSON.stringify(value), {
      ...init,
      headers: { 'content-type': 'application/json', ...headers },
    });
  }
}
