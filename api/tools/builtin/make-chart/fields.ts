// Finds fields that a Vega-Lite specification names and its data has not: Vega would draw as if each row were empty.
import * as vega from 'vega';
import { after, scopeOf, valueAt, anything, type Row, type Scope } from './columns.ts';
import { checkValues } from './field-values.ts';
import { meant } from './schema-check.ts';

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

class FieldFault extends Error {}

function view(spec: Row, path: string, outer: Scope, walk: Walk): void {
  let scope = spec['data'] === undefined ? outer : dataOf(spec['data'], path, walk);
  for (const [index, step] of list(spec['transform']).entries()) {
    const place = `${path}.transform[${index}]`;
    if (isRow(step)) references(step, place, scope, walk);
    scope = after(scope, step);
  }
  const encoding = isRow(spec['encoding']) ? spec['encoding'] : {};
  const inner = { ...walk, repeats: { ...walk.repeats, ...repeatsOf(spec['repeat']) }, outer: { ...walk.outer, ...encoding } };
  if (isRow(spec['facet'])) encodings('field' in spec['facet'] ? { facet: spec['facet'] } : spec['facet'], `${path}.facet`, scope, inner);
  encodings(encoding, `${path}.encoding`, scope, { ...inner, outer: walk.outer });
  for (const name of ['layer', 'hconcat', 'vconcat', 'concat'])
    for (const [index, child] of list(spec[name]).entries())
      if (isRow(child)) view(child, `${path}.${name}[${index}]`, scope, inner);
  if (isRow(spec['spec'])) view(spec['spec'], `${path}.spec`, scope, inner);
}

function dataOf(data: unknown, path: string, { datasets }: Walk): Scope {
  const scope = data === null ? anything : scopeOf(data, datasets);
  if (scope === undefined)
    throw new FieldFault(`${path}.data names ${JSON.stringify((data as Row)['name'])}, which is not in spec.datasets. Put the rows into data.values.`);
  if (scope.columns !== undefined && scope.rows.length === 0 && !isRow((data as Row)['sequence']))
    throw new FieldFault(`${path}.data has no rows, so nothing would be drawn. Put the rows into data.values, as a list of objects.`);
  return scope;
}

function repeatsOf(repeat: unknown): Record<string, string[]> {
  const strings = (value: unknown): string[] => list(value).filter((each) => typeof each === 'string');
  if (Array.isArray(repeat)) return { repeat: strings(repeat) };
  return isRow(repeat) ? Object.fromEntries(Object.entries(repeat).map(([name, value]) => [name, strings(value)])) : {};
}

function encodings(encoding: Row, path: string, scope: Scope, walk: Walk): void {
  const isMeasured = Object.values({ ...walk.outer, ...encoding }).some(
    (each) => isRow(each) && (each['type'] === 'quantitative' || typeof each['aggregate'] === 'string' || each['bin'] !== undefined),
  );
  for (const [channel, given] of Object.entries(encoding))
    for (const [index, own] of [given].flat().entries())
      if (isRow(own)) {
        const outer = walk.outer[channel];
        const definition = { ...(isRow(outer) ? outer : {}), ...own, ...(isMeasured ? { isBesideMeasure: true } : {}) };
        channelFields(definition, `${path}.${channel}${Array.isArray(given) ? `[${index}]` : ''}`, channel, scope, walk);
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
  for (const inner of [aggregate, sort])
    if (isRow(inner)) for (const name of ['field', 'argmax', 'argmin']) for (const field of namesOf(inner[name], walk)) known(field, path, scope);
  for (const condition of [definition['condition']].flat())
    if (isRow(condition)) {
      references(isRow(condition['test']) ? { filter: condition['test'] } : {}, path, scope, walk);
      if (condition['field'] !== undefined) channelFields(condition, `${path}.condition`, channel, scope, walk);
    }
}

function namesOf(field: unknown, { repeats }: Walk): readonly string[] {
  if (typeof field === 'string') return [field];
  if (!isRow(field) || typeof field['repeat'] !== 'string') return [];
  return repeats[field['repeat']] ?? [];
}

/** Names of fields in a transform, wherever they stand in it. */
function references(step: Row, path: string, scope: Scope, walk: Walk): void {
  for (const [name, value] of Object.entries(step)) {
    if (name === 'as' || name === 'from' || name === 'frame') continue;
    if (name === 'calculate' || name === 'filter') expression(value, path, scope);
    if (fieldNames.has(name)) for (const field of [value].flat()) if (typeof field === 'string') known(field, path, scope);
    for (const inner of [value].flat()) if (isRow(inner)) references(inner, path, scope, walk);
  }
}

const fieldNames = new Set('field groupby fold flatten lookup pivot impute key density quantile regression loess stack on value'.split(' ').filter((name) => name !== 'value'));

/** `datum.name` in an expression. One that cannot be parsed is reported by Vega. */
function expression(text: unknown, path: string, scope: Scope): void {
  if (typeof text !== 'string' || scope.columns === undefined) return;
  let tree: unknown;
  try {
    tree = vega.parseExpression(text);
  } catch {
    return;
  }
  for (const name of datumNames(tree)) known(name.replaceAll(/([.[\]\\])/g, '\\$1'), path, scope);
}

function datumNames(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(datumNames);
  if (!isRow(node)) return [];
  const { object, property, callee } = node as { object?: Row; property?: Row; callee?: Row };
  // Asks whether it is there.
  if (node['type'] === 'CallExpression' && (callee?.['name'] === 'isValid' || callee?.['name'] === 'isDefined')) return [];
  const name = node['computed'] === true ? property?.['value'] : property?.['name'];
  const own = node['type'] === 'MemberExpression' && object?.['name'] === 'datum' && typeof name === 'string' ? [name] : [];
  return [...own, ...Object.values(node).flatMap((inner) => (typeof inner === 'object' ? datumNames(inner) : []))];
}

/** The parts of the path of a field; undefined where it cannot be known. @throws FieldFault when it is not there */
function known(field: string, path: string, { columns, rows, raw }: Scope): readonly string[] | undefined {
  // Counts name no column, or all.
  if (columns === undefined || field === '' || field === '*') return undefined;
  const parts = vega.splitAccessPath(field);
  const [first = ''] = parts;
  const isThere = columns.has(first) && (parts.length === 1 || !raw.has(first) || rows.some((row) => valueAt(row, parts) !== undefined));
  if (isThere) return parts;
  const shown = JSON.stringify(field.slice(0, 80));
  if (columns.has(field))
    throw new FieldFault(`${path} names the field ${shown}, which Vega-Lite reads as a path into objects. Write ${JSON.stringify(field.replaceAll(/([.[\]])/g, '\\$1'))} for the column of that name.`);
  const names = [...columns];
  const near = meant(field, names);
  throw new FieldFault(
    `${path} names the field ${shown}, which the data has not${near === '' ? '' : near} Columns: ${names.slice(0, 20).join(', ')}${names.length > 20 ? ' and others' : ''}.`.replace('not Columns', 'not. Columns'),
  );
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
