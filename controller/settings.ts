// Defines every variable of the operator and of the registry proxy: its default, its meaning, and the chart value that sets it.
import { hostname } from 'node:os';
import { z } from 'zod';
import { installationSettings } from '../crds/installation-settings.ts';
import { maximumPreviews } from '../crds/previews.ts';
import { idleAfter } from '../crds/values.ts';
import { count, flag, internalPort, list, secret } from '../lib/config.ts';
import { allowEmpty, defineSetting, type Kind, kinds, valueTypes } from '../lib/settings.ts';
import { hostKeyLine, parseHostKey } from '../lib/git/deploy-keys.ts';
import { subnets } from '../lib/subnets.ts';
import { parseBytes } from './objects/kinds.ts';
import type { Reserve } from './space/space.ts';

const bytes = {
  ...kinds.quantity,
  text: kinds.quantity.text.transform((text) => Number(parseBytes(text))),
};

const reserve = kinds.text(
  valueTypes.reserve,
  z
    .string()
    .regex(/^([0-9]+(\.[0-9]+)?(Mi|M|Gi|G|Ti|T)?|[1-9]?[0-9]%)$/, 'must be a quantity like 5Gi, or a share like 10%')
    .transform((text): Reserve =>
      text.endsWith('%') ? { share: Number(text.slice(0, -1)) / 100 } : { bytes: Number(parseBytes(text)) },
    ),
);

const hostKeys = list.transform((lines, context) =>
  lines.flatMap((line) => {
    const hostKey = parseHostKey(line);
    if (hostKey === undefined)
      context.addIssue(`must be lines of known_hosts with one name, separated by commas; ${line.slice(0, 60)} is not`);
    return hostKey ?? [];
  }),
);

const name = kinds.text(valueTypes.name, z.string());
const verdict = kinds.choice(['reject', 'ask', 'warn']);
const spdxIds = kinds.list(z.string().regex(/^[A-Za-z0-9.+-]{1,60}$/), list);
const httpUrl = z.url({ protocol: /^https?$/ });

/** Variables of the registry of app images, which the registry proxy reads too. */
const registrySettings = {
  MOORAGE_REGISTRY_HOST: defineSetting(kinds.text(valueTypes.host, z.string()), {
    value: 'registry.host',
    description: 'Registry for app images, which are named <host>/apps/<app>.<UID>.',
  }),
  MOORAGE_REGISTRY_INSECURE: defineSetting(kinds.flag, {
    value: 'registry.insecure',
    default: false,
    description: 'true: the registry is reached over plain HTTP.',
    chartDescription: 'Use plain HTTP.',
  }),
  MOORAGE_REGISTRY_MIRROR: defineSetting(kinds.optional(kinds.text(valueTypes.host, z.string())), {
    value: 'registry.mirror',
    description:
      'Registry used instead of those in mirrorOf. It must not require credentials, unless it is the registry for app images itself.',
  }),
};

