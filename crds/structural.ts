// Turns JSON Schema, as zod writes it, into the structural OpenAPI v3 schema that a CRD takes.

/** A node of either schema language. */
export interface SchemaNode {
  readonly [keyword: string]: unknown;
}

/**
 * Keywords that mean the same on both sides. The text of a pattern never passes: a CEL rule with a message stands for
 * it.
 */
const kept = [
  'type',
  'description',
  'enum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'required',
  'default',
  'x-kubernetes-validations',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
] as const;

/** Left out on purpose: unknown fields are pruned or refused by the API server itself, formats are given below. */
const dropped: ReadonlySet<string> = new Set([
  '$schema',
  'additionalProperties',
  'pattern',
  'format',
  'minimum',
  'maximum',
  'properties',
  'items',
]);

/**
 * Gives the structural form of `node`.
 * @throws TypeError for a keyword that it does not know, naming it and where it stands: a field must not lose a bound
 * in silence.
 */
export function toStructural(node: SchemaNode, path = 'schema'): SchemaNode {
  for (const keyword of Object.keys(node)) {
    if (!dropped.has(keyword) && !(kept as readonly string[]).includes(keyword))
      throw new TypeError(`${path}: JSON Schema keyword ${keyword} is not supported in a CRD yet`);
  }
  if (typeof node['type'] !== 'string') throw new TypeError(`${path}: a structural schema needs one type`);
  return {
    ...Object.fromEntries(
      kept.filter((keyword) => node[keyword] !== undefined).map((keyword) => [keyword, node[keyword]]),
    ),
    ...bounds(node),
    ...format(node),
    ...children(node, path),
  };
}

/** zod gives every integer the bounds of a safe JavaScript number; those say nothing to an author. */
function bounds(node: SchemaNode): SchemaNode {
  const { minimum, maximum } = node;
  return {
    ...(typeof minimum === 'number' && minimum !== Number.MIN_SAFE_INTEGER ? { minimum } : {}),
    ...(typeof maximum === 'number' && maximum !== Number.MAX_SAFE_INTEGER ? { maximum } : {}),
  };
}

function format(node: SchemaNode): SchemaNode {
  if (node['type'] === 'integer') return { format: 'int64' };
  return node['format'] === 'date-time' ? { format: 'date-time' } : {};
}

function children(node: SchemaNode, path: string): SchemaNode {
  const { properties, items } = node as { properties?: Record<string, SchemaNode>; items?: SchemaNode };
  return {
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, child]) => [name, toStructural(child, `${path}.${name}`)]),
          ),
        }),
    ...(items === undefined ? {} : { items: toStructural(items, `${path}[]`) }),
  };
}
