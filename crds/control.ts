// What an author sets through the API while the app runs, without a commit: the section `control` of a HostedApp. Only the
// API writes it, and it writes no other section of an existing app.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { omitUndefined } from '../lib/values.ts';
import { accessFields } from './access.ts';
import { ownDomains } from './domains.ts';
import type { StoredSpec } from './hosted-app.ts';
import { slugFields } from './slugs.ts';
import { runRequests } from './tasks.ts';
import {
  addRules,
  appVariable,
  appVariableName,
  createPatternRule,
  healthPath,
  idleAfter,
  listBy,
  timestamp,
} from './values.ts';

/** A variable whose value the author has given to the platform. */
const controlSecret = z.strictObject({
  name: appVariableName.describe('Name of the environment variable in the app.'),
  version: z
    .int()
    .min(1)
    .max(1_000_000)
    .describe('Version of the value. Each version has its own Secret, whose name is derived from it.'),
});

export const control = z.strictObject({
  suspended: z
    .boolean()
    .optional()
    .describe(
      'If true, no replicas run and no builds start, as with spec.suspend. The app keeps its data and address.',
    ),
  restartedAt: timestamp
    .max(40)
    .optional()
    .describe('When a restart was last requested. Pods that are older are replaced.'),
  release: addRules(
    z.string().max(64),
    createPatternRule('^[0-9a-f]{40}([0-9a-f]{24})?$', 'release must be the full ID of a commit'),
  )
    .optional()
    .describe(
      'Commit of a kept release that runs instead of the newest one. While it is set, no newer commit is built or deployed.',
    ),
  deleteAfter: timestamp
    .max(40)
    .optional()
    .describe('When the app is deleted. Until then it is suspended, and its author can restore it.'),
  replicas: z.int().min(0).max(20).optional().describe('Replaces run.replicas.'),
  idleAfter: idleAfter.optional().describe('Replaces run.idleAfter.'),
  healthPath: healthPath.optional().describe('Replaces run.healthPath of an app without components.'),
  env: listBy(z.array(appVariable).max(64), 'name')
    .optional()
    .describe('Environment variables that are added to run.env, and replace those of moorage.yaml.'),
  secrets: listBy(z.array(controlSecret).max(64), 'name')
    .optional()
    .describe('Environment variables whose values the author has set. They replace those of run.env.'),
  secretVersion: z
    .int()
    .min(0)
    .max(1_000_000)
    .optional()
    .describe('Highest version of any secret so far. It only increases, so that no version is used twice.'),
  ...accessFields,
  ...slugFields,
  runs: runRequests
    .optional()
    .describe('Runs of tasks and commands that the author has requested. Each is started once.'),
  domains: ownDomains
    .optional()
    .describe('Own domains of the app. It answers at each once DNS proves it, where this installation offers that.'),
});
export type Control = z.output<typeof control>;

/** Whether an app runs nothing, by the choice of the operator of the installation or of its author. */
export function isSuspended({ suspend, control: own = {} }: Pick<StoredSpec, 'suspend' | 'control'>): boolean {
  return suspend === true || own.suspended === true || own.deleteAfter !== undefined;
}

/** What identifies an app, and so the Secrets of its author. */
interface AppIdentity {
  readonly name: string;
  readonly uid: string;
}

/**
 * The spec in which the author's control counts as if the HostedApp itself set it. What the operator of the installation
 * sets in the HostedApp stays. Applying it again changes nothing.
 *
 * @param app the app itself, where its variables must refer to Secrets
 */
export function applyControl<Spec extends StoredSpec>(spec: Spec, app?: AppIdentity): Spec {
  const { control: own } = spec;
  if (own === undefined) return spec;
  return {
    ...spec,
    suspend: isSuspended(spec),
    run: { ...spec.run, ...chooseFields(spec, own), ...mergeVariables(spec, own, app) },
  };
}

type Run = NonNullable<StoredSpec['run']>;

/** The fields that the operator of the installation has not set. */
function chooseFields({ run = {}, components = [] }: StoredSpec, own: Control): Run {
  // The API server stores the default of replicas, so 1 counts as not set.
  const { replicas = 1, idleAfter: idle, healthPath: path } = run;
  return omitUndefined({
    replicas: replicas === 1 ? (own.replicas ?? run.replicas) : replicas,
    idleAfter: idle ?? own.idleAfter,
    healthPath: path ?? (components.length > 0 ? undefined : own.healthPath),
  });
}

/** The variables: a name that the operator of the installation has set as a secret stays as it is. */
function mergeVariables({ run = {} }: StoredSpec, own: Control, app: AppIdentity | undefined): Run {
  const { env = [], secrets = [] } = run;
  const ownSecrets = (own.secrets ?? []).filter(({ name }) => !hasName(secrets, name));
  const ownEnv = (own.env ?? []).filter(({ name }) => !hasName(env, name));
  const merged = [...env, ...ownEnv].filter(({ name }) => !hasName([...secrets, ...ownSecrets], name));
  const references =
    app === undefined
      ? []
      : ownSecrets.map(({ name, version }) => ({
          ...{ name, secret: formatControlSecretName(app, version), key: controlSecretKey },
        }));
  return {
    ...(run.env === undefined && merged.length === 0 ? {} : { env: merged }),
    ...(references.length === 0 ? {} : { secrets: [...secrets, ...references] }),
  };
}

function hasName(items: readonly { readonly name: string }[], name: string): boolean {
  return items.some((item) => item.name === name);
}

/** Key in the Secret of a value. */
export const controlSecretKey = 'value';

/** Label `app.kubernetes.io/component` of such a Secret. */
export const controlSecretComponent = 'author-secret';

/** Name of the Secret of one version of a value. It contains the app's UID, so that a later namesake never reads it. */
export function formatControlSecretName({ name, uid }: AppIdentity, version: number): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([uid, version]))
    .digest('hex');
  return `${name}-set-${hash.slice(0, 20)}`;
}

/** Whether a text, such as an error of the kubelet, contains such a name. */
export function hasControlSecretName(text: string): boolean {
  return /-set-[0-9a-f]{20}\b/.test(text);
}
