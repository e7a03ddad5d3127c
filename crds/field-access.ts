// Decides who may set each field of a HostedApp's spec. The admission policy for the API's own writes is generated from
// these lists (charts/generate.ts). It rejects every field that is not a submitted one, so a new field is closed to the
// API until it is listed here.
import { z } from 'zod';
import { appManifest } from './app-manifest.ts';
import { control } from './control.ts';
import { describeStoredSpec, type SchemaNode } from './definition.ts';
import { listFields } from './effective-settings.ts';

/** Fields that the API sets when someone submits a repository. Anyone can submit, so each value is a stranger's claim. */
export const submittedFields: readonly string[] = [
  'source.repo',
  // Set if the repository can be read with its deploy key alone. It opens nothing, and closes what would be public.
  'source.private',
  'submission.contact',
  'submission.note',
];

/**
 * Fields that the API sets as well if new apps get a budget for models (chart value `submissions.modelsUsd`). The policy
 * also compares the amount.
 */
export const submittedModelFields: readonly string[] = ['models.enabled', 'models.dailyBudgetUsd'];

/** Fields that the API sets for the author of an app, who has proven to be one (api/apps/author). */
export const controlFields: readonly string[] = listPaths(
  z.toJSONSchema(control, { io: 'input', unrepresentable: 'any' }),
).map((path) => `control.${path}`);

/** Fields that only the operator of the installation sets, with kubectl. */
export const operatorFields: readonly string[] = [
  // Commits of a pull request are a stranger's, and a file in them says whose the app is.
  'source.revision',
  // Each poll is a request to a git server.
  'source.interval',
  // A waiver accepts a risk for the whole installation.
  'review.waivers',
  // Secrets of the apps namespace belong to other apps and to the operator.
  'run.secrets',
  // Replicas multiply the resources of an app.
  'run.replicas',
  // The share decides who gets the revenue.
  'author.share',
  // Data that is kept after its app fills disks until someone deletes it.
  'deletionPolicy',
  // A preview runs the code of strangers under the name of another app.
  'previewOf.app',
  'previewOf.reference',
  // A suspended app takes its name and serves nothing.
  'suspend',
];

/**
 * Fields that authors set in moorage.yaml. The API never sets them: in the HostedApp they would override what the author
 * says, and a submission is only a claim.
 */
const authorFields: readonly string[] = listPaths(z.toJSONSchema(appManifest, { io: 'input', unrepresentable: 'any' }));

export type Writer = 'submission' | 'author' | 'author, through the API' | 'operator of the installation';

/** Who may set a field. There must be one answer; the operator of the installation can also override the other two. */
export function listWriters(field: string): Writer[] {
  const lists: readonly (readonly [Writer, readonly string[]])[] = [
    ['submission', [...submittedFields, ...submittedModelFields]],
    ['author', authorFields],
    ['author, through the API', controlFields],
    ['operator of the installation', operatorFields],
  ];
  return lists.filter(([, fields]) => fields.includes(field)).map(([writer]) => writer);
}

/** Paths of all fields of the spec; a list is one field. */
export function listSpecFields(): string[] {
  return listPaths(describeStoredSpec());
}

/** What the API server stores for a spec in which only `source.repo` is set. */
interface StoredDefaults {
  /** Fields of the spec that have fields. */
  readonly sections: readonly string[];
  /** Values by path, such as `run.replicas`. A section within a section is one value. */
  readonly values: ReadonlyMap<string, unknown>;
}

export function readStoredDefaults(): StoredDefaults {
  const fields = Object.entries(readProperties(describeStoredSpec()));
  const values = fields.flatMap(([name, node]) =>
    isSection(node)
      ? Object.entries(readProperties(node)).map(([inner, child]) => [`${name}.${inner}`, fillDefaults(child)] as const)
      : [[name, fillDefaults(node)] as const],
  );
  return {
    sections: fields.filter(([, node]) => isSection(node)).map(([name]) => name),
    values: new Map(values.filter(([, value]) => value !== undefined)),
  };
}

/** The value of a field after structural defaulting, which also fills in the defaults within a default. */
function fillDefaults(node: SchemaNode, value: unknown = node['default']): unknown {
  if (!isSection(node) || value === undefined) return value;
  const given = value as Readonly<Record<string, unknown>>;
  const entries = Object.entries(readProperties(node)).map(
    ([name, child]) => [name, fillDefaults(child, given[name] ?? child['default'])] as const,
  );
  return { ...given, ...Object.fromEntries(entries.filter(([, inner]) => inner !== undefined)) };
}

function isSection(node: SchemaNode): boolean {
  return node['properties'] !== undefined;
}

function readProperties(node: SchemaNode): Readonly<Record<string, SchemaNode>> {
  return (node['properties'] ?? {}) as Readonly<Record<string, SchemaNode>>;
}

function listPaths(schema: unknown): string[] {
  return listFields(schema).map((path) => path.join('.'));
}
