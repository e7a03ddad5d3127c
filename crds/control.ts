// What an author sets through the API while the app runs, without a commit: the section `control` of a HostedApp. Only the
// API writes it, and it writes no other section of an existing app.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { StoredSpec } from './hosted-app.ts';
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
});
export type Control = z.output<typeof control>;

/** Whether an app runs nothing, by the choice of the operator of the installation or of its author. */
export function isSuspended({ suspend, control: own = {} }: Pick<StoredSpec, 'suspend' | 'control'>): boolean {
  return suspend === true || own.suspended === true || own.deleteAfter !== undefined;
}

/**
 * The spec in which the author's control counts as if the HostedApp itself set it. What the operator of the installation
 * sets in the HostedApp stays. Applying it again changes nothing.
 */
export function applyControl<Spec extends StoredSpec>(spec: Spec): Spec {
  const { control: own } = spec;
  if (own === undefined) return spec;
  const run = spec.run ?? {};
  const secrets = run.secrets ?? [];
  const ownSecrets = (own.secrets ?? []).filter(({ name }) => !secrets.some((secret) => secret.name === name));
  const isFree = ({ name }: { name: string }): boolean =>
    ![...secrets, ...ownSecrets].some((secret) => secret.name === name);
  const operatorEnv = run.env ?? [];
  const env = [
    ...operatorEnv,
    ...(own.env ?? []).filter(({ name }) => !operatorEnv.some((variable) => variable.name === name)),
  ].filter(isFree);
  const hasComponents = (spec.components ?? []).length > 0;
  const isScaled = run.replicas !== undefined && run.replicas !== 1;
  return {
    ...spec,
    suspend: isSuspended(spec),
    run: {
      ...run,
      ...(operatorEnv.length === env.length && own.env === undefined ? {} : { env }),
      ...(own.replicas === undefined || isScaled ? {} : { replicas: own.replicas }),
      ...(own.idleAfter === undefined || run.idleAfter !== undefined ? {} : { idleAfter: own.idleAfter }),
      ...(own.healthPath === undefined || run.healthPath !== undefined || hasComponents
        ? {}
        : { healthPath: own.healthPath }),
    },
  };
}

/** Key in the Secret of a value. */
export const controlSecretKey = 'value';

/** Name of the Secret of one version of a value. It contains the app's UID, so that a later namesake never reads it. */
export function formatControlSecretName(
  { name, uid }: { readonly name: string; readonly uid: string },
  secret: { readonly name: string; readonly version: number },
): string {
  const text = JSON.stringify([uid, secret.name, secret.version]);
  return `${name}-set-${createHash('sha256').update(text).digest('hex').slice(0, 20)}`;
}
