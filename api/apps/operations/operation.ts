// An operation of an app as it is offered to agents: its name, its arguments, and how the app is called for it.
import { z } from 'zod';
import { methods } from '../calls/app-path.ts';

const argument = z.object({
  /** As agents name it. */
  name: z.string(),
  /** As the app names it. */
  field: z.string(),
  in: z.enum(['path', 'query', 'header']),
  required: z.boolean(),
  /** How a list or an object is written: each on its own, by commas, or as name[key]. */
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
export type HttpWay = z.output<typeof httpWay>;

const mcpWay = z.object({ kind: z.literal('mcp'), tool: z.string() });

/** The argument that is the body of a request. */
export const bodyArgument = 'body';

export const operation = z.object({
  /** `<slug>__<operation>`: unlike the name of any tool of ours, with two underscores. */
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/),
  /** `<slug>.<operation>`, the name that clients of earlier versions call. */
  formerName: z.string().regex(/^[a-z0-9-]{1,63}\.[A-Za-z0-9_-]{1,64}$/),
  title: z.string(),
  description: z.string(),
  /** JSON Schema of an object, with all that it refers to in it. */
  inputSchema: z.looseObject({ type: z.literal('object') }),
  way: z.discriminatedUnion('kind', [httpWay, mcpWay]),
});
export type Operation = z.output<typeof operation>;

/** What discovery found. */
export const operationList = z.object({
  operations: z.array(operation),
  /** Operations that are not offered: too many, broken, or with credentials that are not passed on. */
  leftOut: z.int(),
});
export type OperationList = z.output<typeof operationList>;

/** Maximum of operations offered by one app. */
export const maxOperations = 64;
/** Maximum of bytes of all of them together, as JSON. */
const maxBytes = 262_144;

/** Reads candidates until the limits of one app are reached; those that cannot be called are left out. */
export function readWithinLimits<Candidate>(
  candidates: readonly Candidate[],
  read: (candidate: Candidate) => Operation | undefined,
): Operation[] {
  const operations: Operation[] = [];
  let bytes = 0;
  for (const candidate of candidates) {
    const found = read(candidate);
    if (found === undefined) continue;
    bytes += Buffer.byteLength(JSON.stringify(found));
    if (bytes > maxBytes) break;
    operations.push(found);
    if (operations.length === maxOperations) break;
  }
  return operations;
}
