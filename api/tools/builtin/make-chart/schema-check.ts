// Checks a specification against the JSON Schema of Vega-Lite or Vega, and reports the one fault that matters. These
// schemas nest hundreds of alternatives: Ajv takes seconds and 200 MB to compile them, and reports every alternative
// that failed.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { findMeantField } from '../../../../lib/problem.ts';

/** The JSON Schema keywords that the two schemas use; `format` and `description` are for editors. */
interface Schema {
  readonly $ref?: string;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly not?: Schema;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
  readonly items?: Schema | readonly Schema[];
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly pattern?: string;
}

/** A fault, its location, and its cost: of several alternatives, the cheapest is reported. */
interface SchemaFault {
  readonly path: readonly (string | number)[];
  readonly what: 'value' | 'property' | 'missing';
  readonly given: unknown;
  /** Values, or names of properties, that the alternatives at this path accept. */
  readonly choices: readonly string[];
  readonly cost: number;
}

const noFaults: readonly SchemaFault[] = [];
const cost = { unknown: 10, missing: 25, choice: 12, range: 5, kind: 60 };

export class SchemaCheck {
  readonly #root: Schema;
  readonly #definitions: Readonly<Record<string, Schema>>;
  /** Properties whose values are data, which is not checked. */
  readonly #data: ReadonlySet<string>;

  constructor(module: string, data: readonly string[]) {
    const root = JSON.parse(readFileSync(fileURLToPath(import.meta.resolve(module)), 'utf8')) as Schema & {
      definitions?: Readonly<Record<string, Schema>>;
      defs?: Readonly<Record<string, Schema>>;
    };
    this.#root = root;
    this.#definitions = { ...root.definitions, ...root.defs };
    this.#data = new Set(data);
  }

  /** @returns a message that begins with the path; undefined if the specification is valid */
  findFault(spec: unknown): string | undefined {
    const faults = this.#faults(this.#root, spec, []);
    // Report unknown properties before missing ones.
    const first = faults.find(({ what }) => what === 'property') ?? faults.toSorted((a, b) => b.cost - a.cost)[0];
    if (first === undefined) return undefined;
    const place = first.path.reduce<string>(
      (text, part) => (typeof part === 'number' ? `${text}[${part}]` : `${text}.${part}`),
      'spec',
    );
    return `${place} ${describeFault(first)}`;
  }

  #faults(schema: Schema, value: unknown, path: SchemaFault['path']): readonly SchemaFault[] {
    if (schema.$ref !== undefined) {
      const nameType = this.#definitions[decodeURIComponent(schema.$ref.split('/').at(-1) ?? '')];
      return nameType === undefined ? noFaults : this.#faults(nameType, value, path);
    }
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives !== undefined) return this.#nearest(alternatives, value, path);
    if (schema.allOf !== undefined) return schema.allOf.flatMap((each) => this.#faults(each, value, path));
    const simple = checkSimple(schema, value, path);
    if (simple !== undefined) return [simple];
    if (Array.isArray(value)) return this.#items(schema, value, path);
    return isObject(value) ? this.#properties(schema, value, path) : noFaults;
  }

  #nearest(alternatives: readonly Schema[], value: unknown, path: SchemaFault['path']): readonly SchemaFault[] {
    const all: SchemaFault[] = [];
    let nearest: readonly SchemaFault[] = noFaults;
    for (const alternative of alternatives) {
      const faults = this.#faults(alternative, value, path);
      if (faults.length === 0) return noFaults;
      all.push(...faults);
      if (nearest === noFaults || sumCosts(faults) < sumCosts(nearest)) nearest = faults;
    }
    return nearest.map((fault) => ({
      ...fault,
      choices: [...new Set(all.filter((other) => isSame(fault, other)).flatMap(({ choices }) => choices))],
    }));
  }

  #items(
    { items, minItems = 0, maxItems = Infinity }: Schema,
    value: readonly unknown[],
    path: SchemaFault['path'],
  ): readonly SchemaFault[] {
    if (value.length < minItems || value.length > maxItems)
      return [
        createValueFault(
          path,
          value,
          [`a list of ${minItems === maxItems ? minItems : 'another number of'} entries`],
          cost.range,
        ),
      ];
    if (items === undefined) return noFaults;
    return value.flatMap((item, index) => {
      const schema = Array.isArray(items) ? (items as readonly Schema[])[index] : (items as Schema);
      return schema === undefined ? noFaults : this.#faults(schema, item, [...path, index]);
    });
  }

  #properties(
    schema: Schema,
    value: Readonly<Record<string, unknown>>,
    path: SchemaFault['path'],
  ): readonly SchemaFault[] {
    const { properties = {}, required = [] } = schema;
    const missing = required
      .filter((name) => value[name] === undefined)
      .map((name): SchemaFault => ({ path, what: 'missing', given: undefined, choices: [name], cost: cost.missing }));
    const faults = Object.entries(value).flatMap(([name, inner]): readonly SchemaFault[] => {
      const found = findProperty(schema, name);
      if (found === true || this.#data.has(name)) return noFaults;
      if (found !== undefined) return this.#faults(found, inner, [...path, name]);
      return [{ path, what: 'property', given: name, choices: Object.keys(properties), cost: cost.unknown }];
    });
    return [...missing, ...faults];
  }
}

