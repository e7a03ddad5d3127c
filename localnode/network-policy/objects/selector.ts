// Label selectors: their shape on the wire and whether a set of labels matches.
import { z } from 'zod';

const requirement = z.strictObject({
  key: z.string(),
  operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
  values: z.array(z.string()).nullish(),
});

/** A `LabelSelector` as the API serves it. Unknown fields are refused: to ignore one could widen what is selected. */
export const selectorSchema = z.strictObject({
  matchLabels: z.record(z.string(), z.string()).nullish(),
  matchExpressions: z.array(requirement).nullish(),
});

/** A label selector; empty matches everything. */
export type Selector = z.output<typeof selectorSchema>;

/** Labels of an object. */
export type Labels = Readonly<Record<string, string>>;

type Requirement = z.output<typeof requirement>;

const meets: Record<Requirement['operator'], (value: string | undefined, values: readonly string[]) => boolean> = {
  In: (value, values) => value !== undefined && values.includes(value),
  NotIn: (value, values) => value === undefined || !values.includes(value),
  Exists: (value) => value !== undefined,
  DoesNotExist: (value) => value === undefined,
};

/** True when every part of the selector holds for the labels. */
export function matches(selector: Selector, labels: Labels): boolean {
  const own = (key: string): string | undefined => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  return (
    Object.entries(selector.matchLabels ?? {}).every(([key, value]) => own(key) === value) &&
    (selector.matchExpressions ?? []).every(({ key, operator, values }) => meets[operator](own(key), values ?? []))
  );
}
