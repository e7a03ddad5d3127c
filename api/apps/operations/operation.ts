// An operation of an app as it is offered to agents: its name and texts, its arguments, and how the app is called.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { methods } from '../calls/forwarding.ts';

const argument = z.object({
  /** The name that agents use. */
  name: z.string(),
  /** The name that the app uses. */
  field: z.string(),
  in: z.enum(['path', 'query', 'header']),
  required: z.boolean(),
  /** How a list or an object is serialised: one parameter each, separated by commas, or as name[key]. */
  style: z.enum(['explode', 'commas', 'deep']),
});
export type Argument = z.output<typeof argument>;

const httpWay = z.object({
  kind: z.literal('http'),
  method: z.enum(methods),
  /** With {field} for each argument of the path. */
  path: z.string(),
  arguments: z.array(argument),
  body: z.object({ type: z.string(), required: z.boolean() }).optional(),
});
export type HttpBinding = z.output<typeof httpWay>;

const mcpWay = z.object({ kind: z.literal('mcp'), tool: z.string() });

/** The argument that holds the request body. */
export const bodyArgument = 'body';

export const operation = z.object({
  /** `<slug>__<operation>`. No built-in tool has two underscores in its name. */
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
  /** `<slug>.<operation>`, the name that clients of earlier versions call. */
  formerName: z.string().regex(/^[a-z0-9-]{1,63}\.[A-Za-z0-9_-]{1,64}$/),
  title: z.string(),
  description: z.string(),
  /** Self-contained JSON Schema of an object. */
  inputSchema: z.looseObject({ type: z.literal('object') }),
  way: z.discriminatedUnion('kind', [httpWay, mcpWay]),
});
export type Operation = z.output<typeof operation>;

/** The result of a discovery. */
export const operationList = z.object({
  operations: z.array(operation),
  /** Operations that are not offered: too many, broken, or with credentials that are not passed on. */
  leftOut: z.int(),
});
export type OperationList = z.output<typeof operationList>;

/** Maximum number of operations of one app. */
export const maxOperations = 64;
/** Maximum size of all of them together as JSON, in bytes. */
const maxBytes = 262_144;

/** Reads candidates until the limits of one app are reached. Leaves out those that cannot be called. */
export function readWithinLimits<Candidate>(
  candidates: readonly Candidate[],
  read: (candidate: Candidate) => Operation | undefined,
): Operation[] {
  const operations: Operation[] = [];
  let bytes = 0;
  for (const candidate of candidates) {
    const operation = read(candidate);
    if (operation === undefined) continue;
    bytes += Buffer.byteLength(JSON.stringify(operation));
    if (bytes > maxBytes) break;
    operations.push(operation);
    if (operations.length === maxOperations) break;
  }
  return operations;
}

/** Control characters, invisible characters (zero width, tags, direction marks) and lone surrogates. */
const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}]+/gu;

export function toPlainText(value: unknown, limit: number): string {
  if (typeof value !== 'string') return '';
  const text = value
    .slice(0, limit * 2)
    .replaceAll(hidden, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
  return text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
}

/** Longest tool name that clients such as Claude Desktop and Codex accept. */
export const maxNameLength = 64;
/** Separates the app from its operation. A slug has no underscore, so the first separator is the one that counts. */
export const nameSeparator = '__';
/** A longer slug is cut and gets a hash, so that at least 22 characters remain for the operation. */
const maxPrefix = 40;

/** The prefix of the names of an app's operations. */
export function toNamePrefix(slug: string): string {
  if (slug.length <= maxPrefix) return slug;
  const hash = createHash('sha256').update(slug).digest('hex').slice(0, 8);
  return `${slug.slice(0, maxPrefix - hash.length - 1)}-${hash}`;
}

export function removePrefix(name: string): string {
  return name.slice(name.indexOf(nameSeparator) + nameSeparator.length);
}

export interface OperationName {
  /** `<slug>__<operation>`. */
  readonly name: string;
  /** `<slug>.<operation>`, the name in earlier versions: no longer listed, but still accepted in calls. */
  readonly formerName: string;
}

/** Names the operations of an app: valid in every client, unique, and the same every time. */
export class OperationNames {
  readonly #former = new Set<string>();
  readonly #taken = new Set<string>();
  readonly #slug: string;
  readonly #prefix: string;

  constructor(slug: string) {
    this.#slug = slug;
    this.#prefix = `${toNamePrefix(slug)}${nameSeparator}`;
  }

  createName(originalName: string): OperationName {
    const base =
      toPlainText(originalName, 200)
        .normalize('NFKD')
        .replaceAll(/[^A-Za-z0-9_-]+/g, '_')
        .replaceAll(/^_+|_+$/g, '')
        .slice(0, 56) || 'operation';
    return {
      name: `${this.#prefix}${takeUnused(base, this.#taken, maxNameLength - this.#prefix.length)}`,
      formerName: `${this.#slug}.${takeUnused(base, this.#former)}`,
    };
  }
}

/** Takes the name itself or, if it is taken, the name with a number. Some clients ignore case. */
function takeUnused(base: string, taken: Set<string>, limit = Number.POSITIVE_INFINITY): string {
  for (let count = 1; ; count += 1) {
    const suffix = count === 1 ? '' : `_${count}`;
    const name = `${base.slice(0, limit - suffix.length)}${suffix}`;
    if (taken.has(name.toLowerCase())) continue;
    taken.add(name.toLowerCase());
    return name;
  }
}
