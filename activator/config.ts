// The environment variables of the activator.
import { z } from 'zod';
import { installationSettings } from '../crds/installation-settings.ts';
import { activator } from '../crds/names.ts';
import { count, internalPort, secret } from '../lib/config.ts';
import { defineSetting, kinds } from '../lib/settings.ts';

/** Every variable that the activator reads. */
export const environment = z.object({
  MOORAGE_APPS_DOMAIN: z
    .string()
    .default('moorage-apps.localhost')
    .describe('An app answers at https://<app>.<domain>.'),
  MOORAGE_BASE_URL: z
    .url({ protocol: /^https?$/ })
    .default('https://moorage.localhost')
    .describe('Public URL of the API, where problems are described.'),
  MOORAGE_APPS_NAMESPACE: installationSettings.appsNamespace,
  MOORAGE_SERVICE_ACCOUNT: z
    .string()
    .optional()
    .describe('Folder with the token and CA of a service account, where it is not the usual one.'),
  MOORAGE_ACTIVATOR_HOST: z.string().optional().describe('Address to listen on; all addresses if not set.'),
  MOORAGE_ACTIVATOR_PORT: count
    .max(65_535)
    .default(activator.port)
    .describe('Port on which the gateway reaches apps through it.'),
  MOORAGE_ACTIVATOR_CONTROL_PORT: count
    .max(65_535)
    .default(activator.controlPort)
    .describe('Port on which the operator asks which apps are in use.'),
  MOORAGE_ACTIVATOR_HELD_PER_APP: defineSetting(kinds.number({ min: 1 }), {
    value: 'activator.heldPerApp',
    default: 2_000,
    description: 'Requests that are held for one app while it wakes.',
    chartDescription: 'Maximum number of requests that a pod of it holds for one app that wakes.',
  }),
  MOORAGE_ACTIVATOR_HELD: defineSetting(kinds.number({ min: 1 }), {
    value: 'activator.held',
    default: 8_000,
    description: 'Requests that are held for all apps together.',
    chartDescription: 'Maximum number of requests that a pod of it holds for all apps.',
  }),
  MOORAGE_ACTIVATOR_HELD_PER_CLIENT: defineSetting(kinds.number({ min: 1 }), {
    value: 'activator.heldPerClient',
    default: 100,
    description: 'Requests that are held for one client (an IPv4 address, or a /56 of IPv6), for all apps together.',
    chartDescription:
      'Maximum number of requests that a pod of it holds for one client: an IPv4 address, or a /56 of IPv6. A client is known by X-Forwarded-For of the gateway; proxies before it belong in api.trustedProxies.',
  }),
  MOORAGE_TRUSTED_PROXIES: installationSettings.trustedProxies,
  MOORAGE_PROBE_TOKEN: secret
    .optional()
    .describe('Secret that marks requests of the platform, which wake no app; the operator has the same one.'),
  MOORAGE_ACTIVATOR_DRAIN_SECONDS: defineSetting(kinds.number({ min: 1, max: 3_600 }), {
    value: 'activator.drainSeconds',
    default: 30,
    description: 'How many seconds requests in progress may take after SIGTERM.',
    chartDescription: 'How many seconds requests and connections in progress may take when a pod of it ends.',
  }),
  MOORAGE_INTERNAL_PORT: internalPort,
});
