// Tracks the columns of the data through each Vega-Lite transform, and checks that a named field exists.
import * as vega from 'vega';
import { z } from 'zod';
import { suggestName } from './schema-check.ts';

export type Row = Readonly<Record<string, unknown>>;

/** The data that a view draws from. */
export interface ColumnScope {
  /** Undefined if only Vega can know them. */
  readonly columns: ReadonlySet<string> | undefined;
  /** Rows of the source. */
  readonly rows: readonly Row[];
  /** Columns that still hold the values of the source. */
  readonly raw: ReadonlySet<string>;
}

const dataSource = z.looseObject({
  values: z.unknown().optional(),
  name: z.string().optional(),
  format: z.record(z.string(), z.unknown()).optional(),
  sequence: z.looseObject({ as: z.string().optional() }).optional(),
});
export type DataSource = z.output<typeof dataSource>;

export const unknownScope: ColumnScope = { columns: undefined, rows: [], raw: new Set() };

/** @returns undefined if there is no data with that name */
export function createScope(data: unknown, datasets: Readonly<Record<string, unknown>>): ColumnScope | undefined {
  const { success, data: given } = dataSource.safeParse(data);
  if (!success) return unknownScope;
  const columns = given.sequence === undefined ? undefined : new Set([given.sequence.as ?? 'data']);
  if (columns !== undefined) return { ...unknownScope, columns };
  const values = given.values ?? (given.name === undefined ? undefined : datasets[given.name]);
  if (values !== undefined) return createRowScope(readRows(values, given.format), given.format?.['parse']);
  return given.name === undefined ? unknownScope : undefined;
}

/** Columns that the format parses hold other values when they are drawn. */
function createRowScope(rows: readonly Row[] | undefined, parsed: unknown): ColumnScope {
  if (rows === undefined) return unknownScope;
  const columns = new Set(rows.flatMap((row) => Object.keys(row)));
  const raw = new Set(
    [...columns].filter((name) => typeof parsed !== 'object' || parsed === null || !(name in parsed)),
  );
  return { columns, rows, raw };
}

function readRows(values: unknown, format: Readonly<Record<string, unknown>> | undefined): readonly Row[] | undefined {
  try {
    const read: unknown =
      Array.isArray(values) && format?.['type'] === undefined
        ? values
        : vega.read(values as string, (format ?? {}) as vega.Format);
    const list: readonly unknown[] = Array.isArray(read) ? read : [read];
    return list.map((row) => (typeof row === 'object' && row !== null ? (row as Row) : { data: row }));
  } catch {
    // Vega reads the data again, and reports the error.
    return undefined;
  }
}

/** Returns the value at a path such as `a.b` or `a[0]`. */
export function readPath(row: Row, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, part) => (typeof value === 'object' && value !== null ? (value as Row)[part] : undefined),
    row,
  );
}

const nameList = z.union([z.string(), z.array(z.string())]).transform((one) => [one].flat());
const transformStep = z.looseObject({
  as: nameList.optional().catch(undefined),
  groupby: z.array(z.string()).optional().catch(undefined),
  aggregate: z
    .array(z.looseObject({ op: z.string(), field: z.string().optional(), as: z.string().optional() }))
    .optional()
    .catch(undefined),
  window: z
    .array(z.looseObject({ as: z.string().optional() }))
    .optional()
    .catch(undefined),
  joinaggregate: z
    .array(z.looseObject({ as: z.string().optional() }))
    .optional()
    .catch(undefined),
  flatten: z.array(z.string()).optional().catch(undefined),
  on: z.string().optional().catch(undefined),
  params: z.boolean().optional().catch(undefined),
  from: z
    .looseObject({ fields: z.array(z.string()).optional(), param: z.string().optional() })
    .optional()
    .catch(undefined),
});
type TransformStep = z.output<typeof transformStep>;

/** Returns the columns after a transform. */
export function applyTransform(scope: ColumnScope, given: unknown): ColumnScope {
  const step = transformStep.safeParse(given).data ?? {};
  const kind = Object.keys(step).find((name) => name in replacingTransforms);
  if (scope.columns === undefined) return scope;
  if (kind !== undefined) {
    const columns = replacingTransforms[kind]?.(step);
    return { columns: columns === undefined ? undefined : new Set(columns), rows: [], raw: new Set() };
  }
  const added = Object.entries(addingTransforms).flatMap(([name, columns]) => (name in step ? columns(step) : []));
  return {
    columns: new Set([...scope.columns, ...added]),
    rows: scope.rows,
    raw: new Set([...scope.raw].filter((name) => !added.includes(name))),
  };
}

type ListColumns = (step: TransformStep & Row) => readonly string[];

