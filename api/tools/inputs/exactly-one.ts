// Fields of which a caller sends exactly one: the error that names what is missing or too much, and its fix.
import type { z } from 'zod';
import type { FieldError } from '../../../lib/problem.ts';
import { invalid } from '../../http/index.ts';

type Fields = Readonly<Record<string, unknown>>;
type Names = readonly [string, ...string[]];

/** @throws Problem (invalid-request) unless exactly one of the fields is set */
export function requireOne(names: Names, fields: Fields): void {
  const error = errorOf(names, fields);
  if (error !== undefined) throw invalid([error]);
}

/** The same as a rule of a schema, for tools that run as jobs: they refuse before a job begins. */
export function ruleOfOne(names: Names): (fields: Fields, context: z.RefinementCtx) => void {
  return (fields, context) => {
    const error = errorOf(names, fields);
    if (error === undefined) return;
    const { field, message, fix } = error;
    context.addIssue({ code: 'custom', path: [field], message, params: { fix } });
  };
}

function errorOf(names: Names, fields: Fields): FieldError | undefined {
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
