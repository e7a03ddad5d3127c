// Finds fields that a Vega-Lite specification names but its data lacks: Vega would draw as if each row were empty. Also
// checks that the values of a field fit its encoding: numbers, or dates.
import {
  applyTransform,
  unknownScope,
  createScope,
  type Row,
  type ColumnScope,
  readPath,
  checkExpression,
  FieldFault,
  isRow,
  requireField,
} from './columns.ts';

interface FieldWalk {
  readonly datasets: Readonly<Record<string, unknown>>;
  readonly repeats: Readonly<Record<string, readonly string[]>>;
  /** Channel definitions of the enclosing views. */
  readonly outer: Row;
  readonly warnings: string[];
}

/** @returns the fault, if any; suspicious values only add warnings */
export function findFieldFault(spec: Row, warnings: string[]): string | undefined {
  const datasets = isRow(spec['datasets']) ? spec['datasets'] : {};
  try {
    checkViewFields(spec, 'spec', unknownScope, { datasets, repeats: {}, outer: {}, warnings });
  } catch (error) {
    if (error instanceof FieldFault) return error.message;
    throw error;
  }
  return undefined;
}

function checkViewFields(spec: Row, path: string, outer: ColumnScope, walk: FieldWalk): void {
  let scope = spec['data'] === undefined ? outer : readData(spec['data'], path, walk);
  for (const [index, step] of toList(spec['transform']).entries()) {
    const place = `${path}.transform[${index}]`;
    if (isRow(step)) checkReferences(step, place, scope);
    scope = applyTransform(scope, step);
  }
  const encoding = isRow(spec['encoding']) ? spec['encoding'] : {};
  const inner = {
    ...walk,
    repeats: { ...walk.repeats, ...readRepeats(spec['repeat']) },
    outer: { ...walk.outer, ...encoding },
  };
  const { facet } = spec;
  if (isRow(facet)) checkEncodings('field' in facet ? { facet } : facet, `${path}.facet`, scope, inner);
  checkEncodings(encoding, `${path}.encoding`, scope, { ...inner, outer: walk.outer });
  for (const [place, child] of listViews(spec)) checkViewFields(child, `${path}.${place}`, scope, inner);
}

function listViews(spec: Row): [string, Row][] {
  const lists = ['layer', 'hconcat', 'vconcat', 'concat'].flatMap((name) =>
    toList(spec[name]).map((child, index): [string, unknown] => [`${name}[${index}]`, child]),
  );
  return [...lists, ['spec', spec['spec']] as const].flatMap(([place, child]): [string, Row][] =>
    isRow(child) ? [[place, child]] : [],
  );
}

function readData(data: unknown, path: string, { datasets }: FieldWalk): ColumnScope {
  const scope = data === null ? unknownScope : createScope(data, datasets);
  if (scope === undefined)
    throw new FieldFault(
      `${path}.data names ${JSON.stringify((data as Row)['name'])}, which is not in spec.datasets. Put the rows into data.values.`,
    );
  if (scope.columns !== undefined && scope.rows.length === 0 && !isRow((data as Row)['sequence']))
    throw new FieldFault(
      `${path}.data has no rows, so nothing would be drawn. Put the rows into data.values, as a list of objects.`,
    );
  return scope;
}

function readRepeats(repeat: unknown): Record<string, string[]> {
  const strings = (value: unknown): string[] => toList(value).filter((each) => typeof each === 'string');
  if (Array.isArray(repeat)) return { repeat: strings(repeat) };
  return isRow(repeat) ? Object.fromEntries(Object.entries(repeat).map(([name, value]) => [name, strings(value)])) : {};
}

function checkEncodings(encoding: Row, path: string, scope: ColumnScope, walk: FieldWalk): void {
  const isMeasured = Object.values({ ...walk.outer, ...encoding }).some(
    (each) =>
      isRow(each) &&
      (each['type'] === 'quantitative' || typeof each['aggregate'] === 'string' || each['bin'] !== undefined),
  );
  for (const [channel, given] of Object.entries(encoding))
    for (const [index, own] of [given].flat().entries())
      if (isRow(own)) {
        const outer = walk.outer[channel];
        const definition = { ...(isRow(outer) ? outer : {}), ...own, ...(isMeasured ? { isBesideMeasure: true } : {}) };
        checkChannel(definition, `${path}.${channel}${Array.isArray(given) ? `[${index}]` : ''}`, channel, scope, walk);
      }
}

function checkChannel(definition: Row, path: string, channel: string, scope: ColumnScope, walk: FieldWalk): void {
  for (const field of listFieldNames(definition['field'], walk)) {
    const parts = requireField(field, path, scope);
    if (parts === undefined) continue;
    const { fault, warning } = checkValues(definition, channel, { field, parts, path }, scope);
    if (fault !== undefined) throw new FieldFault(fault);
    if (warning !== undefined && !walk.warnings.includes(warning)) walk.warnings.push(warning);
  }
  const { aggregate, sort } = definition;
  const inside = [aggregate, sort].filter(isRow).flatMap((inner) => [inner['field'], inner['argmax'], inner['argmin']]);
  for (const field of inside.flatMap((each) => listFieldNames(each, walk))) requireField(field, path, scope);
  for (const condition of [definition['condition']].flat().filter(isRow)) {
    checkReferences(isRow(condition['test']) ? { filter: condition['test'] } : {}, path, scope);
    if (condition['field'] !== undefined) checkChannel(condition, `${path}.condition`, channel, scope, walk);
  }
}

