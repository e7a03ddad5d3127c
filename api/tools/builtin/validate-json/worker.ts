// Validates data against a schema with Ajv. Runs in a worker process, and matches strangers' patterns with RE2: neither
// a pattern nor a schema may take the time of others.
import { Ajv, type AnySchema, type ErrorObject, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import draft6 from 'ajv/dist/refs/json-schema-draft-06.json' with { type: 'json' };
import addFormats from 'ajv-formats';
import { Problem } from '../../../../lib/problem.ts';
import { BoundedPattern } from '../../patterns/bounded-pattern.ts';
import { unprocessable } from '../../problems.ts';

/** Errors that are reported; the rest is counted. */
const maxErrors = 100;

type Compiler = Pick<Ajv, 'compile'>;
type Draft = '2020-12' | '2019-09' | 'draft-07' | 'draft-06';
const drafts: Readonly<Record<string, Draft>> = {
  'json-schema.org/draft/2020-12/schema': '2020-12',
  'json-schema.org/draft/2019-09/schema': '2019-09',
  'json-schema.org/draft-07/schema': 'draft-07',
  'json-schema.org/draft-06/schema': 'draft-06',
};

export default function validate({ schema, data }: { schema: AnySchema; data: unknown }): unknown {
  const draft = draftOf(schema);
  const check = compile(draft, schema);
  const valid = keeps(check, data);
  const errors = check.errors ?? [];
  return { valid, draft, errors: errors.slice(0, maxErrors).map(reported), error_count: errors.length };
}

function keeps(check: ValidateFunction, data: unknown): boolean {
  try {
    return check(data);
  } catch (error) {
    if (error instanceof RangeError)
      throw new Problem(unprocessable, 'The schema refers to itself endlessly, or the data is nested too deeply.');
    throw error;
  }
}

function draftOf(schema: AnySchema): Draft {
  const named: unknown = typeof schema === 'object' ? schema['$schema'] : undefined;
  if (named === undefined) return '2020-12';
  const draft = typeof named === 'string' ? drafts[named.replace(/^https?:\/\//, '').replace(/#$/, '')] : undefined;
  if (draft !== undefined) return draft;
  throw new Problem(
    unprocessable,
    `The draft in $schema is not supported. Supported: ${Object.keys(drafts)
      .map((path) => `https://${path}`)
      .join(', ')}.`,
  );
}

function compile(draft: Draft, schema: AnySchema): ValidateFunction {
  try {
    const ajv = ajvOf(draft);
    // The types of the package are those of CommonJS.
    (addFormats as unknown as (ajv: Compiler) => void)(ajv);
    return ajv.compile(schema);
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem(
      unprocessable,
      `The schema cannot be compiled: ${error instanceof Error ? error.message.slice(0, 1_000) : 'it is malformed'}`,
    );
  }
}

/** `code` names it where Ajv writes code to a file, which it does not do here. */
const regExp = Object.assign((pattern: string, flags: string) => new BoundedPattern(pattern, flags), {
  code: 'new BoundedPattern',
});

/** Unknown keywords are let through, as the drafts say; types and keywords that do not fit together too. */
function ajvOf(draft: Draft): Compiler {
  const options = { allErrors: true, strict: false, logger: false, code: { regExp } } as const;
  if (draft === '2020-12') return new Ajv2020(options);
  if (draft === '2019-09') return new Ajv2019(options);
  const ajv = new Ajv(options);
  if (draft === 'draft-06') ajv.addMetaSchema(draft6);
  return ajv;
}

function reported({ instancePath, message, keyword, schemaPath, params }: ErrorObject): unknown {
  return {
    path: instancePath,
    message: message ?? 'does not conform to the schema',
    keyword,
    schema_path: schemaPath,
    params: params as unknown,
  };
}

// The first schema takes as long as a hundred later ones, for Ajv compiles that of schemas; a caller's time is his own.
validate({ schema: { type: 'object', properties: { any: { pattern: '.' } } }, data: { any: '' } });
