// The Secrets that the platform creates for an app. Generated values, for a variable of the app whose value is ${{secret}},
// such as a session key: unpredictable, the same at each start, and different for each app. Access to models. And which
// Secrets of the author's values are no longer needed.
import { createHmac } from 'node:crypto';
import type { V1EnvVar } from '@kubernetes/client-node';
import type { Component } from '../../../crds/components.ts';
import { formatControlSecretName } from '../../../crds/control.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { labels } from '../../../crds/names.ts';
import { generatedSecret } from '../../../crds/values.ts';
import { createAppToken } from '../../../lib/app-tokens.ts';
import { computeHash, isApplied, type Manifest, type Wire } from '../../../lib/kubernetes/index.ts';
import { isFinished, secrets as secretResource, type Pod } from '../../objects/kinds.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import type { Action, StatusFields } from '../../reconcile/outcome.ts';
import type { Snapshot } from '../../reconcile/snapshot.ts';
import { hasData, hasLegacyKey, readDataKey, toKeptObject } from '../../retention/retention.ts';
import { collectVariables } from './components.ts';
import { readTemplateHash } from './pods.ts';
import { readCounts } from './rollout.ts';
import { hasModelKeyReference, type ModelAccess } from './services/connections.ts';

const key = 'value';

/** A Secret for each such variable, created once and never read or changed: it outlives whatever it was derived from. */
export function buildGeneratedSecrets(app: HostedApp, config: InstallationConfig): Manifest[] {
  return listVariables(app).map((name) => buildGeneratedSecret(app, name, config.run.services.passwordSecret));
}

/** Their names. */
export function listGeneratedSecretNames(app: HostedApp): string[] {
  return listVariables(app).map((name) => formatSecretName(app, name));
}

/** Their values when the Secrets are created. */
export function deriveGeneratedValues(app: HostedApp, secret: string): string[] {
  return listVariables(app).map((name) => deriveValue(app, name, secret));
}

function listVariables(app: HostedApp): string[] {
  const { env } = collectVariables(app);
  return [...new Set(env.filter(({ value }) => generatedSecret.test(value)).map(({ name }) => name))];
}

/** The variable, by reference. */
export function buildGeneratedVariable(app: HostedApp, variable: string): Wire<V1EnvVar> {
  return { name: variable, valueFrom: { secretKeyRef: { name: formatSecretName(app, variable), key } } };
}

function buildGeneratedSecret(app: HostedApp, variable: string, secret: string): Manifest {
  const stringData = { [key]: deriveValue(app, variable, secret) };
  const appSecret = buildAppSecret(app, {
    name: formatSecretName(app, variable),
    component: 'generated-secret',
    stringData,
  });
  return hasData(app) ? toKeptObject(app, appSecret) : appSecret;
}

/** 64 hexadecimal digits, as long as any framework requires. */
function deriveValue(app: HostedApp, variable: string, secret: string): string {
  return createHmac('sha256', secret)
    .update(`moorage generated secret 1\n${app.metadata.name}\n${readDataKey(app)}\n${variable}`)
    .digest('hex');
}

/** Derived from the app's identity too, so a later namesake does not find the Secret of the one before. */
function formatSecretName(app: HostedApp, variable: string): string {
  const hash = computeHash({ uid: readDataKey(app), variable });
  return `${app.metadata.name}-secret-${hash.slice(0, hasLegacyKey(app) ? 8 : 20)}`;
}

// Access to models: a Secret with the base URL and the app's token, and the variables that refer to it.

/** The variables that OpenAI clients read. */
const keys = { OPENAI_BASE_URL: 'base-url', OPENAI_API_KEY: 'token' } as const;

/**
 * The Secret, if the app may use models and the installation issues tokens. Its name changes with its content, so creating
 * it once is enough: the operator neither reads nor overwrites Secrets.
 */
export function buildModelsSecret(app: HostedApp, config: InstallationConfig): Manifest | undefined {
  const { models } = config.run;
  if (models === undefined || !app.spec.models.enabled) return undefined;
  const { name, uid } = app.metadata;
  const stringData = {
    [keys.OPENAI_BASE_URL]: models.baseUrl,
    [keys.OPENAI_API_KEY]: createAppToken({ name, uid }, models.tokenSecret),
  };
  const secret = `${name}-models-${computeHash(stringData).slice(0, 8)}`;
  return buildAppSecret(app, { name: secret, component: 'models', stringData });
}

/** A component's variables from that Secret, except those that the author has set. */
export function buildModelVariables(
  app: HostedApp,
  config: InstallationConfig,
  { env, secrets }: Pick<Component, 'env' | 'secrets'>,
): Wire<V1EnvVar>[] {
  const secret = buildModelsSecret(app, config);
  if (secret === undefined) return [];
  const takenNames = new Set([...env, ...secrets].map(({ name }) => name));
  return Object.entries(keys)
    .filter(([name]) => !takenNames.has(name))
    .map(([name, key]) => ({ name, valueFrom: { secretKeyRef: { name: secret.metadata.name, key } } }));
}

