// Builds the HTTP request to an app from the arguments of an agent.
import { FormData } from 'undici';
import { type FieldError, findMeantField } from '../../../lib/problem.ts';
import { createValidationProblem } from '../../http/index.ts';
import { parseAppPath, selectForwardedHeaders } from '../calls/forwarding.ts';
import type { AppRequestContent } from '../calls/app-client.ts';
import { bodyArgument, type Argument, type HttpBinding, type Operation } from './operation.ts';
import { isJson, type Json } from './schema.ts';

type Arguments = Readonly<Record<string, unknown>>;

/**
 * @throws Problem (invalid-request) that lists every wrong argument. The app itself validates the values.
 */
export function toAppRequest({ inputSchema, name }: Operation, way: HttpBinding, args: Arguments): AppRequestContent {
  assertArguments(name, Object.keys(isJson(inputSchema['properties']) ? inputSchema['properties'] : {}), way, args);
  const present = way.arguments
    .map((argument) => ({ argument, value: args[argument.name] }))
    .filter(({ value }) => value !== undefined && value !== null);
  const selectArguments = (location: Argument['in']): typeof present =>
    present.filter(({ argument }) => argument.in === location);
  const filled = way.path.replaceAll(/\{([^}]*)\}/g, (_all, field: string) => {
    const part = selectArguments('path').find(({ argument }) => argument.field === field);
    return part === undefined ? '' : encodeURIComponent(joinValues(part.value));
  });
  const query = new URLSearchParams(
    selectArguments('query').flatMap(({ argument, value }) => toPairs(argument, value)),
  );
  const path = parseAppPath(query.size === 0 ? filled : `${filled}?${query.toString()}`);
  if (path === undefined)
    throw createValidationProblem([
      {
        in: 'argument',
        field: '',
        message: 'result in a URL that is too long',
        fix: 'Send shorter values.',
      },
    ]);
  const { body, type } = encodeBody(way, args[bodyArgument], inputSchema);
  const headers = selectForwardedHeaders(
    selectArguments('header').map(({ argument, value }): [string, string] => [argument.field, joinValues(value)]),
  );
  return {
    method: way.method,
    path,
    body,
    headers: {
      accept: 'application/json, */*;q=0.5',
      ...headers,
      ...(type === undefined ? {} : { 'content-type': type }),
    },
  };
}

function assertArguments(name: string, known: readonly string[], way: HttpBinding, args: Arguments): void {
  const createFieldError = (field: string, message: string, fix: string): FieldError => ({
    in: 'argument',
    field,
    message,
    fix,
  });
  const required = [
    ...way.arguments.filter(({ required: one }) => one).map(({ name: one }) => one),
    ...(way.body?.required === true ? [bodyArgument] : []),
  ];
  const errors = [
    ...Object.keys(args)
      .filter((field) => !known.includes(field))
      .map((field) =>
        createFieldError(
          field,
          `is not an argument of ${name}`,
          known.length === 0 ? 'Remove it; this tool has no arguments.' : suggestFix(field, known),
        ),
      ),
    ...required
      .filter((field) => args[field] === undefined || args[field] === null)
      .map((field) =>
        createFieldError(field, 'is missing', `See the input schema: search_tools with {"query": "${name}"}.`),
      ),
    // These would change the path.
    ...way.arguments
      .filter(
        (argument) =>
          argument.in === 'path' &&
          args[argument.name] !== undefined &&
          ['', '.', '..'].includes(joinValues(args[argument.name])),
      )
      .map(({ name: field }) => createFieldError(field, 'must not be empty, "." or ".."', 'Send another value.')),
  ];
  if (errors.length > 0) throw createValidationProblem(errors);
}

function suggestFix(field: string, known: readonly string[]): string {
  const meant = findMeantField(field, known);
  return `${meant === undefined ? 'Remove it.' : `Send ${meant} instead.`} Known arguments: ${known.join(', ')}.`;
}

function toPairs({ field, style }: Argument, value: unknown): [string, string][] {
  if (Array.isArray(value))
    return style === 'commas'
      ? [[field, joinValues(value)]]
      : value.map((one: unknown): [string, string] => [field, formatValue(one)]);
  if (!isJson(value) || style === 'commas') return [[field, formatValue(value)]];
  return Object.entries(value).map(([key, one]): [string, string] => [
    style === 'deep' ? `${field}[${key}]` : key,
    formatValue(one),
  ]);
}

function joinValues(value: unknown): string {
  return Array.isArray(value) ? value.map((one: unknown) => formatValue(one)).join(',') : formatValue(value);
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Leaves the type out where undici sets it: multipart needs its boundary. */
function encodeBody(
  { body }: HttpBinding,
  content: unknown,
  schema: Json,
): { body?: AppRequestContent['body']; type?: string } {
  if (body === undefined || content === undefined) return {};
  if (/json$/.test(body.type)) return { body: JSON.stringify(content), type: body.type };
  if (body.type === 'application/x-www-form-urlencoded')
    return {
      body: new URLSearchParams(
        readFields(content).flatMap(([field, value]) =>
          toPairs({ name: field, field, in: 'query', required: false, style: 'explode' }, value),
        ),
      ).toString(),
      type: body.type,
    };
  if (body.type === 'multipart/form-data')
    return { body: encodeMultipart(readFields(content), listFileFields(schema)) };
  if (body.type.startsWith('text/')) return { body: formatValue(content), type: body.type };
  return { body: Buffer.from(formatValue(content), 'base64'), type: body.type };
}

function readFields(content: unknown): [string, unknown][] {
  if (isJson(content)) return Object.entries(content);
  throw createValidationProblem([
    { in: 'argument', field: bodyArgument, message: 'must be an object', fix: 'Send the form fields as an object.' },
  ]);
}

/** Lists the form fields that are files, which agents send as base64. */
function listFileFields({ properties, $defs }: Json): ReadonlySet<string> {
  const body = isJson(properties) ? properties[bodyArgument] : undefined;
  const name = isJson(body) && typeof body['$ref'] === 'string' ? body['$ref'].slice('#/$defs/'.length) : undefined;
  const form = name === undefined ? body : isJson($defs) ? $defs[name] : undefined;
  const fields = isJson(form) && isJson(form['properties']) ? Object.entries(form['properties']) : [];
  return new Set(
    fields.filter(([, field]) => isFile(field) || (isJson(field) && isFile(field['items']))).map(([field]) => field),
  );
}

function isFile(field: unknown): boolean {
  return (
    isJson(field) &&
    (field['format'] === 'binary' || field['contentMediaType'] !== undefined || field['contentEncoding'] === 'base64')
  );
}

function encodeMultipart(fields: readonly [string, unknown][], files: ReadonlySet<string>): FormData {
  const form = new FormData();
  for (const [field, value] of fields) {
    for (const one of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (files.has(field)) form.append(field, new Blob([Buffer.from(formatValue(one), 'base64')]), field);
      else form.append(field, formatValue(one));
    }
  }
  return form;
}
