// Whether the values of a field can be what its encoding takes them for: numbers, or dates.
import { valueAt, type Scope } from './columns.ts';

interface Named {
  readonly field: string;
  readonly parts: readonly string[];
  readonly path: string;
}

export interface ValueNote {
  readonly fault?: string;
  readonly warning?: string;
}

/** Aggregates that take values of every kind. */
const counting = new Set(['count', 'distinct', 'valid', 'missing', 'values']);

export function checkValues(
  definition: Readonly<Record<string, unknown>>,
  channel: string,
  named: Named,
  { rows, raw }: Scope,
): ValueNote {
  const kind = raw.has(named.parts[0] ?? '') ? kindOf(definition) : 'any';
  if (kind === 'any') return {};
  const values = rows
    .map((row) => valueAt(row, named.parts))
    .filter((value) => value !== null && value !== undefined && value !== '');
  if (kind === 'dates') return dates(values, named, definition['timeUnit'] === undefined);
  return kind === 'numbers' ? numbers(values, named) : untyped(values, channel, named);
}

/** What an encoding takes its values for. */
function kindOf(definition: Readonly<Record<string, unknown>>): 'numbers' | 'dates' | 'untyped' | 'any' {
  const { type, aggregate, timeUnit, bin } = definition;
  if (counting.has(String(aggregate))) return 'any';
  if (type === 'temporal' || timeUnit !== undefined) return 'dates';
  if (type === 'quantitative' || bin === true) return 'numbers';
  // The earliest and the latest of names, dates or numbers.
  if (typeof aggregate === 'string') return ['min', 'max'].includes(aggregate) ? 'any' : 'numbers';
  return isUntyped(definition) ? 'untyped' : 'any';
}

const isUntyped = ({ type, bin, isBesideMeasure }: Readonly<Record<string, unknown>>): boolean =>
  type === undefined && bin === undefined && isBesideMeasure !== true;

function numbers(values: readonly unknown[], { field, path }: Named): ValueNote {
  const wrong = values.filter((value) => !isNumber(value));
  const shown = JSON.stringify(field);
  if (values.length === 0)
    return {
      fault: `${path}: the field ${shown} has no value in any row, so nothing would be drawn. Put numbers there.`,
    };
  if (wrong.length === values.length)
    return {
      fault: `${path}: no value of ${shown} is a number, such as ${example(wrong)}, so nothing would be drawn. Write numbers (1234.5, without units or commas), or set type to nominal.`,
    };
  return wrong.length === 0
    ? {}
    : {
        warning: `${wrong.length} of ${values.length} values of ${shown} are not numbers and are not drawn, such as ${example(wrong)}.`,
      };
}

function dates(values: readonly unknown[], { field, path }: Named, isWhole: boolean): ValueNote {
  const shown = JSON.stringify(field);
  const wrong = values.filter((value) => Number.isNaN(dateOf(value)));
  if (values.length === 0 || wrong.length === values.length)
    return {
      fault: `${path}: no value of ${shown} is a date${values.length === 0 ? '' : `, such as ${example(wrong)}`}, so nothing would be drawn. Write dates as 2026-01-31, give data.format.parse, or set type to ordinal.`,
    };
  const years = values.every(
    (value) => typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 10_000,
  );
  if (years && isWhole)
    return {
      fault: `${path}: the numbers of ${shown}, such as ${example(values)}, would be read as milliseconds after 1970-01-01. Write dates as "${String(values[0])}-01-01", or set type to ordinal.`,
    };
  return wrong.length === 0
    ? {}
    : {
        warning: `${wrong.length} of ${values.length} values of ${shown} are not dates and are not drawn, such as ${example(wrong)}.`,
      };
}

/** Vega-Lite takes a field without a type for a set of names. */
function untyped(values: readonly unknown[], channel: string, { field, path }: Named): ValueNote {
  const isMeasured =
    ['x', 'y', 'theta', 'size'].includes(channel) &&
    values.length > 0 &&
    values.every((value) => typeof value === 'number');
  return isMeasured
    ? {
        warning: `${path} has no type, so the numbers of ${JSON.stringify(field)} are drawn as names. Set type to quantitative to draw them to scale.`,
      }
    : {};
}

function isNumber(value: unknown): boolean {
  if (typeof value === 'string') return value.trim() !== '' && Number.isFinite(Number(value));
  return typeof value === 'boolean' || value instanceof Date || (typeof value === 'number' && Number.isFinite(value));
}

function dateOf(value: unknown): number {
  return typeof value === 'number' ? value : value instanceof Date ? value.getTime() : Date.parse(String(value));
}

const example = (values: readonly unknown[]): string => JSON.stringify(values[0] ?? null).slice(0, 60);
