// The configuration of the API, read from the environment.
import type { BlockList } from 'node:net';
import { z } from 'zod';
import { installationSettings } from '../crds/installation-settings.ts';
import type { AppsSite } from '../crds/names.ts';
import { count, internalPort, port, readConfig, secret } from '../lib/config.ts';
import { defineSetting, kinds, valueTypes } from '../lib/settings.ts';
import { createBlockList } from '../lib/subnets.ts';
import type { GitHosts } from '../lib/repository.ts';

/** Configuration of the API. */
export interface ApiConfig {
  readonly port: number;
  /** Port on which only /v1 answers, for hosted apps inside the cluster. */
  readonly appsPort: number;
  /** Port of /healthz, /readyz and /metrics. */
  readonly internalPort: number;
  /** Like `https://moorage.localhost`, without a slash at the end. */
  readonly baseUrl: string;
  /** Where apps answer. */
  readonly site: AppsSite;
  /** Whether apps can have own domains. */
  readonly offersDomains: boolean;
  readonly appsNamespace: string;
  readonly buildsNamespace: string;
  /** Where the API and the activator are. */
  readonly systemNamespace: string;
  readonly hosts: GitHosts;
  /** Key of the hashes that stand for callers. */
  readonly callerSalt: string;
  readonly trustedProxies: BlockList;
  readonly submissionsPerDay: number;
  /** Daily budget with which a newly submitted app can call models; undefined where it cannot. */
  readonly submittedModelsUsd: string | undefined;
  readonly maxApps: number;
  readonly appsPerNetwork: number;
  /** Maximum number of replicas that the author of an app can set. */
  readonly authorReplicas: number;
  readonly pollSeconds: number;
  readonly logStreams: number;
  /** Internal port of the operator; undefined: submitted repositories are not checked. */
  readonly operatorUrl: string | undefined;
  readonly drainSeconds: number;
}

const domain = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, 'must be a domain in lower case, like moorage.example.org');
const dailyBudget = /^(0|[1-9][0-9]{0,4})([.][0-9]{1,4})?$/;

/** Every variable that the API reads of itself. */
export const environment = z.object({
  MOORAGE_PORT: port.default(8080).describe('Port of the API.'),
  MOORAGE_APPS_PORT: port.default(8081).describe('Port on which only /v1 answers, for hosted apps inside the cluster.'),
  MOORAGE_INTERNAL_PORT: internalPort,
  MOORAGE_BASE_DOMAIN: defineSetting(kinds.text(valueTypes.domain, domain), {
    value: 'baseDomain',
    description: 'Domain of the API, which is served at https://<baseDomain>.',
  }),
  MOORAGE_APPS_DOMAIN: domain
    .optional()
    .describe('An app answers at https://<app>.<domain>. Defaults to MOORAGE_BASE_DOMAIN.'),
  MOORAGE_EXTERNAL_PORT: installationSettings.externalPort,
  MOORAGE_DOMAINS_ISSUER: installationSettings.domainsIssuer,
  MOORAGE_APPS_NAMESPACE: installationSettings.appsNamespace,
  POD_NAMESPACE: z.string().default('moorage-system').describe('Namespace of the API.'),
  MOORAGE_BUILDS_NAMESPACE: installationSettings.buildsNamespace,
  MOORAGE_GIT_ALLOWED_HOSTS: installationSettings.gitAllowedHosts,
  MOORAGE_GIT_INSECURE_HOSTS: installationSettings.gitInsecureHosts,
  MOORAGE_CALLER_SALT: secret.describe('Secret of at least 32 characters that hashes callers.'),
  MOORAGE_TRUSTED_PROXIES: installationSettings.trustedProxies,
  MOORAGE_SUBMISSIONS_PER_DAY: defineSetting(kinds.number({ min: 1 }), {
    value: 'submissions.perDay',
    default: 20,
    description: 'Maximum number of new apps that a caller can submit in 24 hours.',
  }),
  MOORAGE_SUBMITTED_MODELS_USD: defineSetting(
    kinds.optional(
      kinds.text(
        // As spec.models.dailyBudgetUsd of a HostedApp has it.
        z.string().regex(dailyBudget),
        z.string().regex(dailyBudget, 'must be a decimal of USD with at most 4 decimal places, like 0.25'),
      ),
    ),
    {
      value: 'submissions.modelsUsd',
      description:
        'Daily budget in USD with which a newly submitted app can call models (spec.models of its HostedApp), paid with the platform key. If empty, it cannot until the operator sets spec.models.enabled.',
      omitEmpty: true,
    },
  ),
  MOORAGE_APPS_PER_NETWORK: defineSetting(kinds.number({ min: 1, chart: { max: 100_000 } }), {
    value: 'apps.perNetwork',
    default: 10,
    description: 'Maximum number of hosted apps that were submitted from one network (/24 of IPv4, /48 of IPv6).',
  }),
  MOORAGE_MAX_APPS: defineSetting(kinds.number({ min: 1, chart: { max: 100_000 } }), {
    value: 'apps.max',
    default: 500,
    description: 'Maximum number of hosted apps.',
  }),
  MOORAGE_AUTHOR_REPLICAS: defineSetting(kinds.number({ min: 1, max: 20, chart: { max: 20 } }), {
    value: 'apps.authorReplicas',
    default: 3,
    description: 'Maximum number of replicas that the author of an app can set.',
  }),
  MOORAGE_POLL_SECONDS: count
    .default(10)
    .describe('Minimum seconds between two polls of one repository that submissions ask for.'),
  MOORAGE_LOG_STREAMS: count.default(200).describe('Maximum number of build logs that a replica streams at once.'),
  MOORAGE_OPERATOR_URL: z
    .url()
    .optional()
    .describe(
      'Internal port of the operator, which checks that a submitted repository can be read. Without it, none is checked.',
    ),
  MOORAGE_DRAIN_SECONDS: defineSetting(kinds.number({ min: 0, chart: { max: 300 } }), {
    value: 'api.drainSeconds',
    default: 10,
    description: 'How many seconds requests are still served after SIGTERM, while the endpoint is removed.',
  }),
});

