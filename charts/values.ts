// The one definition of the chart's values: every value, its default, its bounds and what it means.
import { z } from 'zod';

const quantity = z.string().regex(/^[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/);
const duration = z
  .string()
  .regex(/^([0-9]+h)?([0-9]+m)?([0-9]+s)?$/)
  .min(2)
  .describe('Duration like 90s, 20m or 2h.');
const cidr = z
  .string()
  .regex(/^[0-9a-fA-F:.]+\/[0-9]{1,3}$/)
  .describe('Addresses with a prefix length, like 10.0.0.0/8.');
const labels = z.record(z.string(), z.string()).describe('Labels that a namespace must have.');
const port = z.int().min(1).max(65_535);
const name = z
  .string()
  .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/)
  .max(253);
const host = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$/)
  .describe('Host, or host:port, in lower case.');
const optional = <Schema extends z.ZodType>(schema: Schema): z.ZodUnion<readonly [Schema, z.ZodLiteral<''>]> =>
  z.union([schema, z.literal('')]);

const resources = z.strictObject({
  requests: z.strictObject({ cpu: quantity, memory: quantity }),
  limits: z.strictObject({ cpu: quantity, memory: quantity }),
});

const workload = {
  replicas: z.int().min(0).max(20).describe('How many replicas run.'),
  resources: resources.describe('Requests and limits of one replica.'),
};