/** Refers to the token in values of the author. */
const keyVariable = 'MOORAGE_MODELS_KEY';

/** What values of the author may refer to; undefined if the app has no models. */
export function resolveModelAccess(app: HostedApp, config: InstallationConfig): ModelAccess | undefined {
  const { models } = config.run;
  return models === undefined || !app.spec.models.enabled ? undefined : { url: models.baseUrl, keyVariable };
}

/** The token as our own variable, if a value of the author refers to it: it must come before that value. */
export function buildModelKeyVariables(
  app: HostedApp,
  config: InstallationConfig,
  { env }: Pick<Component, 'env'>,
): Wire<V1EnvVar>[] {
  const secret = buildModelsSecret(app, config);
  if (secret === undefined || !env.some(({ value }) => hasModelKeyReference(value))) return [];
  return [{ name: keyVariable, valueFrom: { secretKeyRef: { name: secret.metadata.name, key: keys.OPENAI_API_KEY } } }];
}

// Values that the author has set through the API (spec.control.secrets). The API creates a Secret for each version and has no
// other right on it, so the operator deletes those that nothing refers to any more.

/** Old versions are deleted in batches: an author may have set very many before the first of them was ready. */
const maximumDeletions = 100;
/** A slow request may create the Secret of a version that is old by then, so the last ones are deleted again. */
const repeatedDeletions = 20;

interface SecretRemoval {
  readonly status: StatusFields['secretVersions'];
  readonly actions: readonly Action[];
}

/**
 * Deletes the Secrets of all versions up to the highest one, except those of the current values and of Jobs that may still
 * start. Versions are never used twice, so a decision on an old snapshot deletes nothing that is needed now.
 *
 * @param isSettled every pod runs the current values, and no other template will be started
 */
export function removeOldSecrets(
  { app, tasks }: Pick<Snapshot, 'app' | 'tasks'>,
  before: StatusFields['secretVersions'],
  isSettled: boolean,
): SecretRemoval {
  const { secretVersion: highest = 0, secrets = [] } = app.spec.control ?? {};
  const { upTo, kept } = before ?? { upTo: 0, kept: [] };
  const isCurrent = (version: number): boolean => secrets.some((secret) => secret.version === version);
  if (!isSettled || (upTo >= highest && kept.every(isCurrent))) return { status: before, actions: [] };
  const next = Math.max(upTo, Math.min(highest, upTo + maximumDeletions));
  const first = Math.max(0, upTo - repeatedDeletions) + 1;
  const newest = Array.from({ length: next - first + 1 }, (_, index) => first + index);
  const versions = [...new Set([...kept, ...newest])];
  const formatName = (version: number): string => formatControlSecretName(app.metadata, version);
  // Its name is unique, so a search in the text finds every reference.
  const waiting = JSON.stringify([tasks?.cronJobs, tasks?.jobs.filter((job) => !isFinished(job))]);
  const isNeeded = (version: number): boolean => isCurrent(version) || waiting.includes(formatName(version));
  return {
    status: { upTo: next, kept: versions.filter(isNeeded) },
    actions: versions
      .filter((version) => !isNeeded(version))
      .map((version) => ({
        ...{ kind: 'deleteNamed', resource: secretResource },
        ref: { namespace: app.metadata.namespace, name: formatName(version) },
      })),
  };
}

/** Whether every pod of an app runs the template of this Deployment, and no trial may start another one. */
export function isSettled(
  { deployment, pods, trial }: Pick<Snapshot, 'deployment' | 'pods' | 'trial'>,
  manifest: Manifest,
  { hash, replicas }: { readonly hash: string; readonly replicas: number },
): boolean {
  if (deployment === undefined || !isApplied(deployment, manifest)) return false;
  const { observedGeneration, available, updated, total } = readCounts(deployment);
  return (
    observedGeneration >= (deployment.metadata.generation ?? 0) &&
    total === updated &&
    available >= replicas &&
    pods.every((pod) => hasEnded(pod) || readTemplateHash(pod) === hash) &&
    trial?.deployment === undefined &&
    (trial?.pods ?? []).every(hasEnded)
  );
}

/** Evicted pods, for example, stay listed and are never started again. */
function hasEnded({ status }: Pod): boolean {
  return status?.phase === 'Failed' || status?.phase === 'Succeeded';
}

/** Created once and never changed, so the name must change with the content: the operator neither reads nor overwrites Secrets. */
export function buildAppSecret(
  app: HostedApp,
  secret: { readonly name: string; readonly component: string; readonly stringData: Record<string, string> },
): Manifest {
  const { name, namespace, uid } = app.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: secret.name,
      namespace,
      labels: {
        [labels.app]: name,
        [labels.component]: secret.component,
        [labels.partOf]: 'moorage',
        [labels.managedBy]: 'moorage',
      },
      ownerReferences: [
        { apiVersion: app.apiVersion, kind: app.kind, name, uid, controller: true, blockOwnerDeletion: true },
      ],
    },
    type: 'Opaque',
    immutable: true,
    stringData: secret.stringData,
  };
}
