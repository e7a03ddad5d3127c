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
  MOORAGE_FETCH_TEST_HOSTS: list
    .pipe(
      z.array(
        z.string().regex(/^(?:\[[0-9a-f:.]+\]|[A-Za-z0-9._-]+):\d{1,5}$/, 'must be host:port, such as 127.0.0.1:9000'),
      ),
    )
    .default([])
    .describe(
      'For trials and tests: `host:port` pairs that tools may fetch from although they are not public, such as 127.0.0.1:9000. Refused where NODE_ENV is production, as in the image of the API.',
    ),
});

/** Reads the settings. @throws Error that names every variable that is wrong. */
export function readFetchConfig(variables: NodeJS.ProcessEnv = process.env): GuardOptions {
  const read = readConfig(environment, variables);
  const testHosts = read.MOORAGE_FETCH_TEST_HOSTS;
  if (testHosts.length > 0 && variables['NODE_ENV'] === 'production')
    throw new Error(
      'invalid configuration in the environment:\n  MOORAGE_FETCH_TEST_HOSTS: must not be set where NODE_ENV is production: it would let callers reach inside',
    );
  return {
    closed: read.MOORAGE_CLOSED_CIDRS,
    closedNames: read.MOORAGE_FETCH_CLOSED_NAMES.map((name) => name.toLowerCase()),
    // Hosts as the guard compares them: without the brackets of an address.
    allow: testHosts.map((host) => host.toLowerCase().replaceAll(/[[\]]/g, '')),
    ...(read.MOORAGE_FETCH_PORTS === undefined ? {} : { ports: read.MOORAGE_FETCH_PORTS }),
  };
}