/** Transforms after which only these columns exist; undefined if the data decides. */
const replacingTransforms: Readonly<Record<string, (step: TransformStep & Row) => readonly string[] | undefined>> = {
  aggregate: ({ aggregate = [], groupby = [] }) => [
    ...groupby,
    ...aggregate.map(({ as, op, field }) => as ?? `${op}_${field ?? ''}`),
  ],
  density: ({ as, groupby = [] }) => [...groupby, ...(as ?? ['value', 'density'])],
  quantile: ({ as, groupby = [] }) => [...groupby, ...(as ?? ['prob', 'value'])],
  regression: createFittedColumns('regression'),
  loess: createFittedColumns('loess'),
  pivot: () => undefined,
};

function createFittedColumns(name: string): ListColumns {
  return (step) => [
    ...(step.groupby ?? []),
    ...(step.params === true ? ['coef', 'rSquared', 'keys'] : (step.as ?? [step.on ?? '', String(step[name])])),
  ];
}

/** Transforms that add these columns to the existing ones. */
const addingTransforms: Readonly<Record<string, ListColumns>> = {
  calculate: ({ as = [] }) => as,
  timeUnit: ({ as = [] }) => as.flatMap((name) => [name, `${name}_end`]),
  bin: ({ as = [] }) => as.flatMap((name) => [name, `${name}_end`]),
  stack: ({ as = [] }) => as.flatMap((name) => [name, `${name}_end`]),
  extent: () => [],
  window: ({ window = [] }) => window.flatMap(({ as }) => as ?? []),
  joinaggregate: ({ joinaggregate = [] }) => joinaggregate.flatMap(({ as }) => as ?? []),
  fold: ({ as = [] }) => [as[0] ?? 'key', as[1] ?? 'value'],
  flatten: ({ as, flatten = [] }) => [...flatten, ...(as ?? [])],
  lookup: ({ as = [], from }) => [...as, ...(from?.fields ?? []), ...(from?.param === undefined ? [] : [from.param])],
  impute: (step) => [String(step['impute'])],
};

/** Why a chart is rejected; the message begins with the path. */
export class FieldFault extends Error {}

/**
 * Returns the path of a field in parts; undefined if the columns are unknown. @throws FieldFault if the field is
 * missing
 */
export function requireField(field: string, path: string, scope: ColumnScope): readonly string[] | undefined {
  // A count names no column, or *.
  if (scope.columns === undefined || field === '' || field === '*') return undefined;
  const parts = vega.splitAccessPath(field);
  if (hasField(parts, scope)) return parts;
  const shown = JSON.stringify(field.slice(0, 80));
  if (scope.columns.has(field))
    throw new FieldFault(
      `${path} names the field ${shown}, which Vega-Lite reads as a path into objects. Write ${JSON.stringify(field.replaceAll(/([.[\]])/g, '\\$1'))} for the column of that name.`,
    );
  const names = [...scope.columns];
  const near = suggestName(field, names);
  throw new FieldFault(
    `${path} names the field ${shown}, which the data has not${near === '' ? '.' : near} Columns: ${names.slice(0, 20).join(', ')}${names.length > 20 ? ' and others' : ''}.`,
  );
}

function hasField(parts: readonly string[], { columns, rows, raw }: ColumnScope): boolean {
  const [first = ''] = parts;
  if (columns?.has(first) !== true) return false;
  return parts.length === 1 || !raw.has(first) || rows.some((row) => readPath(row, parts) !== undefined);
}

/** Checks each `datum.name` in an expression. Vega reports expressions that cannot be parsed. @throws FieldFault */
export function checkExpression(text: unknown, path: string, scope: ColumnScope): void {
  if (typeof text !== 'string' || scope.columns === undefined) return;
  let tree: unknown;
  try {
    tree = vega.parseExpression(text);
  } catch {
    return;
  }
  for (const name of listDatumNames(tree)) requireField(name.replaceAll(/([.[\]\\])/g, '\\$1'), path, scope);
}

function listDatumNames(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(listDatumNames);
  if (!isRow(node) || isPresenceCheck(node)) return [];
  const name = readDatumMember(node);
  const inner = Object.values(node).filter((each) => typeof each === 'object');
  return [...(name === undefined ? [] : [name]), ...inner.flatMap(listDatumNames)];
}

function isPresenceCheck({ type, callee }: Row): boolean {
  return type === 'CallExpression' && isRow(callee) && ['isValid', 'isDefined'].includes(String(callee['name']));
}

function readDatumMember({ type, object, property, computed }: Row): string | undefined {
  if (type !== 'MemberExpression' || !isRow(object) || object['name'] !== 'datum' || !isRow(property)) return undefined;
  const name = computed === true ? property['value'] : property['name'];
  return typeof name === 'string' ? name : undefined;
}

export function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
