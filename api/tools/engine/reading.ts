// Reads the arguments of a tool call: aliases, query text turned into types, common options, every invalid field
// reported at once.
import { z } from 'zod';
import { type FieldError, Problem } from '../../../lib/problem.ts';
import {
  createValidationProblem,
  isCrossOrigin,
  methodNotAllowed,
  type InputPart,
  readPart,
} from '../../http/index.ts';
import { foreignWrite } from '../problems.ts';
import { coerceQuery } from './coerce.ts';
import { unknownParameters } from './warnings.ts';
import type { Tool } from '../tool.ts';

const commonFields = {
  s: z
    .string()
    .regex(
      /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
      'must be 1 to 64 letters, digits, ".", "_" or "-", starting with a letter or digit',
    )
    .optional()
    .describe(
      'Session name of your choice. Groups your calls and separates spaces of the memory tool; without an API key it is what opens a space, so the memory tool takes only one that is hard to guess, such as a UUID. 1 to 64 letters, digits, ".", "_" or "-".',
    ),
  raw: z
    .boolean()
    .optional()
    .describe(
      'Set to 1 (true in JSON) to get the bytes of the file instead of JSON. Only for tools that create a file.',
    ),
};
const longFields = {
  wait: z
    .int()
    .min(0)
    .max(60)
    .optional()
    .describe('Seconds to wait for the result, 0 to 60. When omitted, an HTTP call returns a job handle at once.'),
  job: z
    .string()
    .regex(/^[A-Za-z0-9_-]{8,64}$/, 'must be a job id')
    .optional()
    .describe('Id of an existing job. Returns its status, or its result when it is done.'),
};
const optionFields = { ...commonFields, ...longFields };
const optionNames: ReadonlySet<string> = new Set(Object.keys(optionFields));
export interface CallOptions {
  readonly s?: string | undefined;
  readonly raw?: boolean | undefined;
  readonly wait?: number | undefined;
  readonly job?: string | undefined;
}

/** A call with this input or, with `job` among the options, a question for the status of a job. */
export interface Reading {
  /** Where the fields stand, for problems that a tool finds later. */
  readonly part: InputPart;
  readonly options: CallOptions;
  readonly input: Record<string, unknown>;
  /** What was ignored, in words for the caller. */
  readonly warnings?: readonly string[];
}

export class ToolReader {
  readonly tool: Tool;
  readonly #fields: z.ZodObject;
  /** The fields of a call, options included, as documents show them. */
  readonly shown: z.ZodObject;
  /** The options alone. */
  readonly options: z.ZodObject;

  constructor(tool: Tool) {
    this.tool = tool;
    const own = tool.long === true ? optionFields : commonFields;
    const clash = [...Object.keys(tool.input.shape), ...Object.keys(tool.aliases)].find((name) =>
      optionNames.has(name),
    );
    if (clash !== undefined) throw new TypeError(`${tool.name}: ${clash} is reserved as an option of every tool`);
    this.options = z.strictObject(own);
    this.#fields = z.strictObject({ ...tool.input.shape, ...own }).describe(`Arguments of ${tool.name}.`);
    this.shown = tool.long === true ? z.strictObject({ ...optionally(tool.input.shape), ...own }) : this.#fields;
  }

