// Builds the CustomResourceDefinition of HostedApp from its zod schema.
import { z } from 'zod';
import { manifestFile } from './app-manifest.ts';
import { isMergedByName, layeredFields } from './effective-settings.ts';
import { group, kind, plural, slugPattern, version } from './names.ts';
import { reservedPattern, reservedSlugs } from './reserved-names.ts';
import { spec, status } from './hosted-app.ts';
import { celString, type Validation } from './rules.ts';
import { toStructural, type SchemaNode } from './structural.ts';

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
    rule: `self.metadata.name.matches(${celString(slugPattern)})`,
    message:
      'metadata.name becomes the subdomain of the app; write at most 40 lower-case letters, digits and inner hyphens, starting with a letter',
  },
  {
    fieldPath: '.metadata.name',
    // Of new apps only: one that has its name already keeps it when the list grows.
    rule: `oldSelf.hasValue() || !(self.metadata.name in [${[...reservedSlugs].sort().map(celString).join(', ')}] || self.metadata.name.matches(${celString(reservedPattern)}))`,
    optionalOldSelf: true,
    message:
      'metadata.name is a subdomain of the platform itself, or one that programs or people trust by its name; choose another name',
  },
];

function schemaOf(schema: z.ZodType, description: string): SchemaNode {
  return { ...toStructural(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'throw' })), description };
}

/** The schema of the spec with every default, as the reference shows it. */
export function describeSpec(): SchemaNode {
  return schemaOf(spec, 'What the author wants.');
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

/** The whole CustomResourceDefinition. @throws TypeError when a zod schema uses what a CRD cannot say. */
export function definition(): SchemaNode {
  const openAPIV3Schema = {
    description: about,
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: `Version of this form of the object: ${group}/${version}.` },
      kind: { type: 'string', description: `Always ${kind}.` },
      metadata: { type: 'object', properties: { name: { type: 'string' } } },
      spec: dropLayeredDefaults(describeSpec()),
      status: schemaOf(status, 'What Moorage sees. Written by the operator alone.'),
    },
    'x-kubernetes-validations': nameRules,
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    // A chart that is uninstalled must not take every app of its users with it.
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
