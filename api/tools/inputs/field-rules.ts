// Rules of input that a JSON Schema cannot state. A tool has them on its schema, so that wrong input is refused before its
// backing service is missed, a job begins or a price is reserved.
import type { z } from 'zod';
import { type FieldError, Problem } from '../../../lib/problem.ts';
import { createValidationProblem, invalidRequest } from '../../http/index.ts';

type Fields = Readonly<Record<string, unknown>>;
type Names = readonly [string, ...string[]];
type Rule<Value> = (value: Value, context: z.RefinementCtx) => void;

/** @throws Problem (invalid-request) unless exactly one of the fields is set */
export function requireOne(names: Names, fields: Fields): void {
  const error = findError(names, fields);
  if (error !== undefined) throw createValidationProblem([error]);
}

/** A schema rule: exactly one of the fields is set. */
export function requireOneRule(names: Names): Rule<Fields> {
  return (fields, context) => {
    const error = findError(names, fields);
    if (error !== undefined) addError(context, error, [error.field]);
  };
}

/** A schema rule of one field: its value can be read by `read`, which throws invalid-request if not. */
export function readableRule<Value>(read: (value: Value) => unknown): Rule<Value> {
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
        ? `is missing, and so ${others.length === 1 ? 'is' : 'are'} ${listed(others)}`
        : `cannot be combined with ${first}`,
    fix: `Send exactly one of ${listed(names)}.`,
  };
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1) ?? ''}`;
}
