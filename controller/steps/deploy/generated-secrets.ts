// Secrets that an app asks the platform to make up, such as the key that signs its sessions: a variable of run.env whose
// value is ${{secret}}. Each is random to everybody, the same at each start, and another for each app.
import { createHmac } from 'node:crypto';
import type { V1EnvVar } from '@kubernetes/client-node';
import { generatedSecret } from '../../../crds/values.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { hashOf, type Manifest, type Wire } from '../../../lib/kubernetes/index.ts';
import { appSecret } from './app-secret.ts';
import { dataKey, hasData, hasLegacyKey, keptObject } from './data.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';

const key = 'value';

/** A Secret for each such variable, created once and never read or changed: it outlives whatever it was made of. */
export function generatedSecrets(app: HostedApp, config: InstallationConfig): Manifest[] {
  return listVariables(app).map((name) => secretOf(app, name, config.run.services.passwordSecret));
}

/** Their names. */
export function generatedSecretNames(app: HostedApp): string[] {
  return listVariables(app).map((name) => nameOf(app, name));
}

/** Their values, as they are when their Secrets are made. */
export function generatedValues(app: HostedApp, secret: string): string[] {
  return listVariables(app).map((name) => valueOf(app, name, secret));
}

function listVariables(app: HostedApp): string[] {
  return app.spec.run.env.filter(({ value }) => generatedSecret.test(value)).map(({ name }) => name);
}

/** The variable, by reference. */
export function generatedVariable(app: HostedApp, variable: string): Wire<V1EnvVar> {
  return { name: variable, valueFrom: { secretKeyRef: { name: nameOf(app, variable), key } } };
}

function secretOf(app: HostedApp, variable: string, secret: string): Manifest {
  const stringData = { [key]: valueOf(app, variable, secret) };
  const made = appSecret(app, { name: nameOf(app, variable), component: 'generated-secret', stringData });
  return hasData(app) ? keptObject(app, made) : made;
}

/** 64 hexadecimal digits, which is as long as any framework asks for. */
function valueOf(app: HostedApp, variable: string, secret: string): string {
  return createHmac('sha256', secret)
    .update(`moorage generated secret 1\n${app.metadata.name}\n${dataKey(app)}\n${variable}`)
    .digest('hex');
}

/** Of the app's identity too: a namesake that comes after it does not find the Secret of the one before. */
function nameOf(app: HostedApp, variable: string): string {
  const hash = hashOf({ uid: dataKey(app), variable });
  return `${app.metadata.name}-secret-${hash.slice(0, hasLegacyKey(app) ? 8 : 20)}`;
}
