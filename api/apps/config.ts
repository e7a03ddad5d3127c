// The configuration of app calls, read from the environment.
import { z } from 'zod';
import { count, readConfig } from '../../lib/config.ts';

export interface AppSettings {
  /** Time limit of a call, until the last byte of the response. */
  readonly limitMs: number;
  /** Sent to the activator when the platform lists an app's operations, so that the app is not woken. */
  readonly probeToken: string | undefined;
}

/** Every variable of app calls. */
export const environment = z.object({
  MOORAGE_APP_CALL_SECONDS: count
    .max(3_600)
    .default(120)
    .describe('Time limit of a call to an app, until the last byte of its response.'),
  MOORAGE_PROBE_TOKEN: z
    .string()
    .min(32, 'must be a secret of at least 32 characters')
    .optional()
    .describe("Secret that the platform's own requests send to the activator, so that they do not wake apps."),
});

/** Reads the configuration. @throws Error that names every wrong variable */
export function readAppSettings(variables: NodeJS.ProcessEnv = process.env): AppSettings {
  const read = readConfig(environment, variables);
  return { limitMs: read.MOORAGE_APP_CALL_SECONDS * 1_000, probeToken: read.MOORAGE_PROBE_TOKEN };
}
