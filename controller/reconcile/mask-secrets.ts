// Masks the secrets of an app in what its pods report, before anything is made of it: the status, its events and the
// annotations are public, or read by more people than the secret is for.
import type { HostedApp } from '../../crds/hosted-app.ts';
import { appToken } from '../../lib/app-token.ts';
import { pushToken } from '../../lib/push-token.ts';
import { createSecretMask, isSecretName, type SecretMask } from '../../lib/secret-mask.ts';
import type { Pod, Termination } from '../objects/kinds.ts';
import { appWithSettings } from '../steps/build/app-manifest.ts';
import { generatedValues } from '../steps/deploy/generated-secrets.ts';
import { generatedPassword } from '../steps/deploy/services/login.ts';
import type { InstallationConfig } from './installation-config.ts';

/**
 * The mask of an app. The operator makes the generated passwords, secrets and tokens, and so knows them; what the
 * installation puts into Secrets (spec.run.secrets) it may not read, so that is masked by its variables and its look.
 */
export function appSecretMask(app: HostedApp, config: InstallationConfig): SecretMask {
  const { spec } = appWithSettings(app, app.status?.settings?.values);
  const whole: HostedApp = { ...app, spec };
  const { models, services } = config.run;
  const { name, uid } = app.metadata;
  const set = [...spec.run.env, ...spec.build.env, ...spec.services.flatMap(({ env }) => env)];
  return createSecretMask({
    values: [
      ...spec.services.map((service) => generatedPassword(whole, service, services.passwordSecret)),
      ...generatedValues(whole, services.passwordSecret),
      models === undefined ? undefined : appToken({ name, uid }, models.tokenSecret),
      pushToken({ name, uid }, config.registry.tokenSecret),
      ...set.filter(({ name: variable }) => isSecretName(variable)).map(({ value }) => value),
    ],
    variables: spec.run.secrets.map(({ name: variable }) => variable),
  });
}

/** The pods, with what their containers said at their end masked. Those of a cache are shared, so they are copied where they change. */
export function maskPods(pods: readonly Pod[], app: HostedApp, config: InstallationConfig): readonly Pod[] {
  if (!pods.some(hasLastWords)) return pods;
  const mask = appSecretMask(app, config);
  return pods.map((pod) => {
    if (!hasLastWords(pod)) return pod;
    const copy = structuredClone(pod);
    for (const ended of endsOf(copy)) if (ended.message !== undefined) ended.message = mask(ended.message);
    return copy;
  });
}

function hasLastWords(pod: Pod): boolean {
  return endsOf(pod).some(({ message }) => message !== undefined);
}

function endsOf({ status }: Pod): Termination[] {
  const containers = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  return containers
    .flatMap(({ state, lastState }) => [state?.terminated, lastState?.terminated])
    .filter((ended) => ended !== undefined);
}
