// Validates data against a schema with Ajv. Runs in a worker process and matches patterns with RE2, so that neither a
// pattern nor a schema can delay other callers.
import { Ajv, type AnySchema, type ErrorObject, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import draft6 from 'ajv/dist/refs/json-schema-draft-06.json' with { type: 'json' };
import addFormats from 'ajv-formats';
import { Problem } from '../../../../lib/problem.ts';
import { BoundedPattern } from '../../patterns/bounded-pattern.ts';
import { unprocessable } from '../../problems.ts';

/** Errors reported; further ones are only counted. */
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
  const draft = detectDraft(schema);
  const check = compileSchema(draft, schema);
  const valid = checkData(check, data);
  const errors = check.errors ?? [];
  return { valid, draft, errors: errors.slice(0, maxErrors).map(toReport), error_count: errors.length };
}

function checkData(check: ValidateFunction, data: unknown): boolean {
  try {
    return check(data);
  } catch (error) {
    if (error instanceof RangeError)
      throw new Problem(unprocessable, 'The schema refers to itself endlessly, or the data is nested too deeply.');
    throw error;
  }
}

function detectDraft(schema: AnySchema): Draft {
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

function compileSchema(draft: Draft, schema: AnySchema): ValidateFunction {
  try {
    const ajv = createAjv(draft);
    // The package has type declarations for CommonJS only.
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

/** Ajv requires `code` to generate standalone code, which is not used here. */
const createPattern = Object.assign((pattern: string, flags: string) => new BoundedPattern(pattern, flags), {
  code: 'new BoundedPattern',
});

/** Ignores unknown keywords, as the drafts require, and mismatched types and keywords. */
function createAjv(draft: Draft): Compiler {
  const options = { allErrors: true, strict: false, logger: false, code: { regExp: createPattern } } as const;
  if (draft === '2020-12') return new Ajv2020(options);
  if (draft === '2019-09') return new Ajv2019(options);
  const ajv = new Ajv(options);
  if (draft === 'draft-06') ajv.addMetaSchema(draft6);
  return ajv;
}

function toReport({ instancePath, message, keyword, schemaPath, params }: ErrorObject): unknown {
  return {
    path: instancePath,
    message: message ?? 'does not conform to the schema',
    keyword,
    schema_path: schemaPath,
    params: params as unknown,
  };
}

// Warm up: the first schema takes as long as a hundred later ones, since Ajv compiles its meta-schema. No call should
// pay for that.
validate({ schema: { type: 'object', properties: { any: { pattern: '.' } } }, data: { any: '' } });