const gateway = z.strictObject({
  create: z
    .boolean()
    .default(true)
    .describe(
      'Make the Gateway. false: one of that name and namespace exists, with the listeners https, https-base and http.',
    ),
  name: name.default('moorage').describe('Name of the Gateway.'),
  namespace: optional(name).default('').describe('Its namespace; empty: that of the release.'),
  className: name.describe('GatewayClass, like traefik, envoy-gateway or cilium.'),
  tlsSecretName: name
    .default('moorage-wildcard')
    .describe('TLS Secret, in the namespace of the Gateway, for baseDomain and *.baseDomain.'),
  namespaceLabels: labels
    .meta({ minProperties: 1 })
    .describe(
      'Labels of the namespace whose pods carry the traffic of the Gateway; only these may reach apps and API.',
    ),
  ports: z
    .strictObject({ http: port.default(80), https: port.default(443) })
    .prefault({})
    .describe('Ports of the listeners. Traefik wants the ports of its entry points.'),
  annotations: z
    .record(z.string(), z.string())
    .default({})
    .describe('Annotations of the Gateway, for instance for cert-manager.'),
  probeUrl: optional(z.string().regex(/^https?:\/\//))
    .default('')
    .describe(
      'Base URL of the gateway from inside, through which an app is asked before it is called live; empty: it is not asked.',
    ),
});

const registry = z.strictObject({
  host: host.describe('Registry of app images: <host>/apps/<app>.'),
  insecure: z.boolean().default(false).describe('Spoken to by plain http.'),
  pushSecret: name
    .default('moorage-registry')
    .describe('Secret of type kubernetes.io/dockerconfigjson in the builds namespace.'),
  pullSecret: optional(name).default('').describe('The same in the apps namespace, when pulling needs one.'),
  mirror: optional(host).default('').describe('Registry asked instead of Docker Hub.'),
  cidrs: z.array(cidr).default([]).describe('Addresses of the registry, where it is not on the public internet.'),
  port: port.default(443).describe('TCP port of the registry at these addresses.'),
});

const git = z.strictObject({
  allowedHosts: z
    .array(host)
    .min(1)
    .default(['github.com', 'gitlab.com', 'codeberg.org'])
    .describe('Git servers that may be used; the first completes owner/name.'),
  insecureHosts: z
    .array(z.string().regex(/^([a-z0-9.-]+[.])?(localhost|svc[.]cluster[.]local)(:[0-9]{1,5})?$/))
    .default([])
    .describe('Those among them that are spoken to by plain http; inside the cluster only.'),
  namespaceLabels: labels.default({}).describe('Labels of the namespace of a git server inside the cluster.'),
  port: port.default(8080).describe('TCP port of the pods of that git server.'),
});

const builds = z.strictObject({
  concurrency: z.int().min(1).max(100).default(2).describe('Pipelines at once; the others wait in the queue.'),
  maximum: z
    .strictObject({ cpu: quantity.default('4'), memory: quantity.default('8Gi'), disk: quantity.default('20Gi') })
    .prefault({})
    .describe('Most that one build gets, whatever its HostedApp asks.'),
  timeout: duration.default('2h').describe('Longest build, whatever its HostedApp asks.'),
  historyLimit: z.int().min(1).max(20).default(3).describe('Finished pipelines kept an app, with their logs.'),
  quota: z
    .record(z.string(), z.string())
    .default({
      pods: '20',
      'limits.cpu': '32',
      'limits.memory': '64Gi',
      'limits.ephemeral-storage': '200Gi',
      'count/jobs.batch': '5000',
    })
    .describe('ResourceQuota of the builds namespace.'),
  ports: z.array(port).min(1).default([80, 443]).describe('TCP ports on the public internet that a build may reach.'),
});

const usd = z.string().regex(/^[0-9]{1,7}(\.[0-9]{1,12})?$/);

const apps = z.strictObject({
  max: z.int().min(1).max(100_000).default(500).describe('Hosted apps in all.'),
  quota: z
    .record(z.string(), z.string())
    .default({
      pods: '1500',
      'limits.cpu': '1000',
      'limits.memory': '2Ti',
      'limits.ephemeral-storage': '4Ti',
      'requests.storage': '2Ti',
      'services.nodeports': '0',
      'services.loadbalancers': '0',
    })
    .describe('ResourceQuota of the apps namespace.'),
  callUsd: usd.default('0.0001').describe('What a call of an app through the API is charged, USD.'),
  callSeconds: z.int().min(1).max(3_600).default(120).describe('Longest such call, until the last byte of its answer.'),
  runtimeClassName: optional(name).default('').describe('RuntimeClass of app pods, like gvisor.'),
  storageClass: optional(name).default('').describe('StorageClass of app volumes; empty: the default of the cluster.'),
});

const network = z.strictObject({
  podCidrs: z.array(cidr).default([]).describe('Addresses of pods; closed to apps and builds.'),
  serviceCidrs: z.array(cidr).default([]).describe('Addresses of Services; closed to apps and builds.'),
  nodeCidrs: z.array(cidr).default([]).describe('Addresses of nodes; closed to apps and builds.'),
  closedCidrs: z
    .array(cidr)
    .default([
      '10.0.0.0/8',
      '172.16.0.0/12',
      '192.168.0.0/16',
      '100.64.0.0/10',
      '169.254.0.0/16',
      '127.0.0.0/8',
      '0.0.0.0/8',
      '224.0.0.0/4',
      'fc00::/7',
      'fe80::/10',
      'ff00::/8',
      '::1/128',
    ])
    .describe('What else is closed to apps and builds: private, shared, link-local and metadata addresses.'),
  apiServer: z
    .strictObject({ cidrs: z.array(cidr).default([]), ports: z.array(port).min(1).default([443, 6443]) })
    .prefault({})
    .describe(
      'Where the API server really listens. Without addresses, operator and API may reach these ports anywhere.',
    ),
  dns: z
    .strictObject({
      namespaceLabels: labels.default({ 'kubernetes.io/metadata.name': 'kube-system' }),
      podLabels: z.record(z.string(), z.string()).default({ 'k8s-app': 'kube-dns' }),
      ports: z.array(port).min(1).default([53]),
    })
    .prefault({})
    .describe('Pods that answer DNS.'),
  metricsNamespaceLabels: labels
    .default({})
    .describe('Labels of the namespace that may read metrics; empty: none may.'),
});

const models = z.strictObject({
  router: z
    .strictObject({
      baseUrl: optional(z.string().regex(/^https?:\/\//))
        .default('')
        .describe(
          'Base URL of the model router, like https://openrouter.ai/api/v1 or http://litellm.llm.svc.cluster.local:4000. Empty: models are not asked, and say so.',
        ),
      kind: z
        .enum(['openrouter', 'litellm'])
        .default('openrouter')
        .describe('How the router tells what a call has cost.'),
      keySecret: optional(name)
        .default('')
        .describe('Secret in the namespace of the release with the key `key`: the platform key of the router.'),
      namespaceLabels: labels
        .default({})
        .describe('Labels of the namespace of a router inside the cluster. Empty: it is on the public internet.'),
      port: port.default(443).describe('TCP port of the router; inside the cluster, that of its pods.'),
    })
    .prefault({})
    .describe('Model router.'),
  freeQuotaUsd: usd.default('0.05').describe('What a caller without a key may spend in a day, USD.'),
  dailyCapUsd: usd.default('5').describe('What all calls with the platform key may cost together in a day, USD.'),
  callSeconds: z.int().min(1).max(900).default(120).describe('Longest call.'),
  listConfigMap: optional(name)
    .default('')
    .describe(
      'ConfigMap in the namespace of the release with the key `models.yaml`, instead of the list in the image.',
    ),
  appTokenSecret: optional(name)
    .default('')
    .describe(
      'Secret with the key `secret` (32 characters or more) that makes the tokens of apps. Empty: one is made once and kept.',
    ),
});

const postgres = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'Run a single PostgreSQL with the release: for trying out, without backup or failover. In production, set database.urlSecret.',
    ),
  image: z.string().min(1).default('postgres:17-bookworm').describe('Its image, 15 or newer.'),
  storage: quantity.default('5Gi').describe('Size of its volume.'),
  storageClass: optional(name).default('').describe('StorageClass of its volume; empty: the default of the cluster.'),
  resources: resources.default({ requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '1', memory: '512Mi' } }),
});

