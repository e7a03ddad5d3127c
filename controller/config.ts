// Reads the operator's configuration from its environment.
import type { z } from 'zod';
import { readConfig } from '../lib/config.ts';
import { listHostKeys } from '../lib/git/deploy-keys.ts';
import { closeAlso } from '../lib/subnets.ts';
import type { BuildQueueOptions } from './build-queue/build-queue.ts';
import type { InstallationConfig } from './reconcile/installation-config.ts';
import { operatorEnvironment } from './settings.ts';
import type { Reserve } from './space/space.ts';

export interface SpaceConfig {
  /** Whether anything is removed from the registry. */
  readonly prune: boolean;
  readonly imageLimit: number;
  readonly registryClaim?: string | undefined;
  readonly reserve: Reserve;
  /** 0: disks are not looked at. */
  readonly intervalMs: number;
}

export interface OperatorConfig {
  /** What the installation decides about every app. */
  readonly installation: InstallationConfig;
  readonly lease: { readonly namespace: string; readonly name: string; readonly identity: string };
  readonly internalPort: number;
  readonly builds: Pick<BuildQueueOptions, 'limits' | 'schedulingMs'>;
  readonly resyncMs: number;
  readonly space: SpaceConfig;
  /** 0: the use of apps is not read. */
  readonly usageMs: number;
  readonly kubeletPort: number;
  /** Where it is reported; undefined where it is not. */
  readonly compute: { readonly url: string; readonly token: string } | undefined;
  /** The token that the API sends when it asks about a repository; absent: it may not ask. */
  readonly internalToken: string | undefined;
  readonly activityMs: number;
  /** Folder with the token and the CA of a service account, where it is not where a pod has it. */
  readonly serviceAccount?: string | undefined;
}

/** Reads the configuration. @throws Error that names each variable that is wrong. */
export function readOperatorConfig(variables: NodeJS.ProcessEnv = process.env): OperatorConfig {
  const read = readConfig(operatorEnvironment, variables);
  return {
    installation: toInstallationConfig(read),
    // A restarted container has the same pod name, but must not be confused with the process that died.
    lease: {
      namespace: read.POD_NAMESPACE,
      name: read.MOORAGE_LEASE_NAME,
      identity: `${read.POD_NAME}_${crypto.randomUUID().slice(0, 8)}`,
    },
    internalPort: read.MOORAGE_INTERNAL_PORT,
    builds: {
      limits: { concurrency: read.MOORAGE_BUILDS_CONCURRENCY, perSubmitter: read.MOORAGE_BUILDS_PER_SUBMITTER },
      schedulingMs: read.MOORAGE_BUILDS_SCHEDULING_TIME,
    },
    resyncMs: read.MOORAGE_RESYNC,
    space: toSpaceConfig(read),
    usageMs: read.MOORAGE_APPS_USAGE_INTERVAL,
    kubeletPort: read.MOORAGE_KUBELET_PORT,
    compute: toCompute(read),
    internalToken: read.MOORAGE_METERING_TOKEN,
    activityMs: read.MOORAGE_ACTIVITY_INTERVAL,
    serviceAccount: read.MOORAGE_SERVICE_ACCOUNT,
  };
}

