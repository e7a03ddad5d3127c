// Settings of the guarded fetch, read from the environment.
import { z } from 'zod';
import { subnets } from '../../../lib/subnets.ts';
import { list, readConfig } from '../../../lib/config.ts';
import type { GuardOptions } from './guard.ts';

const ports = list.transform((items) => items.map(Number)).pipe(z.array(z.int().min(1).max(65_535)).min(1));

/** Every variable of the guarded fetch. */
export const environment = z.object({
  MOORAGE_FETCH_PORTS: ports
    .optional()
    .describe('TCP ports that tools may fetch from. Default: 80, 443, 8080 and 8443.'),
  MOORAGE_CLOSED_CIDRS: subnets
    .default([])
    .describe(
      'Further subnets that tools never fetch from, such as those of nodes, pods and services. Private, reserved and metadata addresses are always closed.',
    ),
  MOORAGE_FETCH_CLOSED_NAMES: list.default([]).describe('Host names that tools never fetch from.'),
});

/** Reads the settings. @throws Error that names every variable that is wrong. */
export function readFetchConfig(variables: NodeJS.ProcessEnv = process.env): GuardOptions {
  const read = readConfig(environment, variables);
  return {
    closed: read.MOORAGE_CLOSED_CIDRS,
    closedNames: read.MOORAGE_FETCH_CLOSED_NAMES.map((name) => name.toLowerCase()),
    ...(read.MOORAGE_FETCH_PORTS === undefined ? {} : { ports: read.MOORAGE_FETCH_PORTS }),
  };
}
