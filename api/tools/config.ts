// The settings of tools, read from the environment: where the services behind them answer.
import { z } from 'zod';
import { count, readConfig } from '../../lib/config.ts';
import { backingServices, type ServiceName, type ServiceUrls } from './backing.ts';

export interface ToolSettings {
  readonly urls: ServiceUrls;
  /** Calls under way at once: in this process, and of one caller. */
  readonly places: number;
  readonly placesPerCaller: number;
}

const names = Object.keys(backingServices) as ServiceName[];
const serviceField = z.url({ protocol: /^https?$/, error: 'must be the base URL of the service, like http://gotenberg:3000' })
  .transform((url) => url.replace(/\/+$/, '')).optional();
const addresses = z.object(Object.fromEntries(names.map((name) => [backingServices[name].variable, serviceField])));
const places = z.object({ MOORAGE_TOOL_CALLS: count.default(64), MOORAGE_TOOL_CALLS_PER_CALLER: count.default(16) });
const environment = z.intersection(addresses, places);

/** Reads the settings. @throws Error that names every variable that is wrong */
export function readToolSettings(variables: NodeJS.ProcessEnv = process.env): ToolSettings {
  const read = readConfig(environment, variables);
  const given: Readonly<Record<string, unknown>> = read;
  return {
    urls: Object.fromEntries(names.flatMap((name) => {
      const url = given[backingServices[name].variable];
      return url === undefined ? [] : [[name, url]];
    })),
    places: read.MOORAGE_TOOL_CALLS,
    placesPerCaller: read.MOORAGE_TOOL_CALLS_PER_CALLER,
  };
}
