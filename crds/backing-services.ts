// Backing services of an app (spec.services): databases and stores that run beside it, for it alone.
import { z } from 'zod';
import { listBy, matches, withRules } from './rules.ts';
import { environmentName, quantity } from './values.ts';

/** What can be run beside an app. Which of them an installation has is said by its images. */
export const serviceTypes = [
  'postgres',
  'redis',
  'mongo',
  'mysql',
  'qdrant',
  'chroma',
  'minio',
  'meilisearch',
] as const;
export type ServiceType = (typeof serviceTypes)[number];

const variable = z.strictObject({
  name: environmentName.describe('Name of the variable, as the image of the service reads it.'),
  value: z.string().max(4_096).describe('Value, used literally.'),
});

export const serviceName = withRules(
  z.string().max(30),
  matches(
    '^[a-z]([-a-z0-9]*[a-z0-9])?$',
    'the name of a service has lower-case letters, digits and inner hyphens, and starts with a letter',
  ),
  {
    cel: `self != 'localhost'`,
    holds: (name) => name !== 'localhost',
    message: 'localhost is the app itself; give the service another name',
  },
);

const version = withRules(
  z.string().max(40),
  matches('^[0-9A-Za-z][0-9A-Za-z._-]*$', 'version must be like 17 or 7.2: letters, digits, ".", "_" and "-"'),
);

const service = z.strictObject({
  name: serviceName.describe(
    'Name of the service, a DNS label of at most 30 characters. The app reaches the service at this host name.',
  ),
  type: z.enum(serviceTypes).describe('What it is. Each installation has images for some of these types.'),
  version: version
    .optional()
    .describe('Version that the app wants. If the installation has no image of it, the one that it has is used.'),
  disk: quantity('disk', '16Mi', '1Ti')
    .default('1Gi')
    .describe('Size of its volume, which is kept across commits and deleted with the data of the app.'),
  memory: quantity('memory', '32Mi', '256Gi')
    .optional()
    .describe('Memory limit. Defaults to 256Mi, and to 512Mi for mongo, mysql, chroma and meilisearch.'),
  env: listBy(z.array(variable).max(32), 'name')
    .default([])
    .describe(
      'Environment variables of the service, such as POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB. A password that is not given is generated.',
    ),
});

export const services = listBy(z.array(service).max(8), 'name');
export type BackingService = z.infer<typeof service>;
export type BackingServices = readonly BackingService[];

/** How a backing service stands, in the status of its app. */
export const serviceStatus = z.object({
  name: z.string().describe('Name of the service.'),
  type: z.string().describe('What it is.'),
  ready: z.boolean().describe('Whether it takes connections.'),
  message: z.string().max(500).optional().describe('Why it is not ready, or what is not as it was asked for.'),
});
export type ServiceStatus = z.infer<typeof serviceStatus>;
