// Checks a specification against the JSON Schema that Vega-Lite and Vega publish, and names the one fault that matters.
// Their schemas nest hundreds of alternatives: ajv takes seconds and 200 MB to compile them, and reports all that failed.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { findMeantField } from '../../../../lib/problem.ts';

/** The words of JSON Schema that the two schemas are written in; `format` and `description` are for editors. */
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

/** What is wrong, where, and how far from right: of several alternatives the nearest is reported. */
interface Fault {
  readonly path: readonly (string | number)[];
  readonly what: 'value' | 'property' | 'missing';
  readonly given: unknown;
  /** Values, or names of properties, that the alternatives at this path take. */
  readonly choices: readonly string[];
  readonly cost: number;
}

const none: readonly Fault[] = [];
const cost = { unknown: 10, missing: 25, choice: 12, range: 5, kind: 60 };

export class SchemaCheck {
  readonly #root: Schema;
  readonly #definitions: Readonly<Record<string, Schema>>;
  /** Names of properties whose values are data, however many. */
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

  /** @returns what is wrong, in words that begin with the path; undefined where nothing is */
  fault(spec: unknown): string | undefined {
    const faults = this.#faults(this.#root, spec, []);
    // What stands there is named before what does not.
    const first = faults.find(({ what }) => what === 'property') ?? faults.toSorted((a, b) => b.cost - a.cost)[0];
    if (first === undefined) return undefined;
    const place = first.path.reduce<string>(
      (text, part) => (typeof part === 'number' ? `${text}[${part}]` : `${text}.${part}`),
      'spec',
    );
    return `${place} ${wordsOf(first)}`;
  }

  #faults(schema: Schema, value: unknown, path: Fault['path']): readonly Fault[] {
    if (schema.$ref !== undefined) {
      const named = this.#definitions[decodeURIComponent(schema.$ref.split('/').at(-1) ?? '')];
      return named === undefined ? none : this.#faults(named, value, path);
    }
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives !== undefined) return this.#nearest(alternatives, value, path);
    if (schema.allOf !== undefined) return schema.allOf.flatMap((each) => this.#faults(each, value, path));
    const simple = simpleFault(schema, value, path);
    if (simple !== undefined) return [simple];
    if (Array.isArray(value)) return this.#items(schema, value, path);
    return isObject(value) ? this.#properties(schema, value, path) : none;
  }

  #nearest(alternatives: readonly Schema[], value: unknown, path: Fault['path']): readonly Fault[] {
    const all: Fault[] = [];
    let nearest: readonly Fault[] = none;
    for (const alternative of alternatives) {
      const faults = this.#faults(alternative, value, path);
      if (faults.length === 0) return none;
      all.push(...faults);
      if (nearest === none || sum(faults) < sum(nearest)) nearest = faults;
    }
    return nearest.map((fault) => ({
      ...fault,
      choices: [...new Set(all.filter((other) => isSame(fault, other)).flatMap(({ choices }) => choices))],
    }));
  }

  #items(
    { items, minItems = 0, maxItems = Infinity }: Schema,
    value: readonly unknown[],
    path: Fault['path'],
  ): readonly Fault[] {
    if (value.length < minItems || value.length > maxItems)
      return [
        valueFault(
          path,
          value,
          [`a list of ${minItems === maxItems ? minItems : 'another number of'} entries`],
          cost.range,
        ),
      ];
    if (items === undefined) return none;
    return value.flatMap((item, index) => {
      const schema = Array.isArray(items) ? (items as readonly Schema[])[index] : (items as Schema);
      return schema === undefined ? none : this.#faults(schema, item, [...path, index]);
    });
  }

  #properties(schema: Schema, value: Readonly<Record<string, unknown>>, path: Fault['path']): readonly Fault[] {
    const { properties = {}, required = [] } = schema;
    const missing = required
      .filter((name) => value[name] === undefined)
      .map((name): Fault => ({ path, what: 'missing', given: undefined, choices: [name], cost: cost.missing }));
    const faults = Object.entries(value).flatMap(([name, inner]): readonly Fault[] => {
      const found = propertyOf(schema, name);
      if (found === true || this.#data.has(name)) return none;
      if (found !== undefined) return this.#faults(found, inner, [...path, name]);
      return [{ path, what: 'property', given: name, choices: Object.keys(properties), cost: cost.unknown }];
    });
    return [...missing, ...faults];
  }
}

