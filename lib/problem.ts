// Refusals as RFC 9457 problems: what a caller sees of every error, and what to do about it.

/** A kind of problem. Its page is `<base URL>/problems/<slug>`, which is also its `type`. */
export interface ProblemType {
  readonly slug: string;
  readonly status: number;
  readonly title: string;
  /** What it means and how to get past it, for the page of the type. */
  readonly description: string;
}

/** One thing wrong with a request. */
export interface FieldError {
  /** Where the field stands; arguments are those of a tool that an agent calls. */
  readonly in: 'body' | 'path' | 'query' | 'header' | 'argument';
  /** Dotted name of the field; empty for the whole part. */
  readonly field: string;
  /** What is wrong, as a predicate: `is missing`. */
  readonly message: string;
  /** What to send instead. */
  readonly fix: string;
}

/** What a problem may carry beside its type and its detail. */
export interface ProblemOptions {
  errors?: readonly FieldError[];
  headers?: Readonly<Record<string, string>>;
  /** Further members of the body, such as `quota` or `actions`. */
  members?: Readonly<Record<string, unknown>>;
  cause?: unknown;
}

/** Thrown by a handler to refuse a request; the message becomes `detail`. */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly type: ProblemType;
  readonly errors: readonly FieldError[];
  readonly headers: Readonly<Record<string, string>>;
  readonly members: Readonly<Record<string, unknown>>;

  constructor(type: ProblemType, detail: string, options: ProblemOptions = {}) {
    super(detail, options.cause === undefined ? {} : { cause: options.cause });
    this.type = type;
    this.errors = options.errors ?? [];
    this.headers = options.headers ?? {};
    this.members = options.members ?? {};
  }
}

/** Media type of a problem. */
export const problemMediaType = 'application/problem+json';

/** The body of a problem. `instance` is the path that was asked for; `requestId` finds it in the log. */
export function problemBody(
  problem: Problem,
  baseUrl: string,
  instance: string,
  requestId: string,
): Record<string, unknown> {
  return {
    ...problem.members,
    type: problemUrl(problem.type, baseUrl),
    title: problem.type.title,
    status: problem.type.status,
    detail: problem.message,
    instance,
    request_id: requestId,
    ...(problem.errors.length === 0 ? {} : { errors: problem.errors }),
  };
}

/** The stable address of a kind of problem. */
export function problemUrl(type: ProblemType, baseUrl: string): string {
  return `${baseUrl}/problems/${type.slug}`;
}
