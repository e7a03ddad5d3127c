// Reads the operator's configuration from its environment.
import { hostname } from 'node:os';
import { z } from 'zod';
import { idleAfter } from '../crds/values.ts';
import { count, flag, list, readConfig } from '../lib/config.ts';
import { closeAlso, subnets } from '../lib/subnets.ts';
import { parseDuration } from '../lib/values.ts';
import type { BuildQueueOptions } from './build-queue/build-queue.ts';
import { parseBytes } from './objects/values.ts';
import type { InstallationConfig } from './reconcile/installation-config.ts';
import type { Reserve } from './space/space.ts';

const pairs = list.transform((items, context) => {
  const entries = items.map((item) => item.split('='));
  if (entries.some((entry) => entry.length !== 2)) context.addIssue('must be a list like key=value,key=value');
  return Object.fromEntries(entries.map(([name = '', value = '']) => [name, value]));
});

/** Names of hosts, in lower case. */
const hosts = list.transform((names) => names.map((name) => name.toLowerCase()));

const duration = z.string().transform((text, context) => {
  try {
    return parseDuration(text);
  } catch {
    context.addIssue('must be a duration like 90s, 20m or 2h');
    return z.NEVER;
  }
});

const quantity = z
  .string()
  .regex(/^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/, 'must be a quantity like 2, 500m or 4Gi');

const bytes = quantity.transform((text) => Number(parseBytes(text)));

const reserve = z
  .string()
  .regex(/^([0-9]+(\.[0-9]+)?(Mi|M|Gi|G|Ti|T)?|[1-9]?[0-9]%)$/, 'must be a quantity like 5Gi, or a share like 10%')
  .transform((text): Reserve =>
    text.endsWith('%') ? { share: Number(text.slice(0, -1)) / 100 } : { bytes: Number(parseBytes(text)) },
  );

const verdict = z.enum(['reject', 'ask', 'warn']);

/** Of the header Strict-Transport-Security; two years at most. */
const hstsSeconds = z.coerce
  .number()
  .int()
  .min(0)
  .max(63_072_000)
  .default(0)
  .describe('max-age of the header Strict-Transport-Security of apps; 0: no such header.');

const probeToken = z
  .string()
  .min(32, 'must be a secret of at least 32 characters')
  .optional()
  .describe('Secret that probes of apps show to the activator, so that they wake none.');

const gitReadSecret = z
  .string()
  .min(32, 'must be a secret of at least 32 characters')
  .optional()
  .describe(
    'Secret of at least 32 characters that makes the tokens for reading repositories on hosts that are reached over plain http.',
  );

/** Variables of disk space: what is kept in the registry, and what stays free on disks. */
const spaceVariables = {
  MOORAGE_REGISTRY_PRUNE: flag
    .default(true)
    .describe('true: images and caches that are no longer kept are removed from the registry.'),
  MOORAGE_REGISTRY_VOLUME_CLAIM: z
    .string()
    .regex(/^[^/]+\/[^/]+$/, 'must be namespace/name')
    .optional()
    .describe('PersistentVolumeClaim (namespace/name) on which the registry stores, where it runs in the cluster.'),
  MOORAGE_BUILDS_IMAGE_LIMIT: z.coerce
    .number()
    .int()
    .min(0)
    .default(3)
    .describe('Images of an app that are kept in the registry besides those in use.'),
  MOORAGE_BUILDS_CACHE_LIMIT: bytes.prefault('2Gi').describe('Maximum size of the layer cache of an app.'),
  MOORAGE_BUILDS_KEEP_FREE: reserve
    .prefault('5Gi')
    .describe('Disk space, or share of the disk, below which no pipeline is started; 0: never mind.'),
  MOORAGE_BUILDS_SPACE_INTERVAL: duration
    .prefault('30s')
    .describe('How often the disks of nodes and the registry are looked at; 0s: never.'),
};

