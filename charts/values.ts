// Defines every value of the chart: its default, its bounds and what it means. Values that only set an environment variable
// are defined where a process reads them, and inserted here.
import { z } from 'zod';
import { allowEmpty, valueTypes } from '../lib/settings.ts';
import {
  apps,
  bench,
  builds,
  database,
  gateway,
  git,
  mail,
  signIn,
  metering,
  models,
  monitoring,
  network,
  postgres,
  receipts,
  registry,
  sandbox,
  services,
  tools,
  workload,
} from './sections.ts';
import { listChartValues } from './settings.ts';

const { name, domain } = valueTypes;

const frame = z.strictObject({
  appsDomain: allowEmpty(domain)
    .default('')
    .describe(
      'Domain of the apps, each of which is served at https://<app>.<appsDomain>. Defaults to baseDomain. Give apps a registered domain of their own, so that no app can set cookies for the API.',
    ),
  image: z.string().min(1).describe('Image of the operator and the API.'),
  imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent'),
  imagePullSecrets: z
    .array(name)
    .default([])
    .describe('Secrets in the namespace of the release for pulling this image.'),
  crd: z
    .strictObject({
      install: z
        .boolean()
        .default(true)
        .describe(
          'Install and upgrade the CRD with the chart. If false, apply that of the same version (crds/hostedapps.yaml) before each upgrade: the admission policy for submitted apps expects its defaults.',
        ),
    })
    .prefault({}),
  namespaces: z
    .strictObject({
      create: z
        .boolean()
        .default(true)
        .describe(
          'Create the namespaces. If false, they must exist, with the Pod Security labels that NOTES.txt lists.',
        ),
    })
    .prefault({}),
  gateway,
  registry,
  git: git.prefault({}),
  review: z
    .strictObject({
      licenses: z.strictObject({}).prefault({}).describe('What the review makes of licences.'),
    })
    .prefault({}),
  builds: builds.prefault({}),
  apps: apps.prefault({}),
  services: services.prefault({}).describe('Databases and stores for apps (spec.services).'),
  submissions: z.strictObject({}).prefault({}),
  previews: z.strictObject({}).prefault({}).describe('Previews of pull requests and branches.'),
  operator: z.strictObject(workload).prefault({
    replicas: 2,
    resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '1', memory: '512Mi' } },
  }),
  api: z
    .strictObject({
      ...workload,
      callerSaltSecret: allowEmpty(name)
        .default('')
        .describe(
          'Secret whose key `salt` (at least 32 characters) is used to hash callers. If empty, one is created once and kept. Set it if the chart is rendered without a cluster (GitOps).',
        ),
    })
    // 16 calls with 17 MB each, waiting for workers, take 370 MB in addition to the 150 MB of the process.
    .prefault({
      replicas: 2,
      resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '1', memory: '768Mi' } },
    }),
  activator: z
    .strictObject({
      ...workload,
      probeTokenSecret: allowEmpty(name)
        .default('')
        .describe(
          'Secret whose key `token` (at least 32 characters) marks requests of the platform that wake no app. If empty, one is created once and kept.',
        ),
    })
    .prefault({
      replicas: 2,
      resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { cpu: '1', memory: '512Mi' } },
    })
    .describe(
      'What stands before apps that may rest (spec.run.idleAfter) and wakes them. With 0 replicas, no app rests.',
    ),
  workers: z
    .strictObject({
      ...workload,
      replicas: workload.replicas.min(1),
      image: z
        .string()
        .default('')
        .describe(
          'Image of the workers, with the browser that draws Mermaid diagrams (target moorage-workers of the Dockerfile). If empty, `image`: Mermaid is refused then.',
        ),
    })
    // What is left of the limit after 192 Mi is shared by the processes that work.
    .prefault({
      replicas: 2,
      resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '1', memory: '1536Mi' } },
    })
    .describe(
      'Pods in which tools work on hostile input, without secrets, token and network. Each works on two calls at once.',
    ),
  tools: tools
    .prefault({})
    .describe('Backing services of the tools. A tool whose service is neither enabled nor has a url is not available.'),
  models: models.prefault({}).describe('Models, for ask and compare, and for hosted apps at /v1.'),
  bench: bench.prefault({}).describe('Benchmarks of models, run live through hosted apps.'),
  database: database.prefault({}).describe('Database of the ledger.'),
  metering: metering.prefault({}).describe('Access logs of the gateway, from which uses of apps are counted.'),
  receipts: receipts.prefault({}).describe('The key that signs days of the ledger, charges and statements.'),
  mail: mail.prefault({}).describe('Mails to authors about their apps.'),
  signIn: signIn.prefault({}),
  domains: z.strictObject({}).prefault({}).describe('Own domains of apps.'),
  prices: z.strictObject({}).prefault({}).describe('What uses, calls, tools and models cost whom.'),
  revenue: z.strictObject({}).prefault({}).describe('Statements of authors.'),
  postgres: postgres.prefault({}),
  network: network.prefault({}),
  monitoring: monitoring.prefault({}),
  sandbox: sandbox.prefault({}).describe('What pods of apps and builds may ask of the scheduler.'),
  hostUsers: z
    .boolean()
    .default(false)
    .describe(
      'If false, the operator, the API and the workers run in user namespaces. Set to true if the nodes do not support them.',
    ),
  priorityClasses: z
    .strictObject({
      create: z
        .boolean()
        .default(true)
        .describe(
          'Create the priority classes moorage-system (operator, API and workers), moorage-apps (never preempt) and moorage-builds (preempted first).',
        ),
    })
    .prefault({}),
  global: z.record(z.string(), z.unknown()).default({}).describe('Passed by Helm to every chart; not used.'),
});

/** Every value: those of the frame, and the settings of the processes. */
export const values = listChartValues().reduce<z.ZodType>(
  (schema, { path, schema: value }) => addValue(schema, path.split('.'), value),
  frame,
);

/** Adds a value at its path. The sections on the way keep their defaults and descriptions. */
function addValue(section: z.ZodType, path: readonly string[], value: z.ZodType): z.ZodType {
  const extended =
    section instanceof z.ZodPrefault
      ? addValue(section.def.innerType as z.ZodType, path, value).prefault(section.def.defaultValue)
      : extendSection(section, path, value);
  return section.description === undefined ? extended : extended.describe(section.description);
}

/** A section with the value before its first subsection, or with a subsection that has it. */
function extendSection(section: z.ZodType, [key = '', ...rest]: readonly string[], value: z.ZodType): z.ZodType {
  if (!(section instanceof z.ZodObject)) throw new Error(`no section of the chart's values has room for ${key}`);
  const fields = Object.entries<z.ZodType>(section.shape);
  const inner = fields.find(([name]) => name === key)?.[1];
  if (rest.length > 0) {
    if (inner === undefined) throw new Error(`add the section ${key} to charts/values.ts`);
    return section.extend({ [key]: addValue(inner, rest, value) });
  }
  if (inner !== undefined) throw new Error(`the chart value ${key} has two definitions`);
  const first = fields.findIndex(([, field]) => field instanceof z.ZodObject || field instanceof z.ZodPrefault);
  return z.strictObject(Object.fromEntries(fields.toSpliced(first < 0 ? fields.length : first, 0, [key, value])));
}