function listFieldNames(field: unknown, { repeats }: FieldWalk): readonly string[] {
  if (typeof field === 'string') return [field];
  if (!isRow(field) || typeof field['repeat'] !== 'string') return [];
  return repeats[field['repeat']] ?? [];
}

/** Checks the field names at any depth of a transform. */
function checkReferences(step: Row, path: string, scope: ColumnScope): void {
  for (const [name, value] of Object.entries(step)) {
    if (name === 'as' || name === 'from' || name === 'frame') continue;
    if (name === 'calculate' || name === 'filter') checkExpression(value, path, scope);
    const parts = [value].flat();
    if (referenceProperties.has(name))
      parts.filter((part) => typeof part === 'string').forEach((field) => requireField(field, path, scope));
    parts.filter(isRow).forEach((inner) => {
      checkReferences(inner, path, scope);
    });
  }
}

const referenceProperties = new Set(
  'field groupby fold flatten lookup pivot impute key density quantile regression loess stack on'.split(' '),
);

function toList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

interface NamedField {
  readonly field: string;
  readonly parts: readonly string[];
  readonly path: string;
}

interface ValueNote {
  readonly fault?: string;
  readonly warning?: string;
}

/** Aggregates that accept values of every type. */
const countingAggregates = new Set(['count', 'distinct', 'valid', 'missing', 'values']);

function checkValues(
  definition: Readonly<Record<string, unknown>>,
  channel: string,
  named: NamedField,
  { rows, raw }: ColumnScope,
): ValueNote {
  const kind = raw.has(named.parts[0] ?? '') ? detectKind(definition) : 'any';
  if (kind === 'any') return {};
  const values = rows
    .map((row) => readPath(row, named.parts))
    .filter((value) => value !== null && value !== undefined && value !== '');
  if (kind === 'dates') return checkDates(values, named, definition['timeUnit'] === undefined);
  return kind === 'numbers' ? checkNumbers(values, named) : noteUntyped(values, channel, named);
}

/** Detects which values an encoding expects. */
function detectKind(definition: Readonly<Record<string, unknown>>): 'numbers' | 'dates' | 'untyped' | 'any' {
  const { type, aggregate, timeUnit, bin } = definition;
  if (countingAggregates.has(String(aggregate))) return 'any';
  if (type === 'temporal' || timeUnit !== undefined) return 'dates';
  if (type === 'quantitative' || bin === true) return 'numbers';
  // min and max also apply to names and dates.
  if (typeof aggregate === 'string') return ['min', 'max'].includes(aggregate) ? 'any' : 'numbers';
  return isUntyped(definition) ? 'untyped' : 'any';
}

const isUntyped = ({ type, bin, isBesideMeasure }: Readonly<Record<string, unknown>>): boolean =>
  type === undefined && bin === undefined && isBesideMeasure !== true;

function checkNumbers(values: readonly unknown[], { field, path }: NamedField): ValueNote {
  const wrong = values.filter((value) => !isNumber(value));
  const shown = JSON.stringify(field);
  if (values.length === 0)
    return {
      fault: `${path}: the field ${shown} has no value in any row, so nothing would be drawn. Put numbers there.`,
    };
  if (wrong.length === values.length)
    return {
      fault: `${path}: no value of ${shown} is a number, such as ${formatExample(wrong)}, so nothing would be drawn. Write numbers (1234.5, without units or commas), or set type to nominal.`,
    };
  return wrong.length === 0
    ? {}
    : {
        warning: `${wrong.length} of ${values.length} values of ${shown} are not numbers and are not drawn, such as ${formatExample(wrong)}.`,
      };
}

function checkDates(values: readonly unknown[], { field, path }: NamedField, isWhole: boolean): ValueNote {
  const shown = JSON.stringify(field);
  const wrong = values.filter((value) => Number.isNaN(toTime(value)));
  if (values.length === 0 || wrong.length === values.length)
    return {
      fault: `${path}: no value of ${shown} is a date${values.length === 0 ? '' : `, such as ${formatExample(wrong)}`}, so nothing would be drawn. Write dates as 2026-01-31, give data.format.parse, or set type to ordinal.`,
    };
  const years = values.every(
    (value) => typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 10_000,
  );
  if (years && isWhole)
    return {
      fault: `${path}: the numbers of ${shown}, such as ${formatExample(values)}, would be read as milliseconds after 1970-01-01. Write dates as "${String(values[0])}-01-01", or set type to ordinal.`,
    };
  return wrong.length === 0
    ? {}
    : {
        warning: `${wrong.length} of ${values.length} values of ${shown} are not dates and are not drawn, such as ${formatExample(wrong)}.`,
      };
}

/** Vega-Lite treats a field without a type as names. */
function noteUntyped(values: readonly unknown[], channel: string, { field, path }: NamedField): ValueNote {
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

function toTime(value: unknown): number {
  return typeof value === 'number' ? value : value instanceof Date ? value.getTime() : Date.parse(String(value));
}

const formatExample = (values: readonly unknown[]): string => JSON.stringify(values[0] ?? null).slice(0, 60);
