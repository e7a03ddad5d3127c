// Builds the CustomResourceDefinition of HostedApp from its zod schema, by way of the JSON Schema that zod writes.
import { z } from 'zod';
import { manifestFile } from './app-manifest.ts';
import { isMergedByName, layeredFields } from './effective-settings.ts';
import {
  group,
  kind,
  plural,
  previewNamePattern,
  slugPattern,
  version,
  reservedPattern,
  reservedSlugs,
} from './names.ts';
import { spec, status } from './hosted-app.ts';
import { toCelString, type Validation } from './values.ts';

/** The whole CustomResourceDefinition. @throws TypeError if a zod schema uses what a CRD cannot express */
export function buildDefinition(): SchemaNode {
  const openAPIV3Schema = {
    description: about,
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: `Version of this form of the object: ${group}/${version}.` },
      kind: { type: 'string', description: `Always ${kind}.` },
      metadata: { type: 'object', properties: { name: { type: 'string' } } },
      spec: describeStoredSpec(),
      status: describeSchema(status, 'What Moorage sees. Written by the operator alone.'),
    },
    'x-kubernetes-validations': nameRules,
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    // Uninstalling the chart must not delete every app of its users.
    metadata: {
      name: `${plural}.${group}`,
      annotations: { 'helm.sh/resource-policy': 'keep' },
      labels: { 'app.kubernetes.io/part-of': 'moorage' },
    },
    spec: {
      group,
      scope: 'Namespaced',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: ['happ'],
        categories: ['moorage'],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema },
          subresources: { status: {} },
          selectableFields: [{ jsonPath: '.spec.source.repo' }, { jsonPath: '.status.phase' }],
          additionalPrinterColumns: printerColumns,
        },
      ],
    },
  };
}

const about =
  'A git repository that runs as an app: its newest commit is reviewed, built in a sandbox, and served over HTTPS on its own subdomain. Only spec.source.repo is required.';

const printerColumns = [
  { name: 'Repo', type: 'string', jsonPath: '.spec.source.repo', description: 'Git repository of the app.' },
  { name: 'Phase', type: 'string', jsonPath: '.status.phase', description: 'Where the newest revision stands.' },
  { name: 'URL', type: 'string', jsonPath: '.status.url', description: 'Where the app answers.' },
  { name: 'Commit', type: 'string', jsonPath: '.status.shortCommit', description: 'Newest commit of the revision.' },
  {
    name: 'Checked',
    type: 'date',
    jsonPath: '.status.checkedAt',
    description: 'How long ago the operator confirmed this; more than ten minutes: no operator runs.',
  },
  { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  {
    name: 'Ready',
    type: 'string',
    priority: 1,
    jsonPath: '.status.conditions[?(@.type=="Ready")].status',
    description: 'Whether the newest revision is served.',
  },
  {
    name: 'Reason',
    type: 'string',
    priority: 1,
    jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
    description: 'Why so.',
  },
  {
    name: 'Idle',
    type: 'string',
    priority: 1,
    jsonPath: '.status.idle.state',
    description: 'Whether an app that may rest is awake.',
  },
];

/** The name is the subdomain, and names of Services, Deployments and Jobs are made from it. */
const nameRules: readonly (Validation & { fieldPath: string; optionalOldSelf?: boolean })[] = [
  {
    fieldPath: '.metadata.name',
    rule: `self.metadata.name.matches(${toCelString(slugPattern)})`,
    message:
      'metadata.name becomes the subdomain of the app; write at most 40 lower-case letters, digits and inner hyphens, starting with a letter',
  },
  {
    fieldPath: '.metadata.name',
    // Of new apps only: one that has its name already keeps it when the list grows.
    rule: `oldSelf.hasValue() || has(self.spec.previewOf) || !(self.metadata.name in [${[...reservedSlugs].sort().map(toCelString).join(', ')}] || self.metadata.name.matches(${toCelString(reservedPattern)}))`,
    optionalOldSelf: true,
    message:
      'metadata.name is a subdomain of the platform itself, one that programs or people trust by its name, or has two hyphens in a row, which come between an app and its component; choose another name',
  },
  {
    fieldPath: '.metadata.name',
    rule: `!has(self.spec.previewOf) || self.metadata.name.matches(${toCelString(previewNamePattern)})`,
    message: 'the name of a preview is that of its app, two hyphens, and pr-, mr- or br- with what it shows',
  },
];

function describeSchema(schema: z.ZodType, description: string): SchemaNode {
  return { ...toStructural(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'throw' })), description };
}

