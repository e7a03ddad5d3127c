// The endpoints for an author's secrets. A value goes into a Kubernetes Secret that the API can create and never read; the
// HostedApp, the audit log and all answers have its name and version alone.
import { readSlug } from '../../../crds/slugs.ts';
import { z } from 'zod';
import {
  type Control,
  controlSecretComponent,
  controlSecretKey,
  formatControlSecretName,
} from '../../../crds/control.ts';
import { labels } from '../../../crds/names.ts';
import { appVariableName } from '../../../crds/values.ts';
import { isApiStatus, type Manifest } from '../../../lib/kubernetes/index.ts';
import { createUnknownNameProblem, Problem } from '../../../lib/problem.ts';
import { clusterUnavailable, defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { App } from '../hosted-apps.ts';
import { readingProblems, settingRefused, unknownSecret } from '../problems.ts';
import type { ControlChange } from './control.ts';
import { type AuthorServices, changeProblems, slugParams } from './endpoints.ts';

const maximumSecrets = 64;
const maximumCharacters = 32_768;
/** A character takes up to six bytes in JSON. */
const bodyLimit = 6 * maximumCharacters + 1_024;
/** Attempts to find a version that is free. Each parallel change of the same app costs one. */
const attempts = 50;

/** The name of a variable that an author may set. */
export const ownVariableName = appVariableName.refine((name) => !name.startsWith('MOORAGE_'), {
  error: 'names that start with MOORAGE_ belong to the platform; choose another name',
});

const secretParams = slugParams.extend({
  name: ownVariableName.describe('Name of the environment variable in the app, such as STRIPE_KEY.'),
});

const secretBody = z.strictObject({
  value: z
    .string()
    .min(1)
    .max(maximumCharacters)
    .refine((value) => !value.includes('\0') && value.isWellFormed(), {
      error: 'must be text without NUL characters and without half of a surrogate pair',
    })
    .describe(`The value, up to ${maximumCharacters} characters. It is never shown again.`),
});

export function createSecretEndpoints(services: AuthorServices): Endpoint[] {
  return [createListEndpoint(services), createSetEndpoint(services), createDeleteEndpoint(services)];
}

export const secretsView = z.object({
  secrets: z.array(
    z.object({
      name: z.string(),
      version: z.int().describe('Versions are numbered through all secrets of the app.'),
    }),
  ),
  missing: z
    .array(z.object({ name: z.string(), reason: z.string().describe('What was found.') }))
    .describe('Variables that have no value yet.'),
});

function createListEndpoint({ access }: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'GET',
    path: '/api/apps/{slug}/secrets',
    operation: 'listSecrets',
    tag: 'apps',
    summary: 'List the secrets of an app',
    description:
      'Names and versions of the secrets that the author has set, never their values, and the variables that the review or a crash of the app names as missing.',
    params: slugParams,
    output: secretsView,
    outputDescription: 'The names.',
    returnsCallerData: true,
    problems: readingProblems,
    head: 'as GET',
    handler: async ({ params }, context) => {
      const { app } = await access.identify(params.slug, context, 'listSecrets');
      return { secrets: app.spec.control?.secrets ?? [], missing: listMissingVariables(app) };
    },
  });
}

function createSetEndpoint(services: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'PUT',
    path: '/api/apps/{slug}/secrets/{name}',
    operation: 'setSecret',
    tag: 'apps',
    summary: 'Set a secret of an app',
    description:
      'Stores the value of an environment variable, which no endpoint shows, and replaces the pods of the app one after another. A variable of the same name in moorage.yaml or in the settings is replaced.',
    params: secretParams,
    body: secretBody,
    bodyLimit,
    output: z.object({ name: z.string(), version: z.int(), message: z.string() }),
    outputDescription: 'The secret was stored. Follow the restart with the status of the app.',
    problems: [...changeProblems, settingRefused],
    handler: async ({ params: { slug, name }, body: { value } }, context) => {
      const version = await services.access.act(
        slug,
        context,
        { operation: 'setSecret', action: 'set-secret', detail: { name } },
        ({ app }) => setSecret(services, app, name, value),
      );
      return {
        name,
        version,
        message: `${name} is set. The app restarts with it, and serves meanwhile. /api/submit-status shows when it is done.`,
      };
    },
  });
}

function createDeleteEndpoint(services: AuthorServices): Endpoint {
  return defineEndpoint({
    method: 'DELETE',
    path: '/api/apps/{slug}/secrets/{name}',
    operation: 'deleteSecret',
    tag: 'apps',
    summary: 'Delete a secret of an app',
    description:
      'Removes the variable, and replaces the pods of the app one after another. The value is deleted once no pod uses it any more.',
    params: secretParams,
    output: z.object({ name: z.string(), message: z.string() }),
    outputDescription: 'The secret was removed. Follow the restart with the status of the app.',
    problems: [...changeProblems, unknownSecret],
    handler: async ({ params: { slug, name } }, context) => {
      await services.access.act(
        slug,
        context,
        { operation: 'deleteSecret', action: 'delete-secret', detail: { name } },
        ({ app }) => services.writeControl(app, (control) => removeSecret(control, name)),
      );
      return { name, message: `${name} is removed. The app restarts without it. Its value is deleted after that.` };
    },
  });
}

