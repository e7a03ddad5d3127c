// The configuration of the API, read from the environment.
import type { BlockList } from 'node:net';
import { z } from 'zod';
import { count, list, readConfig } from '../lib/config.ts';
import { blockList, subnets } from '../lib/subnets.ts';
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
  readonly appsNamespace: string;
  readonly buildsNamespace: string;
  readonly hosts: GitHosts;
  /** Key of the hashes that stand for callers. */
  readonly callerSalt: string;
  readonly trustedProxies: BlockList;
  readonly submissionsPerDay: number;
  readonly maxApps: number;
  readonly pollSeconds: number;
  readonly logStreams: number;
  readonly drainSeconds: number;
}

const port = count.max(65_535, 'must be a port, 1 to 65535');
const lowerList = list.transform((items) => items.map((item) => item.toLowerCase()));

const environment = z.object({
  MOORAGE_PORT: port.default(8080),
  MOORAGE_APPS_PORT: port.default(8081),
  MOORAGE_INTERNAL_PORT: port.default(9090),
  MOORAGE_BASE_DOMAIN: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, 'must be a domain in lower case, like apps.example.org'),
  MOORAGE_EXTERNAL_PORT: port.default(443),
  MOORAGE_APPS_NAMESPACE: z.string().default('moorage-apps'),
  MOORAGE_BUILDS_NAMESPACE: z.string().default('moorage-builds'),
  MOORAGE_GIT_ALLOWED_HOSTS: lowerList.refine(
    (hosts) => hosts.length > 0,
    'must name at least one git host, like github.com',
  ),
  MOORAGE_GIT_INSECURE_HOSTS: lowerList.default([]),
  MOORAGE_CALLER_SALT: z.string().min(32, 'must be a secret of at least 32 characters'),
  MOORAGE_TRUSTED_PROXIES: subnets.default([]),
  MOORAGE_SUBMISSIONS_PER_DAY: count.default(20),
  MOORAGE_MAX_APPS: count.default(500),
  MOORAGE_POLL_SECONDS: count.default(10),
  MOORAGE_LOG_STREAMS: count.default(200),
  MOORAGE_DRAIN_SECONDS: count.default(10),
});

/** Reads the configuration. @throws Error that names every variable that is wrong. */
export function readApiConfig(variables: NodeJS.ProcessEnv = process.env): ApiConfig {
  const read = readConfig(environment, variables);
  return {
    port: read.MOORAGE_PORT,
    appsPort: read.MOORAGE_APPS_PORT,
    internalPort: read.MOORAGE_INTERNAL_PORT,
    baseUrl: new URL(`https://${read.MOORAGE_BASE_DOMAIN}:${read.MOORAGE_EXTERNAL_PORT}`).origin,
    appsNamespace: read.MOORAGE_APPS_NAMESPACE,
    buildsNamespace: read.MOORAGE_BUILDS_NAMESPACE,
    hosts: { allowed: read.MOORAGE_GIT_ALLOWED_HOSTS, insecure: read.MOORAGE_GIT_INSECURE_HOSTS },
    callerSalt: read.MOORAGE_CALLER_SALT,
    trustedProxies: blockList(read.MOORAGE_TRUSTED_PROXIES),
    submissionsPerDay: read.MOORAGE_SUBMISSIONS_PER_DAY,
    maxApps: read.MOORAGE_MAX_APPS,
    pollSeconds: read.MOORAGE_POLL_SECONDS,
    logStreams: read.MOORAGE_LOG_STREAMS,
    drainSeconds: read.MOORAGE_DRAIN_SECONDS,
  };
}
