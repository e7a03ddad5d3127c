// Reads the configuration of metering, in the API and in the shipper, from the environment.
import { z } from 'zod';
import { count, readConfig, secret } from '../../../lib/config.ts';
import { defineSetting, kinds } from '../../../lib/settings.ts';

export interface MeteringSettings {
  /** What gateways and the operator show to the receivers; without it there are none. */
  readonly token: string | undefined;
  /** How long a number may be missing before it is a loss. */
  readonly graceMs: number;
}

/** Every variable of metering. */
export const environment = z.object({
  MOORAGE_METERING_TOKEN: secret
    .optional()
    .describe(
      'Secret of at least 32 characters that gateways send with their access logs to /v1/logs on the internal port, and the operator with what apps use to /compute. Without it, neither is received.',
    ),
  MOORAGE_METERING_GRACE_SECONDS: defineSetting(kinds.number({ min: 1 }), {
    value: 'metering.graceSeconds',
    default: 3_600,
    description:
      'Seconds after which a request that a gateway counted and sent no record of is reported as lost. A record that comes later is counted all the same.',
  }),
});

/** Reads the settings. @throws Error that names every variable that is wrong. */
export function readMeteringSettings(variables: NodeJS.ProcessEnv = process.env): MeteringSettings {
  const read = readConfig(environment, variables);
  return { token: read.MOORAGE_METERING_TOKEN, graceMs: read.MOORAGE_METERING_GRACE_SECONDS * 1000 };
}

export interface ShipperConfig {
  readonly log: string;
  readonly receiver: string;
  readonly tokenFile: string;
  readonly limitBytes: number;
  readonly port: number;
}

/** Every variable of the shipper. */
export const shipperEnvironment = z.object({
  MOORAGE_ACCESS_LOG: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .describe(
      'File into which the gateway writes its access log as JSON. The shipper keeps its position in the same folder.',
    ),
  MOORAGE_RECEIVER_URL: z
    .url({ protocol: /^https?$/, error: 'must be a URL such as http://moorage-api-internal:9090/v1/logs' })
    .describe('Where access logs are received.'),
  MOORAGE_METERING_TOKEN_FILE: z
    .string()
    .describe(
      'File with the metering token. It is read again at each batch, and waited for where it is not there yet.',
    ),
  MOORAGE_ACCESS_LOG_LIMIT_MIB: count
    .default(512)
    .describe(
      'Mebibytes of records that may wait while they cannot be sent. Beyond that the oldest are dropped, and reported as lost.',
    ),
  MOORAGE_SHIPPER_PORT: count.max(65_535).default(9091).describe('Port of /healthz, /readyz and /metrics.'),
});

/** Reads the configuration. @throws Error that names every variable that is wrong. */
export function readShipperConfig(variables: NodeJS.ProcessEnv = process.env): ShipperConfig {
  const read = readConfig(shipperEnvironment, variables);
  return {
    log: read.MOORAGE_ACCESS_LOG,
    receiver: read.MOORAGE_RECEIVER_URL,
    tokenFile: read.MOORAGE_METERING_TOKEN_FILE,
    limitBytes: read.MOORAGE_ACCESS_LOG_LIMIT_MIB * 1_048_576,
    port: read.MOORAGE_SHIPPER_PORT,
  };
}
