// Defines RFC 9457 problems, which are all that a caller sees of an error, and suggests similar names where one is unknown.
import { distance } from 'fastest-levenshtein';

/** A kind of problem. Its page is `<base URL>/problems/<slug>`, which is also its `type`. */
export interface ProblemType {
  readonly slug: string;
  readonly status: number;
  readonly title: string;
  /** What it means and how to fix it, for the page of the type. */
  readonly description: string;
}

/** One thing wrong with a request. */
export interface FieldError {
  /** The part of the request with the field; arguments are those of a tool that an agent calls. */
  readonly in: 'body' | 'path' | 'query' | 'header' | 'argument';
  /** Dotted name of the field; empty for the whole part. */
  readonly field: string;
  /** What is wrong, as a predicate: `is missing`. */
  readonly message: string;
  /** What to send instead. */
  readonly fix: string;
}

/** What a problem may carry besides its type and its detail. */
export interface ProblemOptions {
  errors?: readonly FieldError[];
  headers?: Readonly<Record<string, string>>;
  /** Further members of the body, such as `quota` or `actions`. */
  members?: Readonly<Record<string, unknown>>;
  cause?: unknown;
}

/** Thrown by a handler to reject a request; the message becomes `detail`. */
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

/** The body of a problem. `instance` is the path of the request; `requestId` finds it in the log. */
export function buildProblemBody(
  problem: Problem,
  baseUrl: string,
  instance: string,
  requestId: string,
): Record<string, unknown> {
  return {
    ...problem.members,
    type: buildProblemUrl(problem.type, baseUrl),
    title: problem.type.title,
    status: problem.type.status,
    detail: problem.message,
    instance,
    request_id: requestId,
    ...(problem.errors.length === 0 ? {} : { errors: problem.errors }),
  };
}

/** The stable address of a kind of problem. */
export function buildProblemUrl(type: ProblemType, baseUrl: string): string {
  return `${baseUrl}/problems/${type.slug}`;
}

/** An unknown name, and where to find the known ones. */
export interface UnknownName {
  /** The start of a sentence that ends with the name: `There is no app`. */
  readonly says: string;
  readonly name: string;
  readonly names: readonly string[];
  /** A sentence: `GET /t lists all tools.` */
  readonly all: string;
}

const maxCharacters = 60;

/** The problem of an unknown name, with similar names in `nearest`. */
export function createUnknownNameProblem(type: ProblemType, { says, name, names, all }: UnknownName): Problem {
  const nearest = findNearestNames(name, names);
  const hint = nearest.length === 0 ? '' : ` Did you mean ${nearest.join(' or ')}?`;
  const quotedName = JSON.stringify(name.slice(0, maxCharacters).toWellFormed());
  return new Problem(type, `${says} ${quotedName}.${hint} ${all}`, { members: { nearest } });
}

/** Up to three most similar names, such as slugs. Names that are similar only by chance are left out. */
export function findNearestNames(name: string, names: readonly string[]): string[] {
  const target = normalize(name);
  return names
    .map((known) => ({ known, far: measureDistance(target, normalize(known)) }))
    .filter(({ far }) => far <= 0.5)
    .sort((a, b) => a.far - b.far)
    .slice(0, 3)
    .map(({ known }) => known);
}

/** 0: the same. 1: nothing in common. A part of a name counts as near. */
function measureDistance(name: string, candidate: string): number {
  if (name.length >= 4 && (candidate.includes(name) || name.includes(candidate))) return 0.25;
  return distance(name, candidate) / Math.max(name.length, candidate.length, 1);
}

/** The field that was meant, if one differs only by a typo. Unlike slugs, field names are fixed, so the limit is narrow. */
export function findMeantField(name: string, fields: readonly string[]): string | undefined {
  const [near] = fields
    .map((field) => ({ field, far: distance(normalize(name), normalize(field)) }))
    .sort((a, b) => a.far - b.far);
  if (near === undefined) return undefined;
  const { field, far } = near;
  const typo = field.length < 4 ? 1 : Math.max(2, Math.floor(field.length / 3));
  return far <= typo && far < Math.max(name.length, field.length) ? field : undefined;
}

/** Lower case, without separators between words. */
function normalize(name: string): string {
  return name
    .slice(0, maxCharacters)
    .toLowerCase()
    .replaceAll(/[-_.\s]/g, '');
}
