// The fetcher interface: gets public URLs that callers name, within limits, and never anything inside.

export interface FetchRequest {
  /** As the caller gave it. */
  readonly url: string;
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  /** Refuses http, but for hosts that tests may reach. */
  readonly httpsOnly?: boolean;
  /** Answers with a redirect as it came, in place of following it. */
  readonly stayHere?: boolean;
  /** Maximum bytes to read, after decompression. */
  readonly maxBytes: number;
  /** Default 20 000. */
  readonly timeoutMs?: number;
  /** Name of the input field, for the problem; default `url`. */
  readonly field?: string;
  readonly signal: AbortSignal;
}

export interface FetchResult {
  /** The address that answered in the end, after redirects. */
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  /** Without parameters, in lower case; application/octet-stream where none was sent. */
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

export interface Fetcher {
  /** Answers with whatever status came. @throws Problem (url-refused, fetch-failed, fetch-too-large) */
  fetch(request: FetchRequest): Promise<FetchResult>;
  /** Like `fetch`, but a status other than 2xx is a problem as well. */
  get(request: FetchRequest): Promise<FetchResult>;
  /**
   * Refuses what `fetch` would refuse at first sight, and fetches nothing: for an address that a program of its own
   * will open.
   * That one still has to go through the guarded proxy, since the name may lead elsewhere by then, and pages redirect.
   * @throws Problem (url-refused, fetch-failed)
   */
  check(request: Pick<FetchRequest, 'url' | 'field' | 'httpsOnly' | 'signal'>): Promise<void>;
}
