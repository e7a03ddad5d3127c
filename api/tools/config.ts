// The settings of tools, read from the environment: where the services behind them answer.
import { z } from 'zod';
import { readConfig } from '../../lib/config.ts';
import { backingServices, type ServiceName, type ServiceUrls } from './backing.ts';

export interface ToolSettings {
  readonly urls: ServiceUrls;
}

const names = Object.keys(backingServices) as ServiceName[];
const serviceField = z.url({ protocol: /^https?$/, error: 'must be the base URL of the service, like http://gotenberg:3000' })
  .transform((url) => url.replace(/\/+$/, '')).optional();
const environment = z.object(Object.fromEntries(names.map((name) => [backingServices[name].variable, serviceField])));

/** Reads the settings. @throws Error that names every variable that is wrong */
export function readToolSettings(variables: NodeJS.ProcessEnv = process.env): ToolSettings {
  const read = readConfig(environment, variables);
  return {
    urls: Object.fromEntries(names.flatMap((name) => {
      const url = read[backingServices[name].variable];
      return url === undefined ? [] : [[name, url]];
    })),
  };
}
