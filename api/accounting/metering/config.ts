// Configuration of metering, read from the environment.
import { z } from 'zod';
import { count, readConfig } from '../../../lib/config.ts';

export interface MeteringSettings {
  /** What gateways and the operator show to the receivers; without it there are none. */
  readonly token: string | undefined;
  /** How long a number may be missing before it is a loss. */
  readonly graceMs: number;
}

/** Every variable of metering. */
export const environment = z.object({
  MOORAGE_METERING_TOKEN: z
    .string()
    .min(32, 'must be a secret of at least 32 characters')
    .optional()
    .describe(
      'Secret of at least 32 characters that gateways send with their access logs to /v1/logs on the internal port, and the operator with what apps use to /compute. Without it, neither is received.',
    ),
  MOORAGE_METERING_GRACE_SECONDS: count
    .default(3_600)
    .describe(
      'Seconds after which a request that a gateway counted and sent no record of is reported as lost. A record that comes later is counted all the same.',
    ),
});

/** Reads the settings. @throws Error that names every variable that is wrong. */
export function readMeteringSettings(variables: NodeJS.ProcessEnv = process.env): MeteringSettings {
  const read = readConfig(environment, variables);
  return { token: read.MOORAGE_METERING_TOKEN, graceMs: read.MOORAGE_METERING_GRACE_SECONDS * 1000 };
}
