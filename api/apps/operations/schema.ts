// Rewrites a stranger's JSON Schema so that any client can read it: known keywords only, bounded, self-contained.
import { toPlainText } from './operation.ts';

export type Json = Readonly<Record<string, unknown>>;

const maxNodes = 1_500;
const maxDepth = 24;
const maxProperties = 100;
const maxChoices = 100;
const maxHops = 8;

const types: ReadonlySet<unknown> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null']);
const texts: Readonly<Record<string, number>> = {
  title: 100,
  description: 500,
  format: 40,
  contentEncoding: 40,
  contentMediaType: 100,
};
const numbers: ReadonlySet<string> = new Set([
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
]);
const flags: ReadonlySet<string> = new Set(['uniqueItems', 'deprecated']);
const schemas: ReadonlySet<string> = new Set(['items', 'additionalProperties', 'contains']);
const lists: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);
const reference = /^#\/(?:components\/schemas|\$defs|definitions)\/([^/]+)$/;

export function isJson(given: unknown): given is Json {
  return typeof given === 'object' && given !== null && !Array.isArray(given);
}

/** A schema exceeds the limits. */
export class SchemaTooLarge extends Error {
  override readonly name = 'SchemaTooLarge';
}

/** Reads the schemas of one operation, which share their definitions. */
export class SchemaReader {
  readonly #named: Json;
  readonly #wanted: string[] = [];
  readonly #names = new Map<string, string>();
  #nodes = 0;

  /** `named`: the schemas that references can name. */
  constructor(named: unknown) {
    this.#named = isJson(named) ? named : {};
  }

  /** @throws SchemaTooLarge */
  read(given: unknown, depth = 0): Json {
    if (given === false) return { not: {} };
    if (!isJson(given)) return {};
    this.#nodes += 1;
    if (this.#nodes > maxNodes || depth > maxDepth) throw new SchemaTooLarge();
    const made = Object.entries(given)
      .map(([key, value]): [string, unknown] => [key, key === '$ref' ? undefined : this.#keyword(key, value, depth)])
      .filter(([, value]) => value !== undefined);
    const refers = this.#reference(given['$ref']);
    return { ...(refers === undefined ? {} : { $ref: refers }), ...Object.fromEntries(made) };
  }

  /** The definitions that were referenced, directly or by other definitions. @throws SchemaTooLarge */
  definitions(): Json {
    const made: Record<string, unknown> = {};
    for (let name = this.#wanted.shift(); name !== undefined; name = this.#wanted.shift()) {
      made[this.#names.get(name) ?? ''] = this.read(Object.hasOwn(this.#named, name) ? this.#named[name] : {}, 1);
    }
    return Object.keys(made).length === 0 ? {} : { $defs: made };
  }

  #keyword(key: string, value: unknown, depth: number): unknown {
    if (key === 'type') return readType(value);
    if (key === 'properties') return this.#properties(value, depth);
    if (key === 'required') return readNames(value);
    if (key === 'enum')
      return Array.isArray(value)
        ? value
            .slice(0, maxChoices)
            .map(readShortValue)
            .filter((one) => one !== undefined)
        : undefined;
    if (key === 'const' || key === 'default') return readShortValue(value);
    return this.#plain(key, value) ?? this.#nested(key, value, depth);
  }

  #plain(key: string, value: unknown): unknown {
    const length = Object.hasOwn(texts, key) ? texts[key] : undefined;
    if (length !== undefined) return toPlainText(value, length) || undefined;
    if (numbers.has(key)) return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
    return flags.has(key) && typeof value === 'boolean' ? value : undefined;
  }

  #nested(key: string, value: unknown, depth: number): unknown {
    if (schemas.has(key)) return typeof value === 'boolean' ? value : this.read(value, depth + 1);
    if (!lists.has(key) || !Array.isArray(value) || value.length === 0) return undefined;
    return value.slice(0, 32).map((one) => this.read(one, depth + 1));
  }

  #properties(value: unknown, depth: number): Json | undefined {
    if (!isJson(value)) return undefined;
    const entries = Object.entries(value)
      .filter(([name]) => name !== '__proto__' && name.length <= 200)
      .slice(0, maxProperties);
    return Object.fromEntries(entries.map(([name, schema]) => [name, this.read(schema, depth + 1)]));
  }

  /** References to other documents are not followed; their schema stays open. */
  #reference(given: unknown): string | undefined {
    const name = this.#target(given);
    if (name === undefined) return undefined;
    const known = this.#names.get(name);
    if (known !== undefined) return `#/$defs/${known}`;
    const short = `${name.replaceAll(/[^A-Za-z0-9_]+/g, '_').slice(0, 60)}${this.#names.size === 0 ? '' : `_${this.#names.size}`}`;
    this.#names.set(name, short);
    this.#wanted.push(name);
    return `#/$defs/${short}`;
  }

  /** The name at the end of a chain of references; undefined if the chain is broken or circular. */
  #target(given: unknown): string | undefined {
    let name = parseReference(given);
    for (let hop = 0; hop < maxHops && name !== undefined; hop += 1) {
      const next: unknown = Object.hasOwn(this.#named, name) ? this.#named[name] : undefined;
      if (!isJson(next) || next['$ref'] === undefined) return isJson(next) ? name : undefined;
      name = parseReference(next['$ref']);
    }
    return undefined;
  }
}

function parseReference(given: unknown): string | undefined {
  const found = typeof given === 'string' ? reference.exec(given)?.[1] : undefined;
  try {
    return found === undefined ? undefined : decodeURIComponent(found).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined;
  }
}

function readType(value: unknown): unknown {
  if (Array.isArray(value)) {
    const known = [...new Set(value.filter((one) => types.has(one)))];
    return known.length === 0 ? undefined : known;
  }
  return types.has(value) ? value : undefined;
}

function readNames(value: unknown): string[] | undefined {
  return Array.isArray(value)
    ? ([...new Set(value.filter((name) => typeof name === 'string' && name.length <= 200))].slice(
        0,
        maxProperties,
      ) as string[])
    : undefined;
}

/** Reads a value in a schema. Long ones only illustrate what could be sent, so they are left out. */
function readShortValue(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length > 500 ? undefined : value.replaceAll(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, ' ');
  if (typeof value !== 'object' || value === null) return value;
  try {
    return JSON.stringify(value).length > 500 ? undefined : value;
  } catch {
    return undefined;
  }
}
