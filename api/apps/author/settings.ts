// The endpoints for the settings that an author changes without a commit: variables, replicas, idle time and health path.
import { readSlug } from '../../../crds/slugs.ts';
import { z } from 'zod';
import { listComponents } from '../../../crds/components.ts';
import type { Control } from '../../../crds/control.ts';
import { readSettings, resolveSpec } from '../../../crds/effective-settings.ts';
import { appVariable, healthPath, idleAfter, listBy } from '../../../crds/values.ts';
import { Problem } from '../../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { App } from '../hosted-apps.ts';
import { readingProblems, settingRefused } from '../problems.ts';
import type { ControlChange } from './control.ts';
import { type AuthorServices, changeProblems, slugParams } from './endpoints.ts';
import { assertOwnName, listOperatorSecrets, ownVariableName } from './secrets.ts';

const settings = z.strictObject({
  env: listBy(z.array(appVariable.extend({ name: ownVariableName.describe('Name of the variable.') })).max(64), 'name')
    .nullable()
    .optional()
    .describe(
      'All environment variables that you set without a commit: a list replaces the one before. They replace variables of moorage.yaml. Use secrets for keys and passwords.',
    ),
  replicas: z
    .int()
    .min(0)
    .max(20)
    .nullable()
    .optional()
    .describe('Number of replicas. With 0, nothing responds. An app with a volume has at most one.'),
  idleAfter: idleAfter
    .nullable()
    .optional()
    .describe('Idle time after which the app rests: auto, never, or a duration such as 15m.'),
  healthPath: healthPath
    .nullable()
    .optional()
    .describe('Path that responds with a status from 200 to 399 when the app is ready. Not for apps with components.'),
});
type Settings = z.output<typeof settings>;

const settingsBody = settings.refine((body) => Object.keys(body).length > 0, {
  error: 'must have at least one of env, replicas, idleAfter and healthPath',
});

export const settingsView = z.object({
  slug: z.string(),
  settings: z
    .object({
      env: z.array(z.object({ name: z.string(), value: z.string() })).optional(),
      replicas: z.int().optional(),
      idleAfter: z.string().optional(),
      healthPath: z.string().optional(),
    })
    .describe(
      'What you have set without a commit. A setting that is absent comes from moorage.yaml, or is the default.',
    ),
  maximum_replicas: z.int().describe('Maximum of replicas for this app.'),
});

export function createSettingEndpoints(services: AuthorServices): Endpoint[] {
  const { access, writeControl, maximumReplicas } = services;
  const toView = (app: App): z.input<typeof settingsView> => {
    const { env, replicas, idleAfter: idle, healthPath: path } = app.spec.control ?? {};
    return {
      slug: readSlug(app),
      settings: { env, replicas, idleAfter: idle, healthPath: path },
      maximum_replicas: hasVolumes(app) ? 1 : maximumReplicas,
    };
  };
  return [
    defineEndpoint({
      method: 'GET',
      path: '/api/apps/{slug}/settings',
      operation: 'getSettings',
      tag: 'apps',
      summary: 'Get the settings of an app that need no commit',
      description: 'What the author has set with PUT /api/apps/{slug}/settings.',
      params: slugParams,
      output: settingsView,
      outputDescription: 'The settings.',
      returnsCallerData: true,
      problems: readingProblems,
      head: 'as GET',
      handler: async ({ params }, context) => toView((await access.identify(params.slug, context, 'getSettings')).app),
    }),
    defineEndpoint({
      method: 'PUT',
      path: '/api/apps/{slug}/settings',
      operation: 'changeSettings',
      tag: 'apps',
      summary: 'Change settings of an app without a commit',
      description:
        'Sets the given settings, and leaves the others. null removes one, so that moorage.yaml or the default counts again. Pods are replaced one after another if they must change.',
      params: slugParams,
      body: settingsBody,
      output: settingsView.extend({ message: z.string() }),
      outputDescription: 'The settings after the change. Follow it with the status of the app.',
      problems: [...changeProblems, settingRefused],
      handler: async ({ params, body }, context) => {
        const changed = await access.act(
          params.slug,
          context,
          { operation: 'changeSettings', action: 'change-settings', detail: describeChange(body) },
          ({ app }) => {
            assertAllowed(app, body, maximumReplicas);
            return writeControl(app, (control) => applySettings(control, body));
          },
        );
        return { ...toView(changed), message: 'The settings are changed. /api/submit-status shows when it is done.' };
      },
    }),
  ];
}

/** What the audit log says: of variables the names alone, since people put secrets there in spite of all advice. */
function describeChange({ env, ...others }: Settings): Readonly<Record<string, unknown>> {
  return env === undefined ? others : { ...others, env: env === null ? null : env.map(({ name }) => name) };
}

/** A field that is null is removed. @throws Problem (setting-refused) */
function applySettings({ secrets = [] }: Control, body: Settings): ControlChange {
  const taken = (body.env ?? []).find(({ name }) => secrets.some((secret) => secret.name === name));
  if (taken !== undefined)
    throw new Problem(
      settingRefused,
      `${taken.name} is one of your secrets, which takes precedence over env. Remove it from env, or delete the secret first.`,
    );
  return Object.fromEntries(Object.entries(body).map(([field, value]) => [field, value ?? undefined]));
}

/** @throws Problem (setting-refused) */
function assertAllowed(app: App, { env, replicas, ...fields }: Settings, maximumReplicas: number): void {
  const { run = {}, components = [] } = app.spec;
  const operatorNames = [...(run.env ?? []), ...components.flatMap((component) => component.env ?? [])];
  const taken = [...listOperatorSecrets(app), ...operatorNames.map(({ name }) => name)];
  for (const { name } of env ?? []) assertOwnName(app, name, taken);
  if (typeof replicas === 'number') assertReplicas(app, replicas, maximumReplicas);
  for (const field of ['idleAfter', 'healthPath'] as const)
    if (typeof fields[field] === 'string' && run[field] !== undefined) throw createOperatorProblem(field);
  if (typeof fields.healthPath === 'string' && resolveApp(app).components.length > 0)
    throw new Problem(
      settingRefused,
      'healthPath is for apps without components: each component has its own. Set healthPath of the component in moorage.yaml.',
    );
}

function assertReplicas(app: App, replicas: number, maximumReplicas: number): void {
  const { replicas: stored = 1 } = app.spec.run ?? {};
  if (stored !== 1) throw createOperatorProblem('replicas');
  if (replicas > maximumReplicas)
    throw new Problem(
      settingRefused,
      `replicas is at most ${maximumReplicas} on this installation. Send a lower number, or ask the operator of this installation for more.`,
    );
  if (replicas > 1 && hasVolumes(app))
    throw new Problem(
      settingRefused,
      'replicas is at most 1 for an app with a volume, which can be mounted once. Send 1, or remove the volumes in moorage.yaml.',
    );
}

function createOperatorProblem(field: string): Problem {
  return new Problem(
    settingRefused,
    `The operator of this installation has set run.${field} of this app, which takes precedence. Ask the operator to remove it.`,
  );
}

/** The app with the settings of the release that was built last. */
function resolveApp(app: App): ReturnType<typeof resolveSpec> {
  return resolveSpec(app, readSettings(app.status?.built?.settings));
}

function hasVolumes(app: App): boolean {
  return listComponents(resolveApp(app)).some(({ volumes }) => volumes.length > 0);
}
