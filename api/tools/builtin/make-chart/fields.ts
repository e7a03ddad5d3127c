// Finds fields that a Vega-Lite specification names and its data has not: Vega would draw as if each row were empty.
import { after, anything, scopeOf, type Row, type Scope } from './columns.ts';
import { checkValues } from './field-values.ts';
import { checkExpression, FieldFault, isRow, known } from './known-fields.ts';

interface Walk {
  readonly datasets: Readonly<Record<string, unknown>>;
  readonly repeats: Readonly<Record<string, readonly string[]>>;
  /** What the views around say of each channel. */
  readonly outer: Row;
  readonly warnings: string[];
}

/** @returns what is wrong; what is only strange is added to the warnings */
export function fieldFault(spec: Row, warnings: string[]): string | undefined {
  const datasets = isRow(spec['datasets']) ? spec['datasets'] : {};
  try {
    view(spec, 'spec', anything, { datasets, repeats: {}, outer: {}, warnings });
  } catch (error) {
    if (error instanceof FieldFault) return error.message;
    throw error;
  }
  return undefined;
}

function view(spec: Row, path: string, outer: Scope, walk: Walk): void {
  let scope = spec['data'] === undefined ? outer : dataOf(spec['data'], path, walk);
  for (const [index, step] of list(spec['transform']).entries()) {
    const place = `${path}.transform[${index}]`;
    if (isRow(step)) references(step, place, scope);
    scope = after(scope, step);
  }
  const encoding = isRow(spec['encoding']) ? spec['encoding'] : {};
  const inner = {
    ...walk,
    repeats: { ...walk.repeats, ...repeatsOf(spec['repeat']) },
    outer: { ...walk.outer, ...encoding },
  };
  const { facet } = spec;
  if (isRow(facet)) encodings('field' in facet ? { facet } : facet, `${path}.facet`, scope, inner);
  encodings(encoding, `${path}.encoding`, scope, { ...inner, outer: walk.outer });
  for (const [place, child] of viewsIn(spec)) view(child, `${path}.${place}`, scope, inner);
}

function viewsIn(spec: Row): [string, Row][] {
  const lists = ['layer', 'hconcat', 'vconcat', 'concat'].flatMap((name) =>
    list(spec[name]).map((child, index): [string, unknown] => [`${name}[${index}]`, child]),
  );
  return [...lists, ['spec', spec['spec']] as const].flatMap(([place, child]): [string, Row][] =>
    isRow(child) ? [[place, child]] : [],
  );
}

function dataOf(data: unknown, path: string, { datasets }: Walk): Scope {
  const scope = data === null ? anything : scopeOf(data, datasets);
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

function repeatsOf(repeat: unknown): Record<string, string[]> {
  const strings = (value: unknown): string[] => list(value).filter((each) => typeof each === 'string');
  if (Array.isArray(repeat)) return { repeat: strings(repeat) };
  return isRow(repeat) ? Object.fromEntries(Object.entries(repeat).map(([name, value]) => [name, strings(value)])) : {};
}

function encodings(encoding: Row, path: string, scope: Scope, walk: Walk): void {
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
        channelFields(
          definition,
          `${path}.${channel}${Array.isArray(given) ? `[${index}]` : ''}`,
          channel,
          scope,
          walk,
        );
      }
}

function channelFields(definition: Row, path: string, channel: string, scope: Scope, walk: Walk): void {
  for (const field of namesOf(definition['field'], walk)) {
    const parts = known(field, path, scope);
    if (parts === undefined) continue;
    const { fault, warning } = checkValues(definition, channel, { field, parts, path }, scope);
    if (fault !== undefined) throw new FieldFault(fault);
    if (warning !== undefined && !walk.warnings.includes(warning)) walk.warnings.push(warning);
  }
  const { aggregate, sort } = definition;
  const inside = [aggregate, sort].filter(isRow).flatMap((inner) => [inner['field'], inner['argmax'], inner['argmin']]);
  for (const field of inside.flatMap((each) => namesOf(each, walk))) known(field, path, scope);
  for (const condition of [definition['condition']].flat().filter(isRow)) {
    references(isRow(condition['test']) ? { filter: condition['test'] } : {}, path, scope);
    if (condition['field'] !== undefined) channelFields(condition, `${path}.condition`, channel, scope, walk);
  }
}

function namesOf(field: unknown, { repeats }: Walk): readonly string[] {
  if (typeof field === 'string') return [field];
  if (!isRow(field) || typeof field['repeat'] !== 'string') return [];
  return repeats[field['repeat']] ?? [];
}

/** Names of fields in a transform, wherever they stand in it. */
function references(step: Row, path: string, scope: Scope): void {
  for (const [name, value] of Object.entries(step)) {
    if (name === 'as' || name === 'from' || name === 'frame') continue;
    if (name === 'calculate' || name === 'filter') checkExpression(value, path, scope);
    const parts = [value].flat();
    if (fieldNames.has(name))
      parts.filter((part) => typeof part === 'string').forEach((field) => known(field, path, scope));
    parts.filter(isRow).forEach((inner) => {
      references(inner, path, scope);
    });
  }
}

const fieldNames = new Set(
  'field groupby fold flatten lookup pivot impute key density quantile regression loess stack on'.split(' '),
);

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
