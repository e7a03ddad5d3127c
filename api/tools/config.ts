// The configuration of tools, read from the environment: URLs of backing services and limits on concurrent calls.
import { z } from 'zod';
import { count, readConfig } from '../../lib/config.ts';
import { defineSetting, kinds } from '../../lib/settings.ts';
import { backingServices, type OffCauses, type ServiceName, type ServiceUrls } from './services/backing-services.ts';

export interface ToolSettings {
  readonly urls: ServiceUrls;
  /** Why services without a URL are off. */
  readonly offCauses: OffCauses;
  /** Model that the speech server transcribes with. */
  readonly speechModel: string;
  /** Maximum calls in progress, in this process and per caller. */
  readonly maxConcurrent: number;
  readonly maxConcurrentPerCaller: number;
  /** URL of the workers' pods; without it, this process starts the workers. */
  readonly workersUrl: string | undefined;
}

const names = Object.keys(backingServices) as ServiceName[];
const serviceField = z
  .url({ protocol: /^https?$/, error: 'must be the base URL of the service, such as http://gotenberg:3000' })
  .transform((url) => url.replace(/\/+$/, ''))
  .optional();
const addresses = z.object(
  Object.fromEntries(
    names.map((name) => [
      backingServices[name].variable,
      serviceField.describe(`Base URL of ${backingServices[name].title}.`),
    ]),
  ),
);
const toCauseVariable = (name: ServiceName): string => backingServices[name].variable.replace(/_URL$/, '_OFF_BECAUSE');
const causes = z.object(
  Object.fromEntries(
    names.map((name) => [
      toCauseVariable(name),
      z
        .string()
        .max(300)
        .optional()
        .describe(`Why ${backingServices[name].title} is off, for GET /t; without it, only how it is enabled is said.`),
    ]),
  ),
);
const concurrency = z.object({
  MOORAGE_TOOL_CALLS: count.default(64).describe('Maximum number of tool calls in progress in one process.'),
  MOORAGE_TOOL_CALLS_PER_CALLER: count.default(16).describe('Maximum number of tool calls in progress of one caller.'),
});
const workers = z.object({
  MOORAGE_WORKERS_URL: z
    .url({ protocol: /^http$/, error: 'must be the URL of the workers, such as http://moorage-workers:8090' })
    .optional()
    .describe('URL of the pods that work on hostile input. Without it, the process starts workers as its own user.'),
});
/** The default is small enough for a CPU and transcribes all of Whisper's languages. Named as in speaches. */
const models = z.object({
  MOORAGE_SPEECH_MODEL: defineSetting(kinds.text(z.string().min(1), z.string().min(1).max(200)), {
    value: 'tools.speech.model',
    default: 'Systran/faster-whisper-small',
    description: 'Model that the speech server transcribes with.',
    chartDescription: 'Speech recognition model; also used if url is set.',
  }),
});
/** Every environment variable of the tools. */
export const environment = z.intersection(
  addresses,
  z.intersection(causes, z.intersection(concurrency, z.intersection(workers, models))),
);

/** Reads the configuration. @throws Error that names every invalid variable */
export function readToolSettings(variables: NodeJS.ProcessEnv = process.env): ToolSettings {
  const read = readConfig(environment, variables);
  const given: Readonly<Record<string, unknown>> = read;
  const byService = (variableOf: (name: ServiceName) => string): Partial<Record<ServiceName, string>> =>
    Object.fromEntries(
      names.flatMap((name) => {
        const value = given[variableOf(name)];
        return value === undefined || value === '' ? [] : [[name, value]];
      }),
    );
  return {
    urls: byService((name) => backingServices[name].variable),
    offCauses: byService(toCauseVariable),
    speechModel: read.MOORAGE_SPEECH_MODEL,
    maxConcurrent: read.MOORAGE_TOOL_CALLS,
    maxConcurrentPerCaller: read.MOORAGE_TOOL_CALLS_PER_CALLER,
    workersUrl: read.MOORAGE_WORKERS_URL,
  };
}
