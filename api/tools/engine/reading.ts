// Reads the arguments of a tool call: resolves aliases, converts query text, separates the common options and reports
// every invalid field in one problem.
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
import { describeUnknownParameters } from './response.ts';
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
      'Session name of your choice. Groups your calls and separates spaces of the memory tool; without an API key it gives access to a space, so the memory tool accepts only one that is hard to guess, such as a UUID. 1 to 64 letters, digits, ".", "_" or "-".',
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
    .describe('Seconds to wait for the result, 0 to 60. When omitted, an HTTP call returns a job handle immediately.'),
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

/** The arguments of a call. With the option `job`, a request for a job's status. */
export interface Reading {
  /** The part of the request with the fields, for problems that the tool finds later. */
  readonly part: InputPart;
  readonly options: CallOptions;
  readonly input: Record<string, unknown>;
  /** What was ignored, as text for the caller. */
  readonly warnings?: readonly string[];
}

export class ToolReader {
  readonly tool: Tool;
  readonly #fields: z.ZodObject;
  /** The fields of a call including options, as the documentation shows them. */
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
    this.shown = tool.long === true ? z.strictObject({ ...toOptionalFields(tool.input.shape), ...own }) : this.#fields;
  }

  /**
   * Reads the query of a GET. Other services add parameters to links that are passed on, so an unknown one is a warning.
   * @throws Problem (invalid-request, method-not-allowed)
   */
  readLink(query: Readonly<Record<string, string | string[]>>): Reading {
    const known = [...Object.keys(this.#fields.shape), ...Object.keys(this.tool.aliases)];
    const unknown = Object.keys(query).filter((name) => !known.includes(name));
    const left = Object.fromEntries(Object.entries(query).filter(([name]) => known.includes(name)));
    const reading = this.read('query', left);
    refuseChange(this.tool, reading);
    return unknown.length === 0 ? reading : { ...reading, warnings: describeUnknownParameters(unknown, known) };
  }

  /** @throws Problem (invalid-request) that names every invalid field */
  read(part: InputPart, given: unknown): Reading {
    if (!isFields(given)) return readPart(part, this.#fields, given) as never;
    const renamed = this.#renamed(part, given);
    const typed = part === 'query' ? coerceQuery(this.#fields, renamed as Record<string, string | string[]>) : renamed;
    const schema = this.tool.long === true && typed['job'] !== undefined ? this.options : this.#fields;
    const read = readPart(part, schema, typed);
    const { left: input, taken } = splitOptions(read);
    return { part, options: taken, input: schema === this.#fields ? this.#refined(part, typed, input) : {} };
  }

  /**
   * Reads a body, and options from the query; those in the body take precedence. @throws Problem (invalid-request)
   */
  readBoth(query: Readonly<Record<string, string | string[]>>, body: unknown): Reading {
    const queryOptions = readPart('query', this.options, coerceQuery(this.options, query));
    const { part, options, input } = this.read(
      'body',
      isFields(body) && body['job'] === undefined && queryOptions['job'] !== undefined
        ? { ...body, job: queryOptions['job'] }
        : body,
    );
    return { part, options: { ...queryOptions, ...options }, input };
  }

  /** Rules about fields that depend on each other are on the tool's schema as a whole. */
  #refined(part: InputPart, typed: Record<string, unknown>, input: Record<string, unknown>): Record<string, unknown> {
    const { input: schema } = this.tool;
    if ((schema._zod.def.checks ?? []).length === 0) return input;
    return readPart(part, schema, splitOptions(typed).left);
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

function splitOptions(fields: Record<string, unknown>): {
  left: Record<string, unknown>;
  taken: Record<string, unknown>;
} {
  const entries = Object.entries(fields);
  return {
    left: Object.fromEntries(entries.filter(([name]) => !optionNames.has(name))),
    taken: Object.fromEntries(entries.filter(([name]) => optionNames.has(name))),
  };
}

function toOptionalFields(shape: z.ZodObject['shape']): Record<string, z.ZodType> {
  return Object.fromEntries(Object.entries(shape).map(([name, field]) => [name, (field as z.ZodType).optional()]));
}

function isFields(given: unknown): given is Record<string, unknown> {
  return typeof given === 'object' && given !== null && !Array.isArray(given);
}

/** @throws Problem (method-not-allowed) if a GET would change stored data */
function refuseChange(tool: Tool, { input }: Reading): void {
  if (tool.changes?.(input) !== true) return;
  const body = JSON.stringify(input);
  const example = body.length > 300 ? 'with the same fields' : `with the body ${body}`;
  throw new Problem(
    methodNotAllowed,
    `This call changes what is kept, which GET must not. Send POST /t/${tool.name} ${example} and Content-Type: application/json.`,
    { headers: { allow: 'POST' } },
  );
}

/** @throws Problem (foreign-write) if a page of another site makes a browser without a key change stored data */
export function refuseForeignChange(tool: Tool, { input }: Reading, headers: Headers): void {
  const read = (name: string): string | undefined => headers.get(name) ?? undefined;
  if (tool.changes?.(input) !== true || read('authorization') !== undefined) return;
  if (isCrossOrigin({ origin: read('origin'), host: read('host'), site: read('sec-fetch-site') }))
    throw new Problem(
      foreignWrite,
      `A page of another site sent this call, which changes what is kept. Send an API key, or call POST /t/${tool.name} from a program.`,
    );
}

type Text = string | readonly string[];

/**
 * Converts query text to the numbers, booleans, lists and JSON of a tool's fields. Text that cannot be converted and
 * unknown fields stay unchanged, so that validation names them.
 */
export function coerceQuery(schema: z.ZodObject, query: Readonly<Record<string, Text>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(query).map(([name, given]) => {
      const field = Object.hasOwn(schema.shape, name) ? (schema.shape[name] as z.ZodType) : undefined;
      return [name, field === undefined ? given : coerce(unwrap(field), given)];
    }),
  );
}

function coerce(field: z.ZodType, given: Text): unknown {
  if (field instanceof z.ZodArray)
    return toList(given).map((item) => parseScalar(unwrap(field.element as z.ZodType), item));
  if (typeof given !== 'string') return given;
  const decode = findDecoder(field);
  return decode === undefined ? parseScalar(field, given) : decode(given);
}

/** Splits a single parameter at commas; a repeated parameter keeps them. */
function toList(given: Text): readonly string[] {
  return typeof given === 'string'
    ? given
        .split(',')
        .map((item) => item.trim())
        .filter((item) => item !== '')
    : given;
}

const words: Readonly<Record<string, boolean>> = {
  true: true,
  1: true,
  yes: true,
  on: true,
  false: false,
  0: false,
  no: false,
  off: false,
};
const decimal = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,3})?$/i;

function parseScalar(field: z.ZodType, text: string): unknown {
  if (field instanceof z.ZodNumber) return decimal.test(text.trim()) ? Number(text) : text;
  if (field instanceof z.ZodBoolean) {
    const word = text.trim().toLowerCase();
    return Object.hasOwn(words, word) ? words[word] : text;
  }
  return text;
}

/** Removes a field's wrappers: optional, default, nullable and pipe. */
function unwrap(field: z.ZodType): z.ZodType {
  if (
    field instanceof z.ZodOptional ||
    field instanceof z.ZodDefault ||
    field instanceof z.ZodNullable ||
    field instanceof z.ZodPrefault
  )
    return unwrap(field.unwrap() as z.ZodType);
  if (field instanceof z.ZodPipe && !(field.in instanceof z.ZodTransform)) return unwrap(field.in as z.ZodType);
  return field;
}

type Decode = (text: string) => unknown;

/**
 * Decoders of fields that hold more than text, by the first half of the field's pipe. In a body their value is already
 * JSON and stays unchanged; in a query it is text that is decoded once. Otherwise a string that looks like JSON, such as
 * "12", could not be sent at all.
 */
const decoders = new WeakMap<z.ZodType, Decode>();

/** Query text of a JSON field that is not valid JSON. */
class Malformed {
  readonly message: string;

  constructor(error: unknown) {
    this.message = `is not valid JSON: ${error instanceof Error ? error.message.slice(0, 200) : 'malformed'}`;
  }
}

/** Accepts what `schema` accepts; in a query, as JSON text. The schema and the request limit the length. */
export function jsonField<Schema extends z.ZodType>(schema: Schema): z.ZodPipe<z.ZodTransform, Schema> {
  return decodedField(schema, (text) => {
    try {
      return JSON.parse(text) as unknown;
    } catch (error) {
      return new Malformed(error);
    }
  });
}

/** Accepts what `schema` accepts; in a query, as JSON text or a comma-separated list. */
export function listField<Schema extends z.ZodType>(schema: Schema): z.ZodPipe<z.ZodTransform, Schema> {
  return decodedField(schema, (text) => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return text.split(',').map((item) => item.trim());
    }
  });
}

function decodedField<Schema extends z.ZodType>(schema: Schema, decode: Decode): z.ZodPipe<z.ZodTransform, Schema> {
  const field = z.preprocess((given, context) => {
    if (!(given instanceof Malformed)) return given;
    context.addIssue({ code: 'custom', message: given.message });
    return z.NEVER;
  }, schema) as z.ZodPipe<z.ZodTransform, Schema>;
  decoders.set(field.in, decode);
  return field;
}

export function findDecoder(field: z.ZodType): Decode | undefined {
  return field instanceof z.ZodPipe ? decoders.get(field.in as z.ZodType) : undefined;
}