function toInstallationConfig(read: z.output<typeof operatorEnvironment>): InstallationConfig {
  return {
    site: { domain: read.MOORAGE_APPS_DOMAIN, port: read.MOORAGE_EXTERNAL_PORT },
    appsNamespace: read.MOORAGE_APPS_NAMESPACE,
    buildsNamespace: read.MOORAGE_BUILDS_NAMESPACE,
    systemNamespace: read.POD_NAMESPACE,
    gitHosts: { allowed: read.MOORAGE_GIT_ALLOWED_HOSTS, insecure: read.MOORAGE_GIT_INSECURE_HOSTS },
    gitAccess: toGitAccess(read),
    gateway: {
      name: read.MOORAGE_GATEWAY_NAME,
      namespace: read.MOORAGE_GATEWAY_NAMESPACE,
      namespaceLabels: read.MOORAGE_GATEWAY_NAMESPACE_LABELS,
      hstsSeconds: read.MOORAGE_HSTS_SECONDS,
    },
    domains: toDomains(read),
    registry: {
      host: read.MOORAGE_REGISTRY_HOST,
      insecure: read.MOORAGE_REGISTRY_INSECURE,
      proxy: read.MOORAGE_REGISTRY_PROXY,
      tokenSecret: read.MOORAGE_PUSH_TOKEN_SECRET,
      pullSecret: read.MOORAGE_REGISTRY_PULL_SECRET,
      mirror: read.MOORAGE_REGISTRY_MIRROR,
      mirrorOf: read.MOORAGE_REGISTRY_MIRROR_OF,
      missingImages: read.MOORAGE_MISSING_IMAGES,
      imagesOnDemand: read.MOORAGE_IMAGES_ON_DEMAND,
    },
    pipeline: {
      image: read.MOORAGE_PIPELINE_IMAGE,
      limits: {
        repositoryBytes: read.MOORAGE_LIMIT_REPOSITORY_BYTES,
        files: read.MOORAGE_LIMIT_FILES,
        fileBytes: read.MOORAGE_LIMIT_FILE_BYTES,
      },
      licenses: {
        allow: read.MOORAGE_REVIEW_LICENSES_ALLOW,
        deny: read.MOORAGE_REVIEW_LICENSES_DENY,
        custom: read.MOORAGE_REVIEW_LICENSES_CUSTOM,
        restricted: read.MOORAGE_REVIEW_LICENSES_RESTRICTED,
        missing: read.MOORAGE_REVIEW_LICENSES_MISSING,
      },
      cache: read.MOORAGE_REGISTRY_CACHE,
      cacheBytes: read.MOORAGE_BUILDS_CACHE_LIMIT,
      maximum: {
        cpu: read.MOORAGE_BUILDS_MAX_CPU,
        memory: read.MOORAGE_BUILDS_MAX_MEMORY,
        disk: read.MOORAGE_BUILDS_MAX_DISK,
      },
      maximumMs: read.MOORAGE_BUILDS_MAX_TIMEOUT,
      historyLimit: read.MOORAGE_BUILDS_HISTORY_LIMIT,
      priorityClass: read.MOORAGE_BUILDS_PRIORITY_CLASS,
      faultLimit: read.MOORAGE_BUILDS_FAULT_LIMIT,
    },
    run: {
      runtimeClass: read.MOORAGE_RUNTIME_CLASS,
      storageClass: read.MOORAGE_STORAGE_CLASS,
      priorityClass: read.MOORAGE_APPS_PRIORITY_CLASS,
      goodAfterMs: read.MOORAGE_APPS_GOOD_AFTER,
      closedCidrs: closeAlso(read.MOORAGE_CLOSED_CIDRS),
      models: toModels(read),
      services: {
        images: read.MOORAGE_SERVICES_IMAGES,
        count: read.MOORAGE_SERVICES_COUNT,
        maximum: { memory: read.MOORAGE_SERVICES_MAX_MEMORY, disk: read.MOORAGE_SERVICES_MAX_DISK },
        passwordSecret: read.MOORAGE_PUSH_TOKEN_SECRET,
      },
    },
    idle: read.MOORAGE_ACTIVATOR ? { after: read.MOORAGE_APPS_IDLE_AFTER } : undefined,
    previews: { limit: read.MOORAGE_PREVIEWS_LIMIT, canSleep: read.MOORAGE_ACTIVATOR },
    ownershipSecret: read.MOORAGE_APP_TOKEN_SECRET,
    expireMs: read.MOORAGE_APPS_EXPIRE_AFTER === 0 ? undefined : read.MOORAGE_APPS_EXPIRE_AFTER,
    keepDataMs: read.MOORAGE_APPS_KEEP_DATA_FOR,
    probeUrl: read.MOORAGE_PROBE_URL,
    probeToken: read.MOORAGE_PROBE_TOKEN,
  };
}

function toGitAccess(read: z.output<typeof operatorEnvironment>): InstallationConfig['gitAccess'] {
  const { MOORAGE_DEPLOY_KEY_SECRET: secret, MOORAGE_GIT_SSH_HOST_KEYS: hostKeys } = read;
  return {
    readSecret: read.MOORAGE_GIT_READ_SECRET,
    deployKeys: secret === undefined ? undefined : { secret, hostKeys: listHostKeys(hostKeys) },
  };
}

/** Apps reach models only where both are set. */
function toModels({
  MOORAGE_MODELS_BASE_URL: baseUrl,
  MOORAGE_APP_TOKEN_SECRET: tokenSecret,
}: z.output<typeof operatorEnvironment>): InstallationConfig['run']['models'] {
  return baseUrl === undefined || tokenSecret === undefined ? undefined : { baseUrl, tokenSecret };
}

function toDomains(read: z.output<typeof operatorEnvironment>): InstallationConfig['domains'] {
  const { MOORAGE_DOMAINS_ISSUER: issuer } = read;
  if (issuer === undefined) return undefined;
  return {
    namespace: read.MOORAGE_DOMAINS_NAMESPACE,
    issuer: { kind: read.MOORAGE_DOMAINS_ISSUER_KIND, name: issuer },
    gatewayClass: read.MOORAGE_GATEWAY_CLASS,
    httpsPort: read.MOORAGE_GATEWAY_HTTPS_PORT,
    resolvers: read.MOORAGE_DOMAINS_RESOLVERS,
    platform: [read.MOORAGE_BASE_DOMAIN, read.MOORAGE_APPS_DOMAIN],
    intervalMs: read.MOORAGE_DOMAINS_INTERVAL,
    graceMs: read.MOORAGE_DOMAINS_GRACE,
  };
}

/** Reported only where both are set. */
function toCompute({
  MOORAGE_COMPUTE_URL: url,
  MOORAGE_METERING_TOKEN: token,
}: z.output<typeof operatorEnvironment>): OperatorConfig['compute'] {
  return url === undefined || token === undefined ? undefined : { url, token };
}

function toSpaceConfig(read: z.output<typeof operatorEnvironment>): SpaceConfig {
  return {
    prune: read.MOORAGE_REGISTRY_PRUNE,
    imageLimit: read.MOORAGE_BUILDS_IMAGE_LIMIT,
    registryClaim: read.MOORAGE_REGISTRY_VOLUME_CLAIM,
    reserve: read.MOORAGE_BUILDS_KEEP_FREE,
    intervalMs: read.MOORAGE_BUILDS_SPACE_INTERVAL,
  };
}