function propertyOf(
  { properties, patternProperties, additionalProperties }: Schema,
  name: string,
): Schema | true | undefined {
  if (properties !== undefined && Object.hasOwn(properties, name)) return properties[name];
  const pattern = Object.entries(patternProperties ?? {}).find(([source]) => new RegExp(source).test(name));
  if (pattern !== undefined) return pattern[1];
  if (additionalProperties === false) return undefined;
  return additionalProperties === undefined || additionalProperties === true ? true : additionalProperties;
}

function simpleFault(schema: Schema, value: unknown, path: Fault['path']): Fault | undefined {
  const known = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
  if (known !== undefined) return choiceFault(known, value, path);
  const types = schema.type === undefined ? [] : [schema.type].flat();
  if (types.length > 0 && !types.some((type) => isOf(type, value)))
    return valueFault(path, value, types.map(named), cost.kind);
  return typeof value === 'number' ? rangeFault(schema, value, path) : undefined;
}

/** A word in a list of words is nearer than an object. */
function choiceFault(known: readonly unknown[], value: unknown, path: Fault['path']): Fault | undefined {
  if (known.includes(value)) return undefined;
  return valueFault(path, value, known.map(String), typeof value === typeof known[0] ? cost.choice : cost.kind);
}

function rangeFault(
  { minimum = -Infinity, maximum = Infinity }: Schema,
  value: number,
  path: Fault['path'],
): Fault | undefined {
  if (value >= minimum && value <= maximum) return undefined;
  return valueFault(path, value, [value < minimum ? `at least ${minimum}` : `at most ${maximum}`], cost.range);
}

function valueFault(path: Fault['path'], given: unknown, choices: readonly string[], far: number): Fault {
  return { path, what: 'value', given, choices, cost: far };
}

function isSame(fault: Fault, other: Fault): boolean {
  return (
    fault.what === other.what &&
    fault.path.length === other.path.length &&
    fault.path.every((part, index) => part === other.path[index]) &&
    (fault.what === 'value' || fault.given === other.given)
  );
}

function wordsOf({ what, given, choices, path }: Fault): string {
  if (what === 'missing')
    return path.length === 0
      ? 'has no mark (nor layer, facet, concat or repeat)'
      : `has no ${choices.slice(0, 8).join(' or ')}`;
  const shown = JSON.stringify(given).slice(0, 60);
  const near = meant(String(given), choices);
  const known = choices.length > 24 ? `${choices.slice(0, 24).join(', ')} and others` : choices.join(', ');
  if (what === 'property') return `has an unknown property ${shown}${near === '' ? `. Known: ${known}` : near}`;
  return `is ${shown}${near === '' ? '' : near}${near === '' ? `; expected: ${known}` : ` Known: ${known}`}`;
}

/** The name that was probably meant, as the end of a sentence. */
export function meant(name: string, known: readonly string[]): string {
  const near = findMeantField(name, known);
  return near === undefined ? '' : `. Did you mean ${JSON.stringify(near)}?`;
}

const sum = (faults: readonly Fault[]): number => faults.reduce((total, fault) => total + fault.cost, 0);

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isOf(type: string, value: unknown): boolean {
  if (type === 'null') return value === null;
  if (type === 'array') return Array.isArray(value);
  if (type === 'object') return isObject(value);
  if (type === 'integer') return Number.isInteger(value);
  return typeof value === type;
}

const named = (type: string): string =>
  ({ object: 'an object', array: 'a list', integer: 'a whole number', null: 'null' })[type] ?? `a ${type}`;
