// Input fields that tools share: a URL, a picture format, and a file (by URL, as data or from an earlier call), with the
// rules that a JSON Schema cannot state. Every tool that reads a file has all three file fields and takes exactly one.
import { z } from 'zod';
import { type FieldError, Problem } from '../../../lib/problem.ts';
import { createValidationProblem, invalidRequest } from '../../http/index.ts';

/** Size of a file that fits into the largest request body, and its length in base64. */
export const maxDataMegabytes = 3;
const maxDataCharacters = Math.ceil((maxDataMegabytes * 1_048_576) / 3) * 4;

export const fileFieldNames = ['url', 'data', 'artifact'] as const;

/** An id, alone or at the end of a URL or path. Whether it belongs to this installation is checked when the file is read. */
const artifactPattern = /(?:^|t\/artifacts\/)[\w-]{22}(?:[?#]\S*)?\s*$/;

export interface GivenFile {
  readonly url?: string | undefined;
  readonly data?: string | undefined;
  readonly artifact?: string | undefined;
}

interface FileFields {
  url: z.ZodOptional<z.ZodString>;
  data: z.ZodOptional<z.ZodString>;
  artifact: z.ZodOptional<z.ZodString>;
}

/**
 * The three file fields. `what` names the file, such as `the PDF`. The description of the tool says that it takes exactly
 * one of them: lists of tools repeat these descriptions for every tool.
 */
export function fileFields(what: string): FileFields {
  return {
    url: urlField(`URL of ${what}`).optional(),
    data: z
      .string()
      .min(1)
      .max(maxDataCharacters)
      .superRefine(createReadableRule(parseData))
      .optional()
      .describe(`Bytes of ${what} in base64, at most ${maxDataMegabytes} MB, or a data: URL.`),
    artifact: z
      .string()
      .min(1)
      .max(500)
      .regex(artifactPattern, 'is neither the id nor the URL of a file that this installation created')
      .optional()
      .describe('File of an earlier call: artifact.url, or the id at its end.'),
  };
}

/** Aliases of the file fields. */
export const fileAliases = {
  base64: 'data',
  artifact_url: 'artifact',
  artifact_id: 'artifact',
} as const;

/**
 * The enforced and published pattern, which also marks URL fields for the documentation and the SSRF test. The format `uri`
 * would reject URLs as people paste them and queries decode them: with spaces and non-ASCII letters.
 */
export const urlPattern = /^\s*[Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/]/;
const message = 'must be a complete http or https URL, such as https://example.org/page';

/** A field with a URL for the guarded fetcher. `what` describes its target. */
export function urlField(what: string): z.ZodString {
  return z
    .string()
    .min(1)
    .max(4_096)
    .regex(urlPattern, { error: message, abort: true })
    .refine((url) => URL.canParse(url), message)
    .describe(`${what}. A public http or https URL.`);
}

type WithJpg<Format extends string> = Format | 'jpg';

/** A field for the picture format, which also accepts jpg as jpeg. */
export function pictureFormat<const Formats extends readonly [string, ...string[]]>(
  formats: Formats,
): z.ZodType<Formats[number], WithJpg<Formats[number]>> {
  const names: readonly WithJpg<Formats[number]>[] = [...formats, 'jpg'];
  return z.enum(names).transform((name): Formats[number] => (name === 'jpg' ? 'jpeg' : name));
}

type Fields = Readonly<Record<string, unknown>>;
type Names = readonly [string, ...string[]];
type Rule<Value> = (value: Value, context: z.RefinementCtx) => void;

/** @throws Problem (invalid-request) unless exactly one of the fields is set */
export function requireOne(names: Names, fields: Fields): void {
  const error = findError(names, fields);
  if (error !== undefined) throw createValidationProblem([error]);
}

/**
 * A schema rule: exactly one of the fields is set. Rules are part of the schema so that invalid input is rejected before a
 * missing service is reported, a job starts or a price is reserved.
 */
export function requireOneRule(names: Names): Rule<Fields> {
  return (fields, context) => {
    const error = findError(names, fields);
    if (error !== undefined) addError(context, error, [error.field]);
  };
}

/** A schema rule for one field: `read` accepts its value. `read` throws invalid-request otherwise. */
export function createReadableRule<Value>(read: (value: Value) => unknown): Rule<Value> {
  return (value, context) => {
    try {
      read(value);
    } catch (error) {
      if (!(error instanceof Problem) || error.type !== invalidRequest) throw error;
      for (const each of error.errors) addError(context, each, []);
    }
  };
}

function addError(context: z.RefinementCtx, { message, fix }: FieldError, path: string[]): void {
  context.addIssue({ code: 'custom', path, message, params: { fix } });
}

function findError(names: Names, fields: Fields): FieldError | undefined {
  const [first, second] = names.filter((name) => fields[name] !== undefined);
  if (first !== undefined && second === undefined) return undefined;
  const [wanted, ...others] = names;
  return {
    in: 'query',
    field: second ?? wanted,
    message:
      first === undefined
        ? `is missing, and so ${others.length === 1 ? 'is' : 'are'} ${formatList(others)}`
        : `cannot be combined with ${first}`,
    fix: `Send exactly one of ${formatList(names)}.`,
  };
}

function formatList(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1) ?? ''}`;
}

export interface DataBytes {
  readonly bytes: Uint8Array;
  /** From a data: URL, with parameters; empty for plain base64. */
  readonly contentType: string;
}

/** Decodes base64 in either alphabet, or a data: URL (RFC 2397). @throws Problem (invalid-request) that names the field */
export function parseData(data: string): DataBytes {
  if (!/^data:/i.test(data)) return { bytes: decodeBase64(data), contentType: '' };
  const comma = data.indexOf(',');
  if (comma < 0)
    throw createDataError('is a data: URL without a comma', 'Send data:<media type>;base64,<bytes in base64>.');
  const [type = '', ...parameters] = data
    .slice('data:'.length, comma)
    .split(';')
    .map((part) => part.trim());
  const content = data.slice(comma + 1);
  const isBase64 = parameters.at(-1)?.toLowerCase() === 'base64';
  const contentType = [type, ...(isBase64 ? parameters.slice(0, -1) : parameters)].filter(Boolean).join('; ');
  // In RFC 2397, text/plain is the default.
  return {
    bytes: isBase64 ? decodeBase64(content) : decodePercent(content),
    contentType: contentType === '' ? 'text/plain' : contentType,
  };
}

function decodeBase64(text: string): Uint8Array {
  // Query parsing turns + into a space; base64 may contain line breaks anywhere.
  const characters = text
    .replaceAll(/[\r\n\t]+/g, '')
    .replaceAll(' ', '+')
    .replaceAll('-', '+')
    .replaceAll('_', '/');
  const bare = characters.replace(/={1,2}$/, '');
  if (bare === '' || /[^A-Za-z0-9+/]/.test(bare) || bare.length % 4 === 1)
    throw createDataError(
      bare === '' ? 'is empty' : 'is not base64',
      'Send the bytes of the file in base64, or as data:<media type>;base64,<bytes>.',
    );
  return Buffer.from(bare, 'base64');
}

function decodePercent(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'utf8');
  const decoded = Buffer.alloc(bytes.length);
  let size = 0;
  for (let at = 0; at < bytes.length; at++) {
    const code = /^%[0-9a-f]{2}$/i.exec(bytes.toString('latin1', at, at + 3))?.[0];
    decoded[size++] = code === undefined ? (bytes[at] ?? 0) : Number.parseInt(code.slice(1), 16);
    if (code !== undefined) at += 2;
  }
  if (size === 0) throw createDataError('is empty', 'Send the bytes of the file in base64.');
  return decoded.subarray(0, size);
}

function createDataError(message: string, fix: string): ReturnType<typeof createValidationProblem> {
  return createValidationProblem([{ in: 'query', field: 'data', message, fix } satisfies FieldError]);
}
