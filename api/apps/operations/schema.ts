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

export function isJson(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A schema exceeds the limits. */
export class SchemaTooLarge extends Error {
  override readonly name = 'SchemaTooLarge';
}

/** Reads the schemas of one operation, which share their definitions. */
export class SchemaReader {
  readonly #targets: Json;
  readonly #pending: string[] = [];
  readonly #names = new Map<string, string>();
  #nodes = 0;

  /** `targets`: the schemas that references can name. */
  constructor(targets: unknown) {
    this.#targets = isJson(targets) ? targets : {};
  }

  /** @throws SchemaTooLarge */
  read(schema: unknown, depth = 0): Json {
    if (schema === false) return { not: {} };
    if (!isJson(schema)) return {};
    this.#nodes += 1;
    if (this.#nodes > maxNodes || depth > maxDepth) throw new SchemaTooLarge();
    const keywords = Object.entries(schema)
      .map(([key, value]): [string, unknown] => [
        key,
        key === '$ref' ? undefined : this.#readKeyword(key, value, depth),
      ])
      .filter(([, value]) => value !== undefined);
    const refers = this.#toReference(schema['$ref']);
    return { ...(refers === undefined ? {} : { $ref: refers }), ...Object.fromEntries(keywords) };
  }

  /** The definitions that were referenced, directly or by other definitions. @throws SchemaTooLarge */
  buildDefinitions(): Json {
    const definitions: Record<string, unknown> = {};
    for (let name = this.#pending.shift(); name !== undefined; name = this.#pending.shift()) {
      definitions[this.#names.get(name) ?? ''] = this.read(
        Object.hasOwn(this.#targets, name) ? this.#targets[name] : {},
        1,
      );
    }
    return Object.keys(definitions).length === 0 ? {} : { $defs: definitions };
  }

  #readKeyword(key: string, value: unknown, depth: number): unknown {
    if (key === 'type') return readType(value);
    if (key === 'properties') return this.#readProperties(value, depth);
    if (key === 'required') return readNames(value);
    if (key === 'enum')
      return Array.isArray(value)
        ? value
            .slice(0, maxChoices)
            .map(readShortValue)
            .filter((one) => one !== undefined)
        : undefined;
    if (key === 'const' || key === 'default') return readShortValue(value);
    return this.#readPlainKeyword(key, value) ?? this.#readNested(key, value, depth);
  }

  #readPlainKeyword(key: string, value: unknown): unknown {
    const length = Object.hasOwn(texts, key) ? texts[key] : undefined;
    if (length !== undefined) return toPlainText(value, length) || undefined;
    if (numbers.has(key)) return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
    return flags.has(key) && typeof value === 'boolean' ? value : undefined;
  }

  #readNested(key: string, value: unknown, depth: number): unknown {
    if (schemas.has(key)) return typeof value === 'boolean' ? value : this.read(value, depth + 1);
    if (!lists.has(key) || !Array.isArray(value) || value.length === 0) return undefined;
    return value.slice(0, 32).map((one) => this.read(one, depth + 1));
  }

  #readProperties(value: unknown, depth: number): Json | undefined {
    if (!isJson(value)) return undefined;
    const entries = Object.entries(value)
      .filter(([name]) => name !== '__proto__' && name.length <= 200)
      .slice(0, maxProperties);
    return Object.fromEntries(entries.map(([name, schema]) => [name, this.read(schema, depth + 1)]));
  }

  /** References to other documents are not followed; their schema stays open. */
  #toReference(ref: unknown): string | undefined {
    const name = this.#findTarget(ref);
    if (name === undefined) return undefined;
    const shortName = this.#names.get(name);
    if (shortName !== undefined) return `#/$defs/${shortName}`;
    const short = `${name.replaceAll(/[^A-Za-z0-9_]+/g, '_').slice(0, 60)}${this.#names.size === 0 ? '' : `_${this.#names.size}`}`;
    this.#names.set(name, short);
    this.#pending.push(name);
    return `#/$defs/${short}`;
  }

  /** The name at the end of a chain of references; undefined if the chain is broken or circular. */
  #findTarget(ref: unknown): string | undefined {
    let name = parseReference(ref);
    for (let hop = 0; hop < maxHops && name !== undefined; hop += 1) {
      const next: unknown = Object.hasOwn(this.#targets, name) ? this.#targets[name] : undefined;
      if (!isJson(next) || next['$ref'] === undefined) return isJson(next) ? name : undefined;
      name = parseReference(next['$ref']);
    }
    return undefined;
  }
}

function parseReference(ref: unknown): string | undefined {
  const pointer = typeof ref === 'string' ? reference.exec(ref)?.[1] : undefined;
  try {
    return pointer === undefined ? undefined : decodeURIComponent(pointer).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined;
  }
}

function readType(value: unknown): unknown {
  if (Array.isArray(value)) {
    const knownTypes = [...new Set(value.filter((one) => types.has(one)))];
    return knownTypes.length === 0 ? undefined : knownTypes;
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