function findProperty(
  { properties, patternProperties, additionalProperties }: Schema,
  name: string,
): Schema | true | undefined {
  if (properties !== undefined && Object.hasOwn(properties, name)) return properties[name];
  const pattern = Object.entries(patternProperties ?? {}).find(([source]) => new RegExp(source).test(name));
  if (pattern !== undefined) return pattern[1];
  if (additionalProperties === false) return undefined;
  return additionalProperties === undefined || additionalProperties === true ? true : additionalProperties;
}

function checkSimple(schema: Schema, value: unknown, path: SchemaFault['path']): SchemaFault | undefined {
  const known = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
  if (known !== undefined) return checkChoice(known, value, path);
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => isOfType(type, value)))
    return createValueFault(path, value, types.map(formatTypeName), cost.kind);
  return typeof value === 'number' ? checkRange(schema, value, path) : undefined;
}

/** A wrong word from a list of words costs less than an object. */
function checkChoice(known: readonly unknown[], value: unknown, path: SchemaFault['path']): SchemaFault | undefined {
  if (known.includes(value)) return undefined;
  return createValueFault(path, value, known.map(String), typeof value === typeof known[0] ? cost.choice : cost.kind);
}

function checkRange(
  { minimum = -Infinity, maximum = Infinity }: Schema,
  value: number,
  path: SchemaFault['path'],
): SchemaFault | undefined {
  if (value >= minimum && value <= maximum) return undefined;
  return createValueFault(path, value, [value < minimum ? `at least ${minimum}` : `at most ${maximum}`], cost.range);
}

function createValueFault(
  path: SchemaFault['path'],
  given: unknown,
  choices: readonly string[],
  far: number,
): SchemaFault {
  return { path, what: 'value', given, choices, cost: far };
}

function isSame(fault: SchemaFault, other: SchemaFault): boolean {
  return (
    fault.what === other.what &&
    fault.path.length === other.path.length &&
    fault.path.every((part, index) => part === other.path[index]) &&
    (fault.what === 'value' || fault.given === other.given)
  );
}

function describeFault({ what, given, choices, path }: SchemaFault): string {
  if (what === 'missing')
    return path.length === 0
      ? 'has no mark (nor layer, facet, concat or repeat)'
      : `has no ${choices.slice(0, 8).join(' or ')}`;
  const shown = JSON.stringify(given).slice(0, 60);
  const near = suggestName(String(given), choices);
  const known = choices.length > 24 ? `${choices.slice(0, 24).join(', ')} and others` : choices.join(', ');
  if (what === 'property') return `has an unknown property ${shown}${near === '' ? `. Known: ${known}` : near}`;
  return `is ${shown}${near === '' ? '' : near}${near === '' ? `; expected: ${known}` : ` Known: ${known}`}`;
}

/** Suggests the name that was probably meant, as the end of a sentence. */
export function suggestName(name: string, known: readonly string[]): string {
  const near = findMeantField(name, known);
  return near === undefined ? '' : `. Did you mean ${JSON.stringify(near)}?`;
}

const sumCosts = (faults: readonly SchemaFault[]): number => faults.reduce((total, fault) => total + fault.cost, 0);

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isOfType(type: string, value: unknown): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isObject(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

const formatTypeName = (type: string): string =>
  ({ object: 'an object', array: 'a list', integer: 'a whole number', null: 'null' })[type] ?? `a ${type}`;
