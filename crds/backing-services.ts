// Defines the backing services of an app (spec.services): databases and stores that run next to it, for it alone.
import { z } from 'zod';
import { listBy, createNameRule, createPatternRule, addRules, environmentName, quantity } from './values.ts';

/** Types of service. The images of an installation decide which of them it offers. */
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

export const serviceName = addRules(z.string().max(30), createNameRule('the name of a service'), {
  cel: `self != 'localhost'`,
  isValid: (name) => name !== 'localhost',
  message: 'localhost is the app itself; give the service another name',
});

const version = addRules(
  z.string().max(40),
  createPatternRule(
    '^[0-9A-Za-z][0-9A-Za-z._-]*$',
    'version must be like 17 or 7.2: letters, digits, ".", "_" and "-"',
  ),
);

const service = z.strictObject({
  name: serviceName.describe(
    'Name of the service, a DNS label of at most 30 characters. The app reaches the service at this host name.',
  ),
  type: z.enum(serviceTypes).describe('Type of the service. Each installation has images for some of these types.'),
  version: version
    .optional()
    .describe('Version that the app needs. If the installation has no image of it, its own version is used.'),
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
