// The fields of a JSON Schema as flat rows: path, type, default, limits, description.

export interface Schema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly 'x-kubernetes-validations'?: readonly { readonly message: string }[];
}

export interface Field {
  /** Dotted, with [] for the items of a list. */
  readonly path: string;
  readonly schema: Schema;
  readonly required: boolean;
  /** Its default, from its own schema or from that of its parent; undefined for none. */
  readonly fallback: unknown;
}

/** Every field below a schema, each before its own. An object without a default of its own has those of its fields. */
export function listFields(schema: Schema, path = '', given: unknown = schema.default): Field[] {
  const from = (typeof given === 'object' && given !== null ? given : {}) as Readonly<Record<string, unknown>>;
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const fallback = from[name] ?? child.default;
    const field = { path: at, schema: child, fallback, required: schema.required?.includes(name) === true };
    return [
      field,
      ...listFields(child, at, fallback),
      ...(child.items === undefined ? [] : listItemFields(child.items, at)),
    ];
  });
}

function listItemFields(items: Schema, path: string): Field[] {
  return listFields(items, `${path}[]`);
}

/** Its type in a word or two. */
export function describeType(schema: Schema): string {
  const { anyOf, oneOf = anyOf, type, items, properties, additionalProperties } = schema;
  if (oneOf !== undefined) return [...new Set(oneOf.map(describeType))].join(' or ');
  if (type === 'array') return `list of ${describeType(items ?? {})}`;
  if (type === 'object' && properties === undefined && typeof additionalProperties === 'object')
    return `map of ${describeType(additionalProperties)}`;
  if (type === undefined) return 'any';
  return typeof type === 'string' ? type : type.join(' or ');
}

/** Its default as it is written in JSON; a dash for none, nothing for an object, whose fields have theirs. */
export function formatDefault({ schema, fallback, required }: Field): string {
  if (required) return 'required';
  if (fallback === undefined || (schema.properties !== undefined && typeof fallback === 'object')) return '';
  return `\`${JSON.stringify(fallback)}\``;
}

const omitUnsafeBound = (bound: number | undefined): number | undefined =>
  bound === undefined || Math.abs(bound) === Number.MAX_SAFE_INTEGER ? undefined : bound;

/** What the schema says of its values. */
export function describeLimits(schema: Schema): string {
  const choices = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
  return [
    choices === undefined ? '' : `one of ${choices.map((choice) => `\`${String(choice)}\``).join(', ')}`,
    formatRange(omitUnsafeBound(schema.minimum), omitUnsafeBound(schema.maximum), ''),
    formatRange(schema.minLength === 0 ? undefined : schema.minLength, schema.maxLength, ' characters'),
    formatRange(schema.minItems, schema.maxItems, ' items'),
  ]
    .filter((part) => part !== '')
    .join('; ');
}

function formatRange(minimum: number | undefined, maximum: number | undefined, unit: string): string {
  if (minimum === undefined) return maximum === undefined ? '' : `up to ${maximum}${unit}`;
  return maximum === undefined ? `${minimum}${unit} or more` : `${minimum} to ${maximum}${unit}`;
}

/** The messages of its rules: what the API server answers to a wrong value. */
export function listRuleMessages(schema: Schema): string[] {
  return (schema['x-kubernetes-validations'] ?? []).map(({ message }) => message);
}
