// The columns that data has, and that each transform of Vega-Lite leaves.
import * as vega from 'vega';
import { z } from 'zod';

export type Row = Readonly<Record<string, unknown>>;

/** What a view draws from. */
export interface Scope {
  /** Undefined where only Vega can know them. */
  readonly columns: ReadonlySet<string> | undefined;
  /** Rows of the source. */
  readonly rows: readonly Row[];
  /** Columns that still are as the source has them. */
  readonly raw: ReadonlySet<string>;
}

const source = z.looseObject({
  values: z.unknown().optional(),
  name: z.string().optional(),
  format: z.record(z.string(), z.unknown()).optional(),
  sequence: z.looseObject({ as: z.string().optional() }).optional(),
});
export type Source = z.output<typeof source>;

export const anything: Scope = { columns: undefined, rows: [], raw: new Set() };

/** @returns undefined where the data of that name is nowhere */
export function scopeOf(data: unknown, datasets: Readonly<Record<string, unknown>>): Scope | undefined {
  const { success, data: given } = source.safeParse(data);
  if (!success) return anything;
  const columns = given.sequence === undefined ? undefined : new Set([given.sequence.as ?? 'data']);
  if (columns !== undefined) return { ...anything, columns };
  const values = given.values ?? (given.name === undefined ? undefined : datasets[given.name]);
  if (values !== undefined) return ofRows(rowsOf(values, given.format), given.format?.['parse']);
  return given.name === undefined ? anything : undefined;
}

/** Columns that the format parses are other values by the time they are drawn. */
function ofRows(rows: readonly Row[] | undefined, parsed: unknown): Scope {
  if (rows === undefined) return anything;
  const columns = new Set(rows.flatMap((row) => Object.keys(row)));
  const raw = new Set(
    [...columns].filter((name) => typeof parsed !== 'object' || parsed === null || !(name in parsed)),
  );
  return { columns, rows, raw };
}

function rowsOf(values: unknown, format: Readonly<Record<string, unknown>> | undefined): readonly Row[] | undefined {
  try {
    const read: unknown =
      Array.isArray(values) && format?.['type'] === undefined
        ? values
        : vega.read(values as string, (format ?? {}) as vega.Format);
    const list: readonly unknown[] = Array.isArray(read) ? read : [read];
    return list.map((row) => (typeof row === 'object' && row !== null ? (row as Row) : { data: row }));
  } catch {
    // Vega reads it again, and reports what is wrong.
    return undefined;
  }
}

/** The value at a path such as `a.b` or `a[0]`. */
export function valueAt(row: Row, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, part) => (typeof value === 'object' && value !== null ? (value as Row)[part] : undefined),
    row,
  );
}

const names = z.union([z.string(), z.array(z.string())]).transform((one) => [one].flat());
const transform = z.looseObject({
  as: names.optional().catch(undefined),
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
type Transform = z.output<typeof transform>;

/** What a transform leaves of the columns before it. */
export function after(scope: Scope, given: unknown): Scope {
  const step = transform.safeParse(given).data ?? {};
  const kind = Object.keys(step).find((name) => name in replacing);
  if (scope.columns === undefined) return scope;
  if (kind !== undefined) {
    const columns = replacing[kind]?.(step);
    return { columns: columns === undefined ? undefined : new Set(columns), rows: [], raw: new Set() };
  }
  const added = Object.entries(adding).flatMap(([name, columns]) => (name in step ? columns(step) : []));
  return {
    columns: new Set([...scope.columns, ...added]),
    rows: scope.rows,
    raw: new Set([...scope.raw].filter((name) => !added.includes(name))),
  };
}

type Columns = (step: Transform & Row) => readonly string[];

/** Transforms after which only these columns are there; undefined where the data decides. */
const replacing: Readonly<Record<string, (step: Transform & Row) => readonly string[] | undefined>> = {
  aggregate: ({ aggregate = [], groupby = [] }) => [
    ...groupby,
    ...aggregate.map(({ as, op, field }) => as ?? `${op}_${field ?? ''}`),
  ],
  density: ({ as, groupby = [] }) => [...groupby, ...(as ?? ['value', 'density'])],
  quantile: ({ as, groupby = [] }) => [...groupby, ...(as ?? ['prob', 'value'])],
  regression: fitted('regression'),
  loess: fitted('loess'),
  pivot: () => undefined,
};

function fitted(name: string): Columns {
  return (step) => [
    ...(step.groupby ?? []),
    ...(step.params === true ? ['coef', 'rSquared', 'keys'] : (step.as ?? [step.on ?? '', String(step[name])])),
  ];
}

/** Transforms that add these columns to those that are there. */
const adding: Readonly<Record<string, Columns>> = {
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