const database = z.strictObject({
  urlSecret: optional(name)
    .default('')
    .describe(
      'Secret in the namespace of the release with the key `url`: postgres://user:password@host/database, version 15 or newer. Empty and no postgres.enabled: models are not asked.',
    ),
  cidrs: z.array(cidr).default([]).describe('Addresses of the server; empty: any.'),
  port: port.default(5432).describe('Its TCP port.'),
  keepDays: z
    .int()
    .min(7)
    .default(400)
    .describe(
      'Days for which single uses and finished reservations are kept. The books, and so every balance, are kept for good.',
    ),
});

const place = {
  enabled: z.boolean().default(false).describe('Run it with the release.'),
  url: optional(z.string().regex(/^https?:\/\//))
    .default('')
    .describe('Base URL of one that runs elsewhere, instead.'),
  namespaceLabels: labels
    .default({})
    .describe(
      'Labels of the namespace of that one, where it is inside the cluster. Empty: it is on the public internet, on port 80, 443, 8080 or 8443.',
    ),
  port: port.default(80).describe('TCP port of its pods, where it is inside the cluster.'),
};

/** Like 250m of CPU and 512Mi of memory. */
type Share = readonly [cpu: string, memory: string];

/** Fields of a service behind tools: an image that runs beside the API, or the address of one elsewhere. */
const backing = (image: string, [cpu, memory]: Share, most: Share) => ({
  ...place,
  image: z.string().default(image).describe('Its image.'),
  replicas: workload.replicas.default(1),
  resources: workload.resources.default({ requests: { cpu, memory }, limits: { cpu: most[0], memory: most[1] } }),
});

const tools = z.strictObject({
  searxng: z
    .strictObject({
      ...backing('docker.io/searxng/searxng:2026.11.2-cccbc9e15', ['100m', '256Mi'], ['1', '1Gi']),
      secretKeySecret: optional(name)
        .default('')
        .describe('Secret with the key `secret` for it. Empty: one is made once and kept.'),
    })
    .prefault({})
    .describe('SearXNG, for web_search and deep_research. It reaches the public internet.'),
  gotenberg: z
    .strictObject({
      ...backing('docker.io/gotenberg/gotenberg:8.36.0', ['250m', '512Mi'], ['2', '3Gi']),
      proxy: z
        .strictObject(workload)
        .prefault({
          replicas: 1,
          resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { cpu: '1', memory: '512Mi' } },
        })
        .describe('The guarded proxy, through which alone its Chromium reaches the web.'),
    })
    .prefault({})
    .describe('Gotenberg, for convert_to_pdf and screenshot. It reaches its proxy only.'),
  languagetool: z
    .strictObject({
      ...backing('docker.io/erikvl87/languagetool:6.8', ['100m', '1Gi'], ['2', '2Gi']),
      heap: quantity.default('1Gi').describe('Most memory of Java, below the limit.'),
    })
    .prefault({})
    .describe('LanguageTool, for check_grammar in other languages than English. It reaches nothing.'),
  speech: z
    .strictObject({
      ...backing('ghcr.io/speaches-ai/speaches:0.9.0-rc.3-cpu', ['250m', '1Gi'], ['4', '4Gi']),
      model: z
        .string()
        .min(1)
        .default('Systran/faster-whisper-small')
        .describe('Model that it hears with, also where url is set.'),
      modelClaim: optional(name)
        .default('')
        .describe(
          'PersistentVolumeClaim that holds the model as a Hugging Face cache does. Empty: each pod downloads it before it starts, and may reach the public internet on port 443.',
        ),
    })
    .prefault({})
    .describe('A speech server, for transcribe_audio. It reaches nothing but the download of its model.'),
  pdftranslator: z
    .strictObject(backing('', ['250m', '1Gi'], ['2', '4Gi']))
    .prefault({})
    .describe(
      'The PDF translator, for translate_pdf. Its image is built from cluster/images/pdf-translator. It reaches nothing.',
    ),
});

export const values = z.strictObject({
  baseDomain: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/)
    .max(200)
    .describe('The API answers at https://<baseDomain>, an app at https://<app>.<baseDomain>.'),
  externalPort: port.default(443).describe('Port in the addresses that people see.'),
  image: z.string().min(1).describe('Image of operator and API.'),
  pipelineImage: z.string().min(1).describe('Image of the pipeline pods.'),
  imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent'),
  imagePullSecrets: z.array(name).default([]).describe('Secrets in the namespace of the release for pulling image.'),
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error']).default('info'),
  crd: z
    .strictObject({ install: z.boolean().default(true).describe('Install and upgrade the CRD with the chart.') })
    .prefault({}),
  namespaces: z
    .strictObject({
      create: z
        .boolean()
        .default(true)
        .describe('Make both. false: they exist, with the Pod Security labels that NOTES.txt names.'),
      apps: name.default('moorage-apps').describe('HostedApps and all that runs them.'),
      builds: name.default('moorage-builds').describe('Pipeline Jobs.'),
    })
    .prefault({}),
  gateway,
  registry,
  git: git.prefault({}),
  builds: builds.prefault({}),
  apps: apps.prefault({}),
  submissions: z
    .strictObject({ perDay: z.int().min(1).default(20).describe('New apps a caller may submit in 24 hours.') })
    .prefault({}),
  operator: z.strictObject(workload).prefault({
    replicas: 2,
    resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '1', memory: '512Mi' } },
  }),
  api: z
    .strictObject({
      ...workload,
      trustedProxies: z
        .array(cidr)
        .default([])
        .describe('Addresses whose X-Forwarded-For is believed: those of the pods of the gateway.'),
      callerSaltSecret: optional(name)
        .default('')
        .describe(
          'Secret with the key salt (32 characters or more) that hashes callers. Empty: one is made once and kept. Set it where the chart is rendered without a cluster (GitOps).',
        ),
      drainSeconds: z
        .int()
        .min(0)
        .max(300)
        .default(10)
        .describe('After SIGTERM, how long requests are still served while the endpoint is taken away.'),
    })
    // Tools work in processes of their own beside it: they share what is left of the limit after 512 Mi.
    .prefault({
      replicas: 2,
      resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '1', memory: '1536Mi' } },
    }),
  tools: tools
    .prefault({})
    .describe('Services behind tools. A tool whose service is neither enabled nor has a url says so.'),
  models: models.prefault({}).describe('Asking models: ask, compare, and /v1 for hosted apps.'),
  database: database.prefault({}).describe('Where the ledger is kept.'),
  postgres: postgres.prefault({}),
  network: network.prefault({}),
  hostUsers: z
    .boolean()
    .default(false)
    .describe('false: operator and API run in a user namespace too. true where nodes cannot.'),
  priorityClasses: z
    .strictObject({
      create: z
        .boolean()
        .default(true)
        .describe(
          'Make the priority classes moorage-system (operator, API), moorage-apps (they wait for room) and moorage-builds (first to go when a node is short).',
        ),
    })
    .prefault({}),
  global: z.record(z.string(), z.unknown()).default({}).describe('Helm hands this to every chart; not used.'),
});
export type Values = z.input<typeof values>;
