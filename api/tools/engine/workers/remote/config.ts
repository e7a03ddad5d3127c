// The configuration of a workers' pod, read from the environment. It has no secrets.
import { z } from 'zod';
import { count } from '../../../../../lib/config.ts';

const port = count.max(65_535, 'must be a port, 1 to 65535');

/** Every variable that it reads. */
export const environment = z.object({
  MOORAGE_PORT: port.describe('Port on which the API hands over tasks.'),
  MOORAGE_INTERNAL_PORT: port.default(9090).describe('Port of /healthz, /readyz and /metrics.'),
  MOORAGE_DRAIN_SECONDS: z.coerce
    .number()
    .int()
    .min(0)
    .default(5)
    .describe('How long tasks are still taken after SIGTERM, while the API learns of it.'),
});