/** Every variable that the operator reads. */
export const environment = z.object({
  POD_NAME: z.string().default(hostname()).describe('Name of this replica in the leader election.'),
  POD_NAMESPACE: z.string().default('moorage-system').describe('Namespace of the operator.'),
  MOORAGE_APPS_DOMAIN: z
    .string()
    .default('moorage-apps.localhost')
    .describe('An app answers at https://<app>.<domain>.'),
  MOORAGE_EXTERNAL_PORT: count.default(443).describe('Port in the addresses that people see.'),
  MOORAGE_INTERNAL_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .default(9090)
    .describe('Port of /healthz, /readyz and /metrics.'),
  MOORAGE_APPS_NAMESPACE: z
    .string()
    .default('moorage-apps')
    .describe('Namespace of HostedApps and all that runs them.'),
  MOORAGE_BUILDS_NAMESPACE: z.string().default('moorage-builds').describe('Namespace of pipeline Jobs.'),
  MOORAGE_GIT_ALLOWED_HOSTS: hosts.default(['github.com']).describe('Git hosts that may be used, separated by commas.'),
  MOORAGE_GIT_INSECURE_HOSTS: hosts.default([]).describe('Those among them that are reached over plain http.'),
  MOORAGE_GIT_READ_SECRET: gitReadSecret,
  MOORAGE_PIPELINE_IMAGE: z.string().describe('Image of the pipeline pods.'),
  MOORAGE_REGISTRY_HOST: z.string().describe('Registry of app images: <host>/apps/<app>.<UID>.'),
  MOORAGE_REGISTRY_INSECURE: flag.default(false).describe('true: the registry is reached over plain http.'),
  MOORAGE_REGISTRY_PROXY: z
    .string()
    .default('moorage-registry-proxy.moorage-system.svc:5000')
    .describe('The registry proxy, through which builds reach the registry.'),
  MOORAGE_PUSH_TOKEN_SECRET: z
    .string()
    .min(32, 'must be a secret of at least 32 characters')
    .describe('Secret of at least 32 characters that makes the tokens of apps for the registry proxy.'),
  MOORAGE_REGISTRY_PULL_SECRET: z
    .string()
    .optional()
    .describe('The same in the apps namespace, where pulling needs one.'),
  MOORAGE_REGISTRY_MIRROR: z.string().optional().describe('Registry used instead of those that it is the mirror of.'),
  MOORAGE_REGISTRY_MIRROR_OF: list
    .default(['docker.io'])
    .describe('Registries that the mirror is used in place of, separated by commas.'),
  MOORAGE_MISSING_IMAGES: list
    .default([])
    .describe('Base images that a plan could start from, and that the mirror does not have.'),
  MOORAGE_REGISTRY_CACHE: flag.default(true).describe('true: layers of builds are cached in the registry.'),
  ...spaceVariables,
  MOORAGE_GATEWAY_NAME: z.string().default('moorage').describe('Name of the Gateway.'),
  MOORAGE_GATEWAY_NAMESPACE: z.string().default('moorage-system').describe('Namespace of the Gateway.'),
  MOORAGE_GATEWAY_NAMESPACE_LABELS: pairs
    .default({ 'kubernetes.io/metadata.name': 'moorage-gateway' })
    .describe('Labels of the namespace whose pods carry the traffic of the Gateway; only these may reach apps.'),
  MOORAGE_BUILDS_CONCURRENCY: count.default(2).describe('Pipelines that run at once; the others wait in the queue.'),
  MOORAGE_BUILDS_PER_SUBMITTER: count
    .default(1)
    .describe('Pipelines of apps of one submitter that run at once; an app made with kubectl is its own submitter.'),
  MOORAGE_BUILDS_SCHEDULING_TIME: duration
    .prefault('60s')
    .describe('How long the pod of a pipeline may wait for a node before its slot is given back.'),
  MOORAGE_BUILDS_HISTORY_LIMIT: count.default(3).describe('Finished pipelines kept for each app, with their logs.'),
  MOORAGE_BUILDS_PRIORITY_CLASS: z.string().optional().describe('PriorityClass of pipeline pods.'),
  MOORAGE_BUILDS_FAULT_LIMIT: count
    .default(5)
    .describe('Pipelines of one commit that may end by a fault of the platform before the operator gives up.'),
  MOORAGE_BUILDS_MAX_CPU: quantity.default('4').describe('Maximum CPU of a build, whatever its HostedApp asks for.'),
  MOORAGE_BUILDS_MAX_MEMORY: quantity.default('8Gi').describe('Maximum memory of a build.'),
  MOORAGE_BUILDS_MAX_DISK: quantity.default('20Gi').describe('Maximum disk of a build.'),
  MOORAGE_BUILDS_MAX_TIMEOUT: duration.prefault('2h').describe('Maximum time of a build.'),
  MOORAGE_LIMIT_REPOSITORY_BYTES: count.default(1_073_741_824).describe('Maximum size of a repository.'),
  MOORAGE_LIMIT_FILES: count.default(50_000).describe('Maximum number of files in a repository.'),
  MOORAGE_LIMIT_FILE_BYTES: count.default(104_857_600).describe('Maximum size of one file.'),
  MOORAGE_REVIEW_LICENSES_ALLOW: list
    .default([])
    .describe('SPDX identifiers of licences that pass the review beside the open-source ones.'),
  MOORAGE_REVIEW_LICENSES_DENY: list
    .default([])
    .describe('SPDX identifiers of licences that the review treats as restricted.'),
  MOORAGE_REVIEW_LICENSES_CUSTOM: verdict
    .default('warn')
    .describe('A licence with terms of its own: reject, ask (the app waits for a waiver) or warn.'),
  MOORAGE_REVIEW_LICENSES_RESTRICTED: verdict
    .default('ask')
    .describe('A licence that limits commercial or hosted use, or gives no rights: reject, ask or warn.'),
  MOORAGE_REVIEW_LICENSES_MISSING: verdict
    .default('reject')
    .describe('A repository without a licence: reject, ask or warn.'),
  MOORAGE_RUNTIME_CLASS: z.string().optional().describe('RuntimeClass of app pods.'),
  MOORAGE_STORAGE_CLASS: z.string().optional().describe('StorageClass of app volumes.'),
  MOORAGE_APPS_PRIORITY_CLASS: z.string().optional().describe('PriorityClass of app pods.'),
  MOORAGE_APPS_EXPIRE_AFTER: duration
    .prefault('168h')
    .describe('A submitted app that has never been live is deleted after this time; 0s: never.'),
  MOORAGE_APPS_GOOD_AFTER: duration
    .prefault('10m')
    .describe(
      'A release that has served this long without a crash is good: a rollback chooses the newest good one, and a crash loop is over.',
    ),
  MOORAGE_APPS_KEEP_DATA_FOR: duration
    .prefault('168h')
    .describe('How long volumes and generated Secrets of a deleted app are kept (spec.deletionPolicy: Delete).'),
  MOORAGE_SERVICES_IMAGES: pairs
    .default({})
    .describe(
      'Image of each type of backing service, like postgres=postgres:17; one of a version as postgres-16=postgres:16.',
    ),
  MOORAGE_SERVICES_COUNT: count.default(4).describe('Maximum number of backing services of an app.'),
  MOORAGE_SERVICES_MAX_MEMORY: quantity
    .default('1Gi')
    .describe('Maximum memory of a backing service, whatever its HostedApp asks for.'),
  MOORAGE_SERVICES_MAX_DISK: quantity.default('5Gi').describe('Maximum disk of a backing service.'),
  MOORAGE_APPS_USAGE_INTERVAL: duration
    .prefault('30s')
    .describe(
      'How often the use of apps, to which their requests are fitted, and the disks of nodes are read from the kubelets; 0s: never.',
    ),
  MOORAGE_COMPUTE_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Where the API takes what apps use, /compute on its internal port. Without it, that is not reported.'),
  MOORAGE_METERING_TOKEN: z
    .string()
    .min(32, 'must be a secret of at least 32 characters')
    .optional()
    .describe(
      'Secret of at least 32 characters that the operator shows there, and the API to the operator when it asks about a repository.',
    ),
  MOORAGE_KUBELET_PORT: count.default(10_250).describe('Port of the kubelets.'),
  MOORAGE_APPS_IDLE_AFTER: idleAfter
    .optional()
    .describe('Time without use after which an app is put to rest that does not say so itself: auto or a duration.'),
  MOORAGE_ACTIVATOR: flag
    .default(false)
    .describe('true: there is an activator, so apps that ask for it are put to rest when they are not used.'),
  MOORAGE_ACTIVITY_INTERVAL: duration
    .prefault('5s')
    .describe('How often the activators are asked which apps are in use.'),
  MOORAGE_CLOSED_CIDRS: subnets
    .default([])
    .describe(
      'Further subnets that apps and builds cannot reach, such as those of nodes, pods and services. Private, reserved and metadata addresses are always closed.',
    ),
  MOORAGE_MODELS_BASE_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Base URL of /v1 for apps that may ask models.'),
  MOORAGE_APP_TOKEN_SECRET: z
    .string()
    .min(32, 'must be a secret of at least 32 characters')
    .optional()
    .describe(
      'Secret of at least 32 characters that makes the tokens of apps, and those by which authors prove ownership.',
    ),
  MOORAGE_PROBE_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe('Base URL of the gateway from inside, through which an app is probed before it is called live.'),
  MOORAGE_HSTS_SECONDS: hstsSeconds,
  MOORAGE_PROBE_TOKEN: probeToken,
  MOORAGE_LEASE_NAME: z.string().default('moorage-operator').describe('Name of the Lease of the leader election.'),
  MOORAGE_SERVICE_ACCOUNT: z
    .string()
    .optional()
    .describe('Folder with the token and CA of a service account, where it is not the usual one.'),
  MOORAGE_RESYNC: duration.prefault('10m').describe('How often every HostedApp is reconciled without a change.'),
});

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
  const read = readConfig(environment, variables);
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

