// The environment variables of the registry proxy.
import { z } from 'zod';
import { count, flag } from '../../lib/config.ts';

/** Every variable that the registry proxy reads. */
export const environment = z.object({
  MOORAGE_REGISTRY_HOST: z.string().describe('Registry of app images.'),
  MOORAGE_REGISTRY_INSECURE: flag.default(false).describe('true: the registry is reached over plain http.'),
  MOORAGE_REGISTRY_MIRROR: z
    .string()
    .optional()
    .describe(
      'Registry used instead of others, such as Docker Hub; if it is the registry of app images, base images are read there.',
    ),
  MOORAGE_REGISTRY_CREDENTIALS: z
    .string()
    .describe('File with the account of the registry, in the form of a dockerconfigjson.'),
  MOORAGE_PUSH_TOKEN_SECRET: z
    .string()
    .min(32, 'must be a secret of at least 32 characters')
    .describe('Secret of at least 32 characters that makes the tokens of apps; the same as that of the operator.'),
  MOORAGE_REGISTRY_PROXY_PORT: count.max(65_535).default(5000).describe('Port on which builds reach it.'),
  MOORAGE_INTERNAL_PORT: count.max(65_535).default(9090).describe('Port of /healthz, /readyz and /metrics.'),
});
