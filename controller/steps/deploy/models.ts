// What an app needs to ask models: a Secret with base URL and token of its own, its variables, and the way to the API.
import type { V1EnvVar, V1NetworkPolicyEgressRule, V1NetworkPolicyPeer } from '@kubernetes/client-node';
import { createAppToken } from '../../../lib/app-tokens.ts';
import { labels } from '../../../crds/names.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import { hashOf, type Manifest, type Wire } from '../../../lib/kubernetes/index.ts';
import { appSecret } from './app-secret.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import { namesModelKey, type ModelAccess } from './references.ts';

/** Variables that clients of the OpenAI form read by themselves. */
const keys = { OPENAI_BASE_URL: 'base-url', OPENAI_API_KEY: 'token' } as const;

/**
 * The Secret, when the app may ask models and the installation makes tokens. Its name changes with what it holds, so
 * that
 * creating it once is enough: the operator neither reads nor overwrites Secrets.
 */
export function modelsSecret(app: HostedApp, config: InstallationConfig): Manifest | undefined {
  const { models } = config.run;
  if (models === undefined || !app.spec.models.enabled) return undefined;
  const { name, uid } = app.metadata;
  const stringData = {
    [keys.OPENAI_BASE_URL]: models.baseUrl,
    [keys.OPENAI_API_KEY]: createAppToken({ name, uid }, models.tokenSecret),
  };
  const secret = `${name}-models-${hashOf(stringData).slice(0, 8)}`;
  return appSecret(app, { name: secret, component: 'models', stringData });
}

/** The app's variables from that Secret; those that the author has set stay the author's. */
export function modelVariables(app: HostedApp, config: InstallationConfig): Wire<V1EnvVar>[] {
  const secret = modelsSecret(app, config);
  if (secret === undefined) return [];
  const taken = new Set([...app.spec.run.env, ...app.spec.run.secrets].map(({ name }) => name));
  return Object.entries(keys)
    .filter(([name]) => !taken.has(name))
    .map(([name, key]) => ({ name, valueFrom: { secretKeyRef: { name: secret.metadata.name, key } } }));
}

/** For values of the author that name the token. */
const keyVariable = 'MOORAGE_MODELS_KEY';

/** What values of the author may name; undefined where the app has no models. */
export function modelAccess(app: HostedApp, config: InstallationConfig): ModelAccess | undefined {
  const { models } = config.run;
  return models === undefined || !app.spec.models.enabled ? undefined : { url: models.baseUrl, keyVariable };
}

/** The token under a name of ours, where a value of the author names it: it comes before that value. */
export function modelKeyVariable(app: HostedApp, config: InstallationConfig): Wire<V1EnvVar>[] {
  const secret = modelsSecret(app, config);
  if (secret === undefined || !app.spec.run.env.some(({ value }) => namesModelKey(value))) return [];
  return [{ name: keyVariable, valueFrom: { secretKeyRef: { name: secret.metadata.name, key: keys.OPENAI_API_KEY } } }];
}

/** The pods of a part of the platform, as a policy names them. */
export function platformPods({ systemNamespace }: InstallationConfig, component: string): Wire<V1NetworkPolicyPeer> {
  return {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': systemNamespace } },
    podSelector: { matchLabels: { [labels.name]: 'moorage', [labels.component]: component } },
  };
}

/** The opening in the app's NetworkPolicy towards the API; everything else inside the cluster stays closed. */
export function modelEgress(app: HostedApp, config: InstallationConfig): Wire<V1NetworkPolicyEgressRule>[] {
  const { models } = config.run;
  if (models === undefined || !app.spec.models.enabled) return [];
  return [
    {
      to: [platformPods(config, 'api')],
      // Of the API, only what answers apps.
      ports: [{ port: 8081, protocol: 'TCP' }],
    },
  ];
}
