// A field by its name: whether the data has it, and which fields an expression names.
import * as vega from 'vega';
import { valueAt, type Row, type Scope } from './columns.ts';
import { meant } from './schema-check.ts';

/** Why a chart is refused, in words that begin with the path. */
export class FieldFault extends Error {}

/** The parts of the path of a field; undefined where it cannot be known. @throws FieldFault when it is not there */
export function known(field: string, path: string, scope: Scope): readonly string[] | undefined {
  // Counts name no column, or all.
  if (scope.columns === undefined || field === '' || field === '*') return undefined;
  const parts = vega.splitAccessPath(field);
  if (isThere(parts, scope)) return parts;
  const shown = JSON.stringify(field.slice(0, 80));
  if (scope.columns.has(field))
    throw new FieldFault(
      `${path} names the field ${shown}, which Vega-Lite reads as a path into objects. Write ${JSON.stringify(field.replaceAll(/([.[\]])/g, '\\$1'))} for the column of that name.`,
    );
  const names = [...scope.columns];
  const near = meant(field, names);
  throw new FieldFault(
    `${path} names the field ${shown}, which the data has not${near === '' ? '.' : near} Columns: ${names.slice(0, 20).join(', ')}${names.length > 20 ? ' and others' : ''}.`,
  );
}

function isThere(parts: readonly string[], { columns, rows, raw }: Scope): boolean {
  const [first = ''] = parts;
  if (columns?.has(first) !== true) return false;
  return parts.length === 1 || !raw.has(first) || rows.some((row) => valueAt(row, parts) !== undefined);
}

/** `datum.name` in an expression. One that cannot be parsed is reported by Vega. @throws FieldFault */
export function checkExpression(text: unknown, path: string, scope: Scope): void {
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
  if (!isRow(node) || asksWhetherThere(node)) return [];
  const name = memberOfDatum(node);
  const inner = Object.values(node).filter((each) => typeof each === 'object');
  return [...(name === undefined ? [] : [name]), ...inner.flatMap(datumNames)];
}

function asksWhetherThere({ type, callee }: Row): boolean {
  return type === 'CallExpression' && isRow(callee) && ['isValid', 'isDefined'].includes(String(callee['name']));
}

function memberOfDatum({ type, object, property, computed }: Row): string | undefined {
  if (type !== 'MemberExpression' || !isRow(object) || object['name'] !== 'datum' || !isRow(property)) return undefined;
  const name = computed === true ? property['value'] : property['name'];
  return typeof name === 'string' ? name : undefined;
}

export function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