/** The version of a secret that was created is lower than the highest one by now, so the operator may delete it. */
class OvertakenError extends Error {
  override readonly name = 'OvertakenError';
  readonly highest: number;
  constructor(highest: number) {
    super('another secret of the app was set at the same time');
    this.highest = highest;
  }
}

/**
 * Creates the Secret of the next version, and then lets the app use it. A process that ends in between leaves a Secret that
 * nothing refers to; the operator deletes it after the next change.
 *
 * @returns its version
 */
async function setSecret(services: AuthorServices, app: App, name: string, value: string): Promise<number> {
  assertOwnName(app, name, listOperatorSecrets(app));
  // First, so that the value is masked in logs as soon as the app knows it.
  await services.rememberSecret?.(app, name, value);
  let highest = app.spec.control?.secretVersion ?? 0;
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const version = highest + 1;
    try {
      await services.createSecret(buildControlSecret(app, version, value));
      await services.writeControl(app, (control) => addSecret(control, name, version));
      return version;
    } catch (error) {
      if (error instanceof OvertakenError) ({ highest } = error);
      else if (isApiStatus(error, 409)) highest = version;
      else throw error;
    }
  }
  throw new Problem(
    clusterUnavailable,
    'Too many secrets of this app are being set at the same time. Try again in a few seconds.',
    { headers: { 'retry-after': '5' } },
  );
}

function addSecret(control: Control, name: string, version: number): ControlChange {
  const { secrets = [], secretVersion: highest = 0, env } = control;
  if (highest >= version) throw new OvertakenError(highest);
  const others = secrets.filter((secret) => secret.name !== name);
  if (others.length >= maximumSecrets)
    throw new Problem(
      settingRefused,
      `An app has at most ${maximumSecrets} secrets. Delete one that it does not need.`,
    );
  return {
    secrets: [...others, { name, version }],
    secretVersion: version,
    // A value that was in the settings before must not stay there.
    ...(env === undefined ? {} : { env: env.filter((variable) => variable.name !== name) }),
  };
}

function removeSecret({ secrets = [] }: Control, name: string): ControlChange {
  if (!secrets.some((secret) => secret.name === name))
    throw createUnknownNameProblem(unknownSecret, {
      says: 'Unknown secret',
      name,
      names: secrets.map((secret) => secret.name),
      all: 'GET /api/apps/{slug}/secrets lists those that you have set.',
    });
  return { secrets: secrets.filter((secret) => secret.name !== name) };
}

/**
 * Builds the Secret of one version of a value. It is never changed: a new value is a new Secret, whose name is in the pod
 * template, so that pods are replaced. The admission policy moorage-api-secrets lets the API create nothing else.
 */
function buildControlSecret(app: App, version: number, value: string): Manifest {
  const { name, namespace, uid } = app.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: formatControlSecretName(app.metadata, version),
      ...(namespace === undefined ? {} : { namespace }),
      labels: {
        [labels.app]: name,
        [labels.component]: controlSecretComponent,
        [labels.partOf]: 'moorage',
        [labels.managedBy]: 'moorage',
      },
      // Without blockOwnerDeletion, for which the API would need a right on the finalizers of apps.
      ownerReferences: [{ apiVersion: app.apiVersion, kind: app.kind, name, uid, controller: true }],
    },
    type: 'Opaque',
    immutable: true,
    stringData: { [controlSecretKey]: value },
  };
}

/** Names of variables that the operator of the installation takes from Secrets, which nothing else replaces. */
export function listOperatorSecrets({ spec }: App): string[] {
  const { run, components = [] } = spec;
  return [...(run?.secrets ?? []), ...components.flatMap(({ secrets = [] }) => secrets)].map(({ name }) => name);
}

/** @throws Problem (setting-refused) */
export function assertOwnName(app: App, name: string, taken: readonly string[]): void {
  if (taken.includes(name))
    throw new Problem(
      settingRefused,
      `The operator of this installation sets ${name} in the HostedApp of ${readSlug(app)}, which takes precedence. Use another name, or ask the operator to remove it.`,
    );
}

/** The variables that findings, crashes and the plan name, without those that are set. */
function listMissingVariables(app: App): { name: string; reason: string }[] {
  const { env = [], secrets = [] } = app.spec.control ?? {};
  const set = [...env, ...secrets, ...(app.spec.run?.env ?? [])].map(({ name }) => name);
  const named = [...listReported(app), ...listPlanned(app)];
  const isOpen = ({ name }: { name: string }, index: number): boolean =>
    ![...set, ...listOperatorSecrets(app)].includes(name) &&
    ownVariableName.safeParse(name).success &&
    // The first report of a name is the most urgent one.
    named.findIndex((each) => each.name === name) === index;
  return named.filter(isOpen);
}

function listReported({ status = {} }: App): { name: string; reason: string }[] {
  const reports = [status.rejection, status.crashLoop?.rejection, status.answer?.rejection, ...(status.findings ?? [])];
  return reports.flatMap((report) =>
    (report?.variables ?? []).map((name) => ({ name, reason: report?.message ?? '' })),
  );
}

/** Variables without which an MCP server does not work, as its files say. */
function listPlanned({ status }: App): { name: string; reason: string }[] {
  return (status?.plan?.mcp?.environment ?? [])
    .filter(({ required }) => required)
    .map(({ name, description }) => ({ name, reason: description ?? 'Files of the repository ask for it.' }));
}
