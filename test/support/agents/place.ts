// Where agents do their jobs, and what a job is.

/** An installation as its clients reach it. */
export interface Site {
  readonly baseUrl: string;
  readonly fetch: typeof globalThis.fetch;
}

/** One thing that an agent wants done, from the first call to what it does with the result. */
export interface Job {
  readonly name: string;
  /** @returns what came out, in a line */
  readonly run: () => Promise<string>;
}