/** Every variable that the operator reads. */
export const operatorEnvironment = z.object({
  POD_NAME: z.string().default(hostname()).describe('Name of this replica in the leader election.'),
  POD_NAMESPACE: z.string().default('moorage-system').describe('Namespace of the operator.'),
  MOORAGE_APPS_DOMAIN: z
    .string()
    .default('moorage-apps.localhost')
    .describe('An app answers at https://<app>.<domain>.'),
  MOORAGE_BASE_DOMAIN: z.string().default('moorage.localhost').describe('Domain of the API, which no app gets.'),
  MOORAGE_EXTERNAL_PORT: installationSettings.externalPort,
  MOORAGE_INTERNAL_PORT: internalPort,
  MOORAGE_APPS_NAMESPACE: installationSettings.appsNamespace,
  MOORAGE_BUILDS_NAMESPACE: installationSettings.buildsNamespace,
  MOORAGE_GIT_ALLOWED_HOSTS: installationSettings.gitAllowedHosts,
  MOORAGE_GIT_INSECURE_HOSTS: installationSettings.gitInsecureHosts,
  MOORAGE_GIT_READ_SECRET: secret
    .optional()
    .describe(
      'Secret of at least 32 characters that makes the tokens for reading repositories on hosts that are reached over plain http.',
    ),
  MOORAGE_GIT_SSH_HOST_KEYS: defineSetting(kinds.list(z.string().regex(hostKeyLine), hostKeys), {
    value: 'git.sshHostKeys',
    default: [],
    description:
      'Host keys of git servers with private repositories: lines of known_hosts with one name, such as "git.example.org ssh-ed25519 AAAA…" or "[git.example.org]:2222 ssh-ed25519 AAAA…". Those of github.com, gitlab.com, codeberg.org and bitbucket.org are built in; a line for one of them replaces its key.',
  }),
  MOORAGE_DEPLOY_KEY_SECRET: secret
    .optional()
    .describe(
      'Secret of at least 32 characters from which the deploy keys of private repositories are derived. Absent: there are no private repositories.',
    ),
  MOORAGE_PIPELINE_IMAGE: defineSetting(kinds.text(z.string().min(1), z.string()), {
    value: 'pipelineImage',
    description: 'Image of the pipeline pods.',
  }),
  ...registrySettings,
  MOORAGE_REGISTRY_PROXY: z
    .string()
    .default('moorage-registry-proxy.moorage-system.svc:5000')
    .describe('The registry proxy, through which builds reach the registry.'),
  MOORAGE_PUSH_TOKEN_SECRET: secret.describe(
    'Secret of at least 32 characters that makes the tokens of apps for the registry proxy.',
  ),
  MOORAGE_REGISTRY_PULL_SECRET: defineSetting(kinds.optional(name), {
    value: 'registry.pullSecret',
    description:
      'Secret of type kubernetes.io/dockerconfigjson in the apps namespace, if pulling images requires credentials.',
    chartDescription: 'Secret of the same type in the apps namespace, if pulling images requires credentials.',
  }),
  MOORAGE_REGISTRY_MIRROR_OF: defineSetting(kinds.list(valueTypes.host, list), {
    value: 'registry.mirrorOf',
    default: ['docker.io'],
    description: 'Registries that the mirror replaces.',
  }),
  MOORAGE_MISSING_IMAGES: defineSetting(kinds.list(z.string(), list), {
    value: 'registry.missingImages',
    default: [],
    description:
      'Base images that plans of languages start from, and that the mirror does not have, such as golang:1.26-bookworm: an app that needs one is rejected with that reason, or gets another version with a warning.',
  }),
  MOORAGE_IMAGES_ON_DEMAND: defineSetting(kinds.list(z.string(), list), {
    value: 'registry.imagesOnDemand',
    default: [],
    description:
      'Images that something next to this installation makes when an app first needs them, such as golang:1.26-bookworm: the app lists them in status.neededImages and waits until the annotation moorage.dev/prepared-images says that they are ready.',
  }),
  MOORAGE_REGISTRY_CACHE: flag.default(true).describe('true: layers of builds are cached in the registry.'),
  MOORAGE_REGISTRY_PRUNE: defineSetting(kinds.flag, {
    value: 'registry.prune',
    default: true,
    description:
      'Remove images and caches that are no longer kept (builds.imageLimit, builds.cacheLimit), and those of deleted apps, from the registry. The push account must be allowed to delete. If false, leave that to the retention rules of the registry.',
  }),
  MOORAGE_REGISTRY_VOLUME_CLAIM: defineSetting(
    kinds.optional(
      kinds.text(
        z.string().regex(/^[a-z0-9][-a-z0-9.]*\/[a-z0-9][-a-z0-9.]*$/),
        z.string().regex(/^[^/]+\/[^/]+$/, 'must be namespace/name'),
      ),
    ),
    {
      value: 'registry.volumeClaim',
      description:
        'PersistentVolumeClaim on which the registry stores, as namespace/name, if it runs in this cluster: builds wait while it is nearly full.',
    },
  ),
  MOORAGE_BUILDS_IMAGE_LIMIT: defineSetting(kinds.number({ min: 0, chart: { max: 18 } }), {
    value: 'builds.imageLimit',
    default: 3,
    description:
      'Number of images of an app that are kept in the registry besides those in use, the newest first, for going back to them.',
  }),
  MOORAGE_BUILDS_CACHE_LIMIT: defineSetting(bytes, {
    value: 'builds.cacheLimit',
    default: '2Gi',
    description:
      'Maximum size of the layer cache of an app in the registry. Of an app that exceeds it, only the layers of its image are cached, which take no further space.',
  }),
  MOORAGE_BUILDS_KEEP_FREE: defineSetting(reserve, {
    value: 'builds.keepFree',
    default: '5Gi',
    description:
      'Disk space of a node, and of the volume of the registry, below which no new pipeline is started: a quantity, or a share such as 10%. It should be more than the threshold at which your kubelets evict pods (10% to 15% by default). 0: never wait.',
  }),
  MOORAGE_BUILDS_SPACE_INTERVAL: defineSetting(kinds.duration, {
    value: 'builds.spaceInterval',
    default: '30s',
    description: 'How often the free disk space of nodes and of the registry is read. 0s: never.',
  }),
  MOORAGE_GATEWAY_NAME: defineSetting(name, {
    value: 'gateway.name',
    default: 'moorage',
    description: 'Name of the Gateway.',
  }),
  MOORAGE_GATEWAY_NAMESPACE: z.string().default('moorage-system').describe('Namespace of the Gateway.'),
  MOORAGE_GATEWAY_NAMESPACE_LABELS: defineSetting(
    { ...kinds.labels, value: valueTypes.labels.meta({ minProperties: 1 }) },
    {
      value: 'gateway.namespaceLabels',
      default: { 'kubernetes.io/metadata.name': 'moorage-gateway' },
      // Where the gateway runs, only the operator of the installation knows.
      requiredInChart: true,
      description:
        'Labels of the namespace whose pods carry the traffic of the Gateway; only these pods can reach the apps and the API.',
    },
  ),
  MOORAGE_BUILDS_CONCURRENCY: defineSetting(kinds.number({ min: 1, chart: { max: 100 } }), {
    value: 'builds.concurrency',
    default: 2,
    description: 'Maximum number of concurrent pipelines; the others are queued.',
  }),
  MOORAGE_BUILDS_PER_SUBMITTER: defineSetting(kinds.number({ min: 1, chart: { max: 100 } }), {
    value: 'builds.perSubmitter',
    default: 1,
    description:
      'Maximum number of concurrent pipelines of apps that were submitted from one network; the others wait. An app that was created with kubectl counts by itself.',
  }),
  MOORAGE_BUILDS_SCHEDULING_TIME: defineSetting(kinds.duration, {
    value: 'builds.schedulingTime',
    default: '60s',
    description:
      'How long the pod of a pipeline may wait for a node; after that, the pipeline is queued again. With a cluster autoscaler, longer than it takes to add a node.',
  }),
  MOORAGE_BUILDS_HISTORY_LIMIT: defineSetting(kinds.number({ min: 1, chart: { max: 20 } }), {
    value: 'builds.historyLimit',
    default: 3,
    description: 'Number of finished pipelines that are kept for each app, with their logs.',
  }),
  MOORAGE_BUILDS_PRIORITY_CLASS: z.string().optional().describe('PriorityClass of pipeline pods.'),
  MOORAGE_BUILDS_FAULT_LIMIT: count
    .default(5)
    .describe('Pipelines of one commit that may end by a fault of the platform before the operator gives up.'),
  MOORAGE_BUILDS_MAX_CPU: defineSetting(kinds.quantity, {
    value: 'builds.maximum.cpu',
    default: '4',
    description: 'Maximum CPU of a build, whatever its HostedApp asks for.',
    chartDescription: '',
  }),
  MOORAGE_BUILDS_MAX_MEMORY: defineSetting(kinds.quantity, {
    value: 'builds.maximum.memory',
    default: '8Gi',
    description: 'Maximum memory of a build.',
    chartDescription: '',
  }),
  MOORAGE_BUILDS_MAX_DISK: defineSetting(kinds.quantity, {
    value: 'builds.maximum.disk',
    default: '20Gi',
    description: 'Maximum disk of a build.',
    chartDescription: '',
  }),
  MOORAGE_BUILDS_MAX_TIMEOUT: defineSetting(kinds.duration, {
    value: 'builds.timeout',
    default: '2h',
    description: 'Maximum duration of every build, whatever its HostedApp requests.',
  }),
  MOORAGE_LIMIT_REPOSITORY_BYTES: count.default(1_073_741_824).describe('Maximum size of a repository.'),
  MOORAGE_LIMIT_FILES: count.default(50_000).describe('Maximum number of files in a repository.'),
  MOORAGE_LIMIT_FILE_BYTES: count.default(104_857_600).describe('Maximum size of one file.'),
  MOORAGE_REVIEW_LICENSES_ALLOW: defineSetting(spdxIds, {
    value: 'review.licenses.allow',
    default: [],
    description:
      'SPDX identifiers of licences that pass in addition to those that the OSI or the FSF approved, such as Elastic-2.0.',
  }),
  MOORAGE_REVIEW_LICENSES_DENY: defineSetting(spdxIds, {
    value: 'review.licenses.deny',
    default: [],
    description: 'SPDX identifiers of licences that are treated as restricted, such as AGPL-3.0-only.',
  }),
  MOORAGE_REVIEW_LICENSES_CUSTOM: defineSetting(verdict, {
    value: 'review.licenses.custom',
    default: 'warn',
    description:
      'Verdict on a licence with terms of its own, such as a duty to keep a brand: reject, ask (the app waits until spec.review.waivers of its HostedApp waives the finding) or warn.',
  }),
  MOORAGE_REVIEW_LICENSES_RESTRICTED: defineSetting(verdict, {
    value: 'review.licenses.restricted',
    default: 'ask',
    description: 'Verdict on a licence that limits commercial or hosted use, or gives no rights.',
  }),
  MOORAGE_REVIEW_LICENSES_MISSING: defineSetting(verdict, {
    value: 'review.licenses.missing',
    default: 'reject',
    description: 'Verdict on a repository without a licence.',
  }),
  MOORAGE_RUNTIME_CLASS: defineSetting(kinds.optional(name), {
    value: 'apps.runtimeClassName',
    description: 'RuntimeClass of app pods, such as gvisor.',
  }),
  MOORAGE_STORAGE_CLASS: defineSetting(kinds.optional(name), {
    value: 'apps.storageClass',
    description: 'StorageClass of app volumes. Defaults to the default StorageClass of the cluster.',
  }),
  MOORAGE_APPS_PRIORITY_CLASS: z.string().optional().describe('PriorityClass of app pods.'),
  MOORAGE_APPS_EXPIRE_AFTER: defineSetting(kinds.duration, {
    value: 'apps.expireAfter',
    default: '168h',
    description:
      'A submitted app that has never been live is deleted after this time, with a warning before. 0s: never.',
  }),
  MOORAGE_APPS_GOOD_AFTER: defineSetting(kinds.duration, {
    value: 'apps.goodAfter',
    default: '10m',
    description:
      'A release that has served this long without a crash is good: a rollback chooses the newest good one, and a crash loop is over.',
  }),
  MOORAGE_APPS_KEEP_DATA_FOR: defineSetting(kinds.duration, {
    value: 'apps.keepDataFor',
    default: '168h',
    description:
      'How long the volumes and generated passwords of a deleted app are kept, unless spec.deletionPolicy is Retain. Applying the same HostedApp within this time restores them. 0s: they are deleted with the app.',
  }),
  MOORAGE_SERVICES_IMAGES: kinds.labels.text
    .default({})
    .describe(
      'Image of each type of backing service, like postgres=postgres:17; one of a version as postgres-16=postgres:16.',
    ),
  MOORAGE_SERVICES_COUNT: defineSetting(kinds.number({ min: 0, chart: { max: 8 } }), {
    value: 'services.count',
    default: 4,
    description: 'Maximum number of backing services of an app. 0: none.',
  }),
  MOORAGE_SERVICES_MAX_MEMORY: defineSetting(kinds.quantity, {
    value: 'services.maximum.memory',
    default: '1Gi',
    description: 'Maximum memory of a backing service, whatever its HostedApp asks for.',
    chartDescription: '',
  }),
  MOORAGE_SERVICES_MAX_DISK: defineSetting(kinds.quantity, {
    value: 'services.maximum.disk',
    default: '5Gi',
    description: 'Maximum disk of a backing service.',
    chartDescription: '',
  }),
  MOORAGE_APPS_USAGE_INTERVAL: defineSetting(kinds.duration, {
    value: 'apps.usageInterval',
    default: '30s',
    description:
      'How often the operator reads from the kubelets (port 10250 of network.nodeCidrs) what apps use, and lets them request that, and how full disks are, for metrics. 0s: never; apps then request a hundredth of their CPU limit and an eighth of their memory limit.',
  }),
  MOORAGE_COMPUTE_URL: httpUrl
    .optional()
    .describe('Where the API takes what apps use, /compute on its internal port. Without it, that is not reported.'),
  MOORAGE_METERING_TOKEN: secret
    .optional()
    .describe(
      'Secret of at least 32 characters that the operator shows there, and the API to the operator when it asks about a repository.',
    ),
  MOORAGE_KUBELET_PORT: count.default(10_250).describe('Port of the kubelets.'),
  MOORAGE_APPS_IDLE_AFTER: defineSetting(
    {
      text: idleAfter.optional(),
      value: allowEmpty(z.union([z.literal('auto'), valueTypes.duration])),
      format: 'text',
      unset: '',
    } satisfies Kind,
    {
      value: 'apps.idleAfter',
      description:
        'Time without use after which an app is put to rest that does not set spec.run.idleAfter: auto (chosen by its own pauses) or a duration. If empty, only apps that ask for it rest.',
    },
  ),
  MOORAGE_ACTIVATOR: flag
    .default(false)
    .describe('true: there is an activator, so apps that ask for it are put to rest when they are not used.'),
  MOORAGE_PREVIEWS_LIMIT: defineSetting(kinds.number({ min: 0, max: maximumPreviews }), {
    value: 'previews.limit',
    default: maximumPreviews,
    description:
      'Maximum number of previews of an app, whatever its moorage.yaml says. 0: no app has previews. Previews need an activator, since they sleep while they are not used.',
  }),
  MOORAGE_ACTIVITY_INTERVAL: defineSetting(kinds.duration, {
    value: 'activator.interval',
    default: '5s',
    description: 'How often the activators are asked which apps are in use.',
    chartDescription: 'How often the operator asks it which apps are in use.',
  }),
  MOORAGE_CLOSED_CIDRS: subnets
    .default([])
    .describe(
      'Further subnets that apps and builds cannot reach, such as those of nodes, pods and services. Private, reserved and metadata addresses are always closed.',
    ),
  MOORAGE_MODELS_BASE_URL: httpUrl.optional().describe('Base URL of /v1 for apps that may ask models.'),
  MOORAGE_APP_TOKEN_SECRET: secret
    .optional()
    .describe(
      'Secret of at least 32 characters that makes the tokens of apps and the tokens that authors prove ownership with.',
    ),
  MOORAGE_PROBE_URL: defineSetting(kinds.optional(kinds.text(valueTypes.url, httpUrl)), {
    value: 'gateway.probeUrl',
    description:
      'Base URL of the gateway inside the cluster, through which an app is probed before it is reported as live. If empty, apps are not probed.',
  }),
  /** Two years at most. */
  MOORAGE_HSTS_SECONDS: defineSetting(kinds.number({ min: 0, max: 63_072_000 }), {
    value: 'gateway.hstsSeconds',
    default: 0,
    description:
      'max-age of Strict-Transport-Security, which has browsers use https alone for the API and for each app. Set it, to 31536000 at last, once the certificate is of a public issuer: for that long a browser refuses a site whose certificate it does not trust. With 0 there is no such header.',
  }),
  MOORAGE_DOMAINS_ISSUER: installationSettings.domainsIssuer,
  MOORAGE_DOMAINS_ISSUER_KIND: defineSetting(kinds.choice(['ClusterIssuer', 'Issuer']), {
    value: 'domains.issuerKind',
    default: 'ClusterIssuer',
    description: 'Kind of that issuer. An Issuer must be in the namespace of the domains.',
  }),
  MOORAGE_DOMAINS_NAMESPACE: defineSetting(name, {
    value: 'namespaces.domains',
    default: 'moorage-domains',
    description: 'Namespace of the Gateways and certificates of own domains. It exists only if domains.issuer is set.',
  }),
  MOORAGE_DOMAINS_RESOLVERS: defineSetting(
    kinds.list(z.string().regex(/^(([0-9]{1,3}[.]){3}[0-9]{1,3}|[0-9a-fA-F:]*:[0-9a-fA-F:]+)$/), list),
    {
      value: 'domains.resolvers',
      default: [],
      description:
        'Addresses of the DNS servers that are asked for the proof of a domain, on port 53. If empty, those of the pod. Use resolvers that validate DNSSEC.',
    },
  ),
  MOORAGE_DOMAINS_INTERVAL: defineSetting(kinds.duration, {
    value: 'domains.interval',
    default: '1h',
    description: 'How often the proof of a domain is checked again.',
  }),
  MOORAGE_DOMAINS_GRACE: defineSetting(kinds.duration, {
    value: 'domains.grace',
    default: '72h',
    description: 'How long an app keeps a domain whose proof is gone.',
  }),
  MOORAGE_GATEWAY_CLASS: z.string().default('traefik').describe('GatewayClass of the Gateways of own domains.'),
  MOORAGE_GATEWAY_HTTPS_PORT: count.max(65_535).default(443).describe('Port of their listeners.'),
  MOORAGE_PROBE_TOKEN: secret
    .optional()
    .describe('Secret that probes of apps show to the activator, so that they wake none.'),
  MOORAGE_LEASE_NAME: z.string().default('moorage-operator').describe('Name of the Lease of the leader election.'),
  MOORAGE_SERVICE_ACCOUNT: z
    .string()
    .optional()
    .describe('Folder with the token and CA of a service account, where it is not the usual one.'),
  MOORAGE_RESYNC: kinds.duration.text
    .prefault('10m')
    .describe('How often every HostedApp is reconciled without a change.'),
});

/** Every variable that the registry proxy reads. */
export const registryProxyEnvironment = z.object({
  ...registrySettings,
  MOORAGE_REGISTRY_CREDENTIALS: z
    .string()
    .describe('File with the account of the registry, in the form of a dockerconfigjson.'),
  MOORAGE_PUSH_TOKEN_SECRET: secret.describe(
    'Secret of at least 32 characters that makes the tokens of apps; the same as that of the operator.',
  ),
  MOORAGE_REGISTRY_PROXY_PORT: count.max(65_535).default(5000).describe('Port on which builds reach it.'),
  MOORAGE_INTERNAL_PORT: internalPort,
});