function toInstallationConfig(read: z.output<typeof environment>): InstallationConfig {
  return {
    site: { domain: read.MOORAGE_APPS_DOMAIN, port: read.MOORAGE_EXTERNAL_PORT },
    appsNamespace: read.MOORAGE_APPS_NAMESPACE,
    buildsNamespace: read.MOORAGE_BUILDS_NAMESPACE,
    systemNamespace: read.POD_NAMESPACE,
    gitHosts: { allowed: read.MOORAGE_GIT_ALLOWED_HOSTS, insecure: read.MOORAGE_GIT_INSECURE_HOSTS },
    gitReadSecret: read.MOORAGE_GIT_READ_SECRET,
    gateway: {
      name: read.MOORAGE_GATEWAY_NAME,
      namespace: read.MOORAGE_GATEWAY_NAMESPACE,
      namespaceLabels: read.MOORAGE_GATEWAY_NAMESPACE_LABELS,
      hstsSeconds: read.MOORAGE_HSTS_SECONDS,
    },
    registry: {
      host: read.MOORAGE_REGISTRY_HOST,
      insecure: read.MOORAGE_REGISTRY_INSECURE,
      proxy: read.MOORAGE_REGISTRY_PROXY,
      tokenSecret: read.MOORAGE_PUSH_TOKEN_SECRET,
      pullSecret: read.MOORAGE_REGISTRY_PULL_SECRET,
      mirror: read.MOORAGE_REGISTRY_MIRROR,
      mirrorOf: read.MOORAGE_REGISTRY_MIRROR_OF,
      missingImages: read.MOORAGE_MISSING_IMAGES,
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
    ownershipSecret: read.MOORAGE_APP_TOKEN_SECRET,
    expireMs: read.MOORAGE_APPS_EXPIRE_AFTER === 0 ? undefined : read.MOORAGE_APPS_EXPIRE_AFTER,
    keepDataMs: read.MOORAGE_APPS_KEEP_DATA_FOR,
    probeUrl: read.MOORAGE_PROBE_URL,
    probeToken: read.MOORAGE_PROBE_TOKEN,
  };
}

/** Apps reach models only where both are set. */
function toModels({
  MOORAGE_MODELS_BASE_URL: baseUrl,
  MOORAGE_APP_TOKEN_SECRET: tokenSecret,
}: z.output<typeof environment>): InstallationConfig['run']['models'] {
  return baseUrl === undefined || tokenSecret === undefined ? undefined : { baseUrl, tokenSecret };
}

/** Reported only where both are set. */
function toCompute({
  MOORAGE_COMPUTE_URL: url,
  MOORAGE_METERING_TOKEN: token,
}: z.output<typeof environment>): OperatorConfig['compute'] {
  return url === undefined || token === undefined ? undefined : { url, token };
}

function toSpaceConfig(read: z.output<typeof environment>): SpaceConfig {
  return {
    prune: read.MOORAGE_REGISTRY_PRUNE,
    imageLimit: read.MOORAGE_BUILDS_IMAGE_LIMIT,
    registryClaim: read.MOORAGE_REGISTRY_VOLUME_CLAIM,
    reserve: read.MOORAGE_BUILDS_KEEP_FREE,
    intervalMs: read.MOORAGE_BUILDS_SPACE_INTERVAL,
  };
}
