// The environment variables of the activator.
import { z } from 'zod';
import { activator } from '../crds/names.ts';
import { count } from '../lib/config.ts';
import { subnets } from '../lib/subnets.ts';

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
  MOORAGE_APPS_NAMESPACE: z.string().default('moorage-apps').describe('Namespace of HostedApps and their pods.'),
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
  MOORAGE_ACTIVATOR_HELD_PER_APP: count.default(2_000).describe('Requests that are held for one app while it wakes.'),
  MOORAGE_ACTIVATOR_HELD: count.default(8_000).describe('Requests that are held for all apps together.'),
  MOORAGE_ACTIVATOR_HELD_PER_CLIENT: count
    .default(100)
    .describe('Requests that are held for one client (an IPv4 address, or a /56 of IPv6), for all apps together.'),
  MOORAGE_TRUSTED_PROXIES: subnets.default([]).describe('Subnets of proxies, which are no clients in X-Forwarded-For.'),
  MOORAGE_PROBE_TOKEN: z
    .string()
    .min(32, 'must be a secret of at least 32 characters')
    .optional()
    .describe('Secret that marks requests of the platform, which wake no app; the operator has the same one.'),
  MOORAGE_ACTIVATOR_DRAIN_SECONDS: count
    .max(3_600)
    .default(30)
    .describe('How many seconds requests in progress may take after SIGTERM.'),
  MOORAGE_INTERNAL_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65_535)
    .default(9090)
    .describe('Port of /healthz, /readyz and /metrics.'),
});
