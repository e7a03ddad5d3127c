// Says one validation rule once: zod checks it in our code, CEL in the API server, with the same message.
import type { z } from 'zod';

/** A rule about one field. `message` says what to write instead; the API server shows it beside the refused value. */
export interface Rule<Value> {
  /** CEL over `self`, true when the value is good. Must not fail to evaluate on a value that the schema admits. */
  readonly cel: string;
  /** The same in TypeScript. */
  readonly holds: (value: Value) => boolean;
  readonly message: string;
}

/** One entry of `x-kubernetes-validations`. */
export interface Validation {
  readonly rule: string;
  readonly message: string;
}

const validationsKey = 'x-kubernetes-validations';

function validationsOf(schema: z.ZodType): readonly Validation[] {
  const found = schema.meta()?.[validationsKey];
  return Array.isArray(found) ? (found as Validation[]) : [];
}

function addValidations<Schema extends z.ZodType>(schema: Schema, added: readonly Validation[]): Schema {
  return schema.meta({ [validationsKey]: [...validationsOf(schema), ...added] });
}

/** Adds rules to a schema, for both zod and the API server. */
export function withRules<Schema extends z.ZodType>(
  schema: Schema,
  ...rules: readonly Rule<z.output<Schema>>[]
): Schema {
  const refined = rules.reduce<Schema>(
    (current, { holds, message }) => current.refine(holds, { error: message }),
    schema,
  );
  return addValidations(
    refined,
    rules.map(({ cel, message }) => ({ rule: cel, message })),
  );
}

/** Refuses a change of the field once it is set; only the API server can know, so zod does not check it. */
export function immutable<Schema extends z.ZodType>(schema: Schema, message: string): Schema {
  return addValidations(schema, [{ rule: 'self == oldSelf', message }]);
}

/** A list whose items are distinguished by one field: merged by it in server-side apply, and never twice the same. */
export function listBy<Item extends z.ZodType<Record<string, unknown>>>(
  items: z.ZodArray<Item>,
  key: string,
): z.ZodArray<Item> {
  const unique = items.refine((list) => new Set(list.map((item) => item[key])).size === list.length, {
    error: `two items have the same ${key}; keep one of them`,
  });
  return unique.meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] });
}

/** Writes a text as a CEL string literal. */
export function celString(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

/**
 * The text matches `pattern`, written in what JavaScript and RE2 read alike: no lookaround, back reference, `.`, `\s`
 * or `\w`.
 */
export function matches(pattern: string, message: string): Rule<string> {
  const expression = new RegExp(pattern, 'u');
  return { cel: `self.matches(${celString(pattern)})`, holds: (text) => expression.test(text), message };
}