/** The schema of the spec with every default, as the reference shows it. */
export function describeSpec(): SchemaNode {
  return describeSchema(spec, 'What the author wants.');
}

/** The schema of the spec in the CRD: the API server stores its defaults, so fields that an author can set have none. */
export function describeStoredSpec(): SchemaNode {
  return dropLayeredDefaults(describeSpec());
}

/**
 * Removes the defaults of fields that an author can set, and names them in the description: what is stored is what
 * someone set, and it wins over the author's file even if it is the default.
 */
function dropLayeredDefaults(schema: SchemaNode): SchemaNode {
  return layeredFields.reduce(
    (whole, path) => changeAt(whole, path, (field) => dropDefault(field, isMergedByName(path))),
    schema,
  );
}

function changeAt(node: SchemaNode, path: readonly string[], change: (leaf: SchemaNode) => SchemaNode): SchemaNode {
  const [name, ...rest] = path;
  if (name === undefined) return change(node);
  const properties = node['properties'] as Record<string, SchemaNode>;
  return { ...node, properties: { ...properties, [name]: changeAt(properties[name] ?? {}, rest, change) } };
}

function dropDefault(field: SchemaNode, isMerged: boolean): SchemaNode {
  const usual = JSON.stringify(field['default']);
  const source = isMerged
    ? `Those in ${manifestFile} with other names are added.`
    : `Defaults to the value in ${manifestFile}, or ${usual}.`;
  const { default: _, ...rest } = field;
  return { ...rest, description: `${String(field['description'])} ${source}` };
}

/** A node of either schema language. */
export interface SchemaNode {
  readonly [keyword: string]: unknown;
}

/**
 * Keywords that mean the same in both languages. A pattern is never copied: a CEL rule with a message replaces it.
 */
const structuralKeywords = [
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

/** Left out on purpose: the API server itself prunes or rejects unknown fields, and formats are set below. */
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
 * Converts JSON Schema into the structural OpenAPI v3 schema that a CRD takes.
 * @throws TypeError for an unknown keyword, with its path: a field must not lose a bound silently
 */
export function toStructural(node: SchemaNode, path = 'schema'): SchemaNode {
  for (const keyword of Object.keys(node)) {
    if (!dropped.has(keyword) && !(structuralKeywords as readonly string[]).includes(keyword))
      throw new TypeError(`${path}: JSON Schema keyword ${keyword} is not supported in a CRD yet`);
  }
  if (typeof node['type'] !== 'string') throw new TypeError(`${path}: a structural schema needs one type`);
  return {
    ...Object.fromEntries(
      structuralKeywords.filter((keyword) => node[keyword] !== undefined).map((keyword) => [keyword, node[keyword]]),
    ),
    ...readBounds(node),
    ...chooseFormat(node),
    ...convertChildren(node, path),
  };
}

/** zod gives every integer the bounds of a safe JavaScript number, which mean nothing to an author. */
function readBounds(node: SchemaNode): SchemaNode {
  const { minimum, maximum } = node;
  return {
    ...(typeof minimum === 'number' && minimum !== Number.MIN_SAFE_INTEGER ? { minimum } : {}),
    ...(typeof maximum === 'number' && maximum !== Number.MAX_SAFE_INTEGER ? { maximum } : {}),
  };
}

function chooseFormat(node: SchemaNode): SchemaNode {
  if (node['type'] === 'integer') return { format: 'int64' };
  return node['format'] === 'date-time' ? { format: 'date-time' } : {};
}

function convertChildren(node: SchemaNode, path: string): SchemaNode {
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