  /**
   * The query of a GET: links are passed on with parameters that others add, so one that is not known is a warning.
   * @throws Problem (invalid-request, method-not-allowed)
   */
  readLink(query: Readonly<Record<string, string | string[]>>): Reading {
    const known = [...Object.keys(this.#fields.shape), ...Object.keys(this.tool.aliases)];
    const unknown = Object.keys(query).filter((name) => !known.includes(name));
    const left = Object.fromEntries(Object.entries(query).filter(([name]) => known.includes(name)));
    const reading = this.read('query', left);
    refuseChange(this.tool, reading);
    return unknown.length === 0 ? reading : { ...reading, warnings: unknownParameters(unknown, known) };
  }

  /** @throws Problem (invalid-request) that names every field that is wrong */
  read(part: InputPart, given: unknown): Reading {
    if (!isFields(given)) return readPart(part, this.#fields, given) as never;
    const renamed = this.#renamed(part, given);
    const typed = part === 'query' ? coerceQuery(this.#fields, renamed as Record<string, string | string[]>) : renamed;
    const schema = this.tool.long === true && typed['job'] !== undefined ? this.options : this.#fields;
    const read = readPart(part, schema, typed);
    const { left: input, taken } = split(read);
    return { part, options: taken, input: schema === this.#fields ? this.#refined(part, typed, input) : {} };
  }

  /**
   * A body, and options that may stand in the query beside it; those in the body come first. @throws Problem
   * (invalid-request)
   */
  readBoth(query: Readonly<Record<string, string | string[]>>, body: unknown): Reading {
    const beside = readPart('query', this.options, coerceQuery(this.options, query));
    const { part, options, input } = this.read(
      'body',
      isFields(body) && body['job'] === undefined && beside['job'] !== undefined
        ? { ...body, job: beside['job'] }
        : body,
    );
    return { part, options: { ...beside, ...options }, input };
  }

  /** Fields of a tool may depend on each other; the rules for that are on its schema as a whole. */
  #refined(part: InputPart, typed: Record<string, unknown>, input: Record<string, unknown>): Record<string, unknown> {
    const { input: schema } = this.tool;
    if ((schema._zod.def.checks ?? []).length === 0) return input;
    return readPart(part, schema, split(typed).left);
  }

  #renamed(part: InputPart, given: Record<string, unknown>): Record<string, unknown> {
    const { aliases } = this.tool;
    const named = new Map<string, string>();
    const errors: FieldError[] = [];
    const entries = Object.entries(given).map(([name, value]): [string, unknown] => {
      const field = Object.hasOwn(aliases, name) ? (aliases[name] ?? name) : name;
      const other = named.get(field);
      if (other !== undefined)
        errors.push({
          in: part,
          field: name,
          message: `duplicates ${other}, which is also set`,
          fix: `Send only ${field}.`,
        });
      named.set(field, name);
      return [field, value];
    });
    if (errors.length > 0) throw createValidationProblem(errors);
    return Object.fromEntries(entries);
  }
}

function split(fields: Record<string, unknown>): { left: Record<string, unknown>; taken: Record<string, unknown> } {
  const entries = Object.entries(fields);
  return {
    left: Object.fromEntries(entries.filter(([name]) => !optionNames.has(name))),
    taken: Object.fromEntries(entries.filter(([name]) => optionNames.has(name))),
  };
}

function optionally(shape: z.ZodObject['shape']): Record<string, z.ZodType> {
  return Object.fromEntries(Object.entries(shape).map(([name, field]) => [name, (field as z.ZodType).optional()]));
}

function isFields(given: unknown): given is Record<string, unknown> {
  return typeof given === 'object' && given !== null && !Array.isArray(given);
}

/** @throws Problem (method-not-allowed) where GET would change what is kept */
function refuseChange(tool: Tool, { input }: Reading): void {
  if (!tool.changes(input)) return;
  const body = JSON.stringify(input);
  const example = body.length > 300 ? 'with the same fields' : `with the body ${body}`;
  throw new Problem(
    methodNotAllowed,
    `This call changes what is kept, which GET must not. Send POST /t/${tool.name} ${example} and Content-Type: application/json.`,
    { headers: { allow: 'POST' } },
  );
}

/** @throws Problem (foreign-write) where a page of another site makes a browser without a key change what is kept */
export function refuseForeignChange(tool: Tool, { input }: Reading, headers: Headers): void {
  const read = (name: string): string | undefined => headers.get(name) ?? undefined;
  if (!tool.changes(input) || read('authorization') !== undefined) return;
  if (isCrossOrigin({ origin: read('origin'), host: read('host'), site: read('sec-fetch-site') }))
    throw new Problem(
      foreignWrite,
      `A page of another site sent this call, which changes what is kept. Send an API key, or call POST /t/${tool.name} from a program.`,
    );
}