/** Every variable that `npm start` reads of itself: the API alone, without a cluster. */
export const aloneEnvironment = z.object({
  MOORAGE_PORT: port.default(8080).describe('Port of the API; `--port` comes first.'),
  MOORAGE_HOST: z.string().default('127.0.0.1').describe('Address to listen on.'),
  MOORAGE_TRUSTED_PROXIES: installationSettings.trustedProxies,
  MOORAGE_STATE: z
    .string()
    .default('.moorage/alone')
    .describe(
      'Folder of the ledger (where DATABASE_URL is not set), the salt of callers and the key of receipts. Keep it: with another one, balances, memory and receipts are gone. A relative path is one of the project.',
    ),
});

/** Reads the configuration. @throws Error that names every variable that is wrong. */
export function readApiConfig(variables: NodeJS.ProcessEnv = process.env): ApiConfig {
  const read = readConfig(environment, variables);
  return {
    port: read.MOORAGE_PORT,
    appsPort: read.MOORAGE_APPS_PORT,
    internalPort: read.MOORAGE_INTERNAL_PORT,
    baseUrl: new URL(`https://${read.MOORAGE_BASE_DOMAIN}:${read.MOORAGE_EXTERNAL_PORT}`).origin,
    site: { domain: read.MOORAGE_APPS_DOMAIN ?? read.MOORAGE_BASE_DOMAIN, port: read.MOORAGE_EXTERNAL_PORT },
    offersDomains: read.MOORAGE_DOMAINS_ISSUER !== undefined,
    appsNamespace: read.MOORAGE_APPS_NAMESPACE,
    buildsNamespace: read.MOORAGE_BUILDS_NAMESPACE,
    systemNamespace: read.POD_NAMESPACE,
    hosts: { allowed: read.MOORAGE_GIT_ALLOWED_HOSTS, insecure: read.MOORAGE_GIT_INSECURE_HOSTS },
    callerSalt: read.MOORAGE_CALLER_SALT,
    trustedProxies: createBlockList(read.MOORAGE_TRUSTED_PROXIES),
    submissionsPerDay: read.MOORAGE_SUBMISSIONS_PER_DAY,
    submittedModelsUsd: read.MOORAGE_SUBMITTED_MODELS_USD,
    maxApps: read.MOORAGE_MAX_APPS,
    appsPerNetwork: read.MOORAGE_APPS_PER_NETWORK,
    authorReplicas: read.MOORAGE_AUTHOR_REPLICAS,
    pollSeconds: read.MOORAGE_POLL_SECONDS,
    logStreams: read.MOORAGE_LOG_STREAMS,
    operatorUrl: read.MOORAGE_OPERATOR_URL,
    drainSeconds: read.MOORAGE_DRAIN_SECONDS,
  };
}
