// The series of a plain chart once they are read, and its refusals.
import type { FieldError } from '../../../../lib/problem.ts';
import { createValidationProblem } from '../../../http/index.ts';

/** A number, or a point of a scatter. */
export type Value = number | null | { readonly x: number | null; readonly y: number | null };

export interface Series {
  readonly name: string | undefined;
  readonly values: readonly Value[];
  /** Where it stands, for what is wrong with it. */
  readonly field: string;
}

export interface PlainData {
  readonly series: readonly Series[];
  readonly labels: readonly string[] | undefined;
  readonly titles: { readonly x: string | undefined; readonly y: string | undefined };
}

export function refusal(field: string, message: string, fix: string): ReturnType<typeof createValidationProblem> {
  return createValidationProblem([{ in: 'query', field, message, fix } satisfies FieldError]);
}
