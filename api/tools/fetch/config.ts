// Settings of the guarded fetch, read from the environment.
import { z } from 'zod';
import { subnets } from '../../../lib/subnets.ts';
import { list, readConfig } from '../../../lib/config.ts';
import type { GuardOptions } from './guard.ts';

const ports = list.transform((items) => items.map(Number)).pipe(z.array(z.int().min(1).max(65_535)).min(1));

const environment = z.object({
  MOORAGE_FETCH_PORTS: ports.optional(),
  /** Subnets that are public by their number, yet inside: of nodes, pods and services. */
  MOORAGE_CLOSED_CIDRS: subnets.default([]),
  MOORAGE_FETCH_CLOSED_NAMES: list.default([]),
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
