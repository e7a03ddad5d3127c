// The one definition of the chart's values: every value, its default, its bounds and what it means.
import { z } from 'zod';
import { apps } from './app-values.ts';
import { builds } from './build-values.ts';
import { services } from './backing-services.ts';
import { bench } from './bench-values.ts';
import { monitoring } from './monitoring-values.ts';
import { prices, receipts, revenue } from './revenue-values.ts';
import { review } from './review-values.ts';
import { tools } from './tool-values.ts';
import {
  quantity,
  cidr,
  labels,
  duration,
  port,
  name,
  host,
  domain,
  labelKey,
  allowEmpty,
  usd,
  dailyBudget,
  resources,
  workload,
} from './value-kinds.ts';

const gateway = z.strictObject({
  create: z
    .boolean()
    .default(true)
    .describe(
      'Create the Gateway. If false, a Gateway with this name and namespace must exist, with the listeners https (for *.appsDomain), https-base (for baseDomain) and http.',
    ),
  name: name.default('moorage').describe('Name of the Gateway.'),
  namespace: allowEmpty(name)
    .default('')
    .describe('Namespace of the Gateway. Defaults to the namespace of the release.'),
  className: name.describe('GatewayClass, such as traefik, envoy-gateway or cilium.'),
  tlsSecretName: name
    .default('moorage-wildcard')
    .describe('TLS Secret, in the namespace of the Gateway, for baseDomain and *.appsDomain.'),
  namespaceLabels: labels
    .meta({ minProperties: 1 })
    .describe(
      'Labels of the namespace whose pods carry the traffic of the Gateway; only these pods can reach the apps and the API.',
    ),
  ports: z
    .strictObject({ http: port.default(80), https: port.default(443) })
    .prefault({})
    .describe('Ports of the listeners. Traefik requires the ports of its entry points.'),
  annotations: z
    .record(z.string(), z.string())
    .default({})
    .describe('Annotations of the Gateway, for example for cert-manager.'),
  listeners: z
    .array(z.looseObject({ name }))
    .default([])
    .describe('Further listeners of the Gateway, as the Gateway API defines them, for services that are not apps.'),
  hstsSeconds: z
    .int()
    .min(0)
    .max(63_072_000)
    .default(0)
    .describe(
      'max-age of Strict-Transport-Security, which has browsers use https alone for the API and for each app. Set it, to 31536000 at last, once the certificate is of a public issuer: for that long a browser refuses a site whose certificate it does not trust. With 0 there is no such header.',
    ),
  probeUrl: allowEmpty(z.string().regex(/^https?:\/\//))
    .default('')
    .describe(
      'Base URL of the gateway inside the cluster, through which an app is probed before it is reported as live. If empty, apps are not probed.',
    ),
});

const registry = z.strictObject({
  host: host.describe('Registry for app images, which are named <host>/apps/<app>.<UID>.'),
  insecure: z.boolean().default(false).describe('Use plain HTTP.'),
  pushSecret: name
    .default('moorage-registry')
    .describe(
      'Secret of type kubernetes.io/dockerconfigjson in the namespace of the release, for pushing images. Only the registry proxy has it.',
    ),
  pullSecret: allowEmpty(name)
    .default('')
    .describe('Secret of the same type in the apps namespace, if pulling images requires credentials.'),
  pushTokenSecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret whose key `secret` (at least 32 characters) makes the tokens by which builds push. If empty, one is created once and kept. Set it if the chart is rendered without a cluster (GitOps).',
    ),
  proxy: z
    .strictObject(workload)
    .default({
      replicas: 1,
      resources: { requests: { cpu: '25m', memory: '64Mi' }, limits: { cpu: '1', memory: '256Mi' } },
    })
    .describe('The registry proxy, through which builds push and read their cache.'),
  mirror: allowEmpty(host)
    .default('')
    .describe(
      'Registry used in place of those of mirrorOf. It must not require credentials, unless it is the registry for app images itself.',
    ),
  mirrorOf: z.array(host).default(['docker.io']).describe('Registries that the mirror is used in place of.'),
  missingImages: z
    .array(z.string())
    .default([])
    .describe(
      'Base images that plans of languages start from, and that the mirror does not have, such as golang:1.26-bookworm: an app that needs one is rejected with that reason, or gets another version with a warning.',
    ),
  prune: z
    .boolean()
    .default(true)
    .describe(
      'Remove images and caches that are no longer kept (builds.imageLimit, builds.cacheLimit), and those of deleted apps, from the registry. The push account must be allowed to delete. If false, leave that to the retention rules of the registry.',
    ),
  volumeClaim: allowEmpty(z.string().regex(/^[a-z0-9][-a-z0-9.]*\/[a-z0-9][-a-z0-9.]*$/))
    .default('')
    .describe(
      'PersistentVolumeClaim on which the registry stores, as namespace/name, if it runs in this cluster: builds wait while it is nearly full.',
    ),
  cidrs: z.array(cidr).default([]).describe('Addresses of the registry, if it is not on the public internet.'),
  port: port.default(443).describe('TCP port of the registry at these addresses.'),
});

const git = z.strictObject({
  allowedHosts: z
    .array(host)
    .min(1)
    .default(['github.com', 'gitlab.com', 'codeberg.org'])
    .describe('Allowed git hosts. The first one is the default host of owner/name.'),
  insecureHosts: z
    .array(z.string().regex(/^([a-z0-9.-]+[.])?(localhost|svc[.]cluster[.]local)(:[0-9]{1,5})?$/))
    .default([])
    .describe('Allowed git hosts that are reached over plain HTTP; only hosts inside the cluster.'),
  namespaceLabels: labels.default({}).describe('Labels of the namespace of a git server inside the cluster.'),
  port: port.default(8080).describe('TCP port of the pods of that git server.'),
  readTokenSecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret with the key "secret" (at least 32 characters), if that git server gives a repository only to the holder of a token for it. It must have the same secret. A build then reads the repository of its own app alone.',
    ),
});

const sandbox = z.strictObject({
  priorityClasses: z
    .array(name)
    .default([])
    .describe(
      'PriorityClasses that pods of apps and builds may have besides that of their kind, such as the global default of the cluster.',
    ),
  tolerationKeys: z
    .array(labelKey)
    .default([])
    .describe(
      'Keys of taints that pods of apps and builds may tolerate, if the cluster adds such tolerations to them.',
    ),
  nodeSelectorKeys: z
    .array(labelKey)
    .default([])
    .describe(
      'Keys of node labels that pods of apps and builds may select, if the cluster or a RuntimeClass adds such selectors to them.',
    ),
});

const network = z.strictObject({
  podCidrs: z.array(cidr).default([]).describe('Pod CIDRs, which apps and builds cannot reach.'),
  serviceCidrs: z.array(cidr).default([]).describe('Service CIDRs, which apps and builds cannot reach.'),
  nodeCidrs: z.array(cidr).default([]).describe('Node CIDRs, which apps and builds cannot reach.'),
  closedCidrs: z
    .array(cidr)
    .default([])
    .describe(
      'Further CIDRs that apps, builds and tools cannot reach. Private, reserved, link-local, multicast and metadata addresses are always closed.',
    ),
  apiServer: z
    .strictObject({ cidrs: z.array(cidr).default([]), ports: z.array(port).min(1).default([443, 6443]) })
    .prefault({})
    .describe(
      'Endpoints of the Kubernetes API server. If no addresses are given, the operator and the API can reach these ports anywhere.',
    ),
  dns: z
    .strictObject({
      namespaceLabels: labels.default({ 'kubernetes.io/metadata.name': 'kube-system' }),
      podLabels: z.record(z.string(), z.string()).default({ 'k8s-app': 'kube-dns' }),
      ports: z.array(port).min(1).default([53]),
    })
    .prefault({})
    .describe('Pods that serve DNS.'),
  metricsNamespaceLabels: labels
    .default({})
    .describe('Labels of the namespace that is allowed to scrape metrics. If empty, none is.'),
});

const models = z.strictObject({
  router: z
    .strictObject({
      baseUrl: allowEmpty(z.string().regex(/^https?:\/\//))
        .default('')
        .describe(
          'Base URL of the model router, such as https://openrouter.ai/api/v1 or http://litellm.llm.svc.cluster.local:4000. If empty, models are not available.',
        ),
      kind: z
        .enum(['openrouter', 'litellm'])
        .default('openrouter')
        .describe('Kind of router, which decides how the cost of a call is read.'),
      keySecret: allowEmpty(name)
        .default('')
        .describe('Secret in the namespace of the release whose key `key` holds the API key for the router.'),
      billKeySecret: allowEmpty(name)
        .default('')
        .describe(
          'Secret whose key `key` holds a key that may read what the router billed, where the one of `keySecret` may not: a management key of OpenRouter, or a key of an administrator of LiteLLM.',
        ),
      namespaceLabels: labels
        .default({})
        .describe(
          'Labels of the namespace of a router inside the cluster. If empty, the router is on the public internet.',
        ),
      port: port.default(443).describe('TCP port of the router; inside the cluster, the port of its pods.'),
    })
    .prefault({})
    .describe('Model router.'),
  freeQuotaUsd: usd.default('0.05').describe('Daily quota in USD of a caller without an API key.'),
  keyLimitUsd: usd
    .default('5')
    .describe(
      'Daily limit in USD of what a caller with an API key is charged for tools, apps and the margin on model calls.',
    ),
  dailyCapUsd: usd.default('5').describe('Daily limit in USD of all calls that are paid with the platform key.'),
  callsPerCaller: z
    .int()
    .min(1)
    .default(8)
    .describe(
      'Maximum number of model calls that one caller without a key, or one app, may have in flight at a time. Until the first call of a day (of an app: of a week) is settled, it is one.',
    ),
  callsInFlight: z
    .int()
    .min(1)
    .default(256)
    .describe('Maximum number of model calls in flight with the platform key, on all replicas together.'),
  callSeconds: z.int().min(1).max(900).default(120).describe('Time limit of a call, in seconds.'),
  listConfigMap: allowEmpty(name)
    .default('')
    .describe(
      'ConfigMap in the namespace of the release whose key `models.yaml` replaces the list of models in the image.',
    ),
  appTokenSecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret whose key `secret` (at least 32 characters) signs the tokens of apps. If empty, one is created once and kept.',
    ),
});

const postgres = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'Run a single PostgreSQL with the release, with TLS and both roles, without backup or failover: for evaluation only. In production, set database.urlSecret.',
    ),
  image: z.string().min(1).default('postgres:17-bookworm').describe('Image of PostgreSQL, version 15 or newer.'),
  storage: quantity.default('5Gi').describe('Size of the volume.'),
  storageClass: allowEmpty(name)
    .default('')
    .describe('StorageClass of the volume. Defaults to the default StorageClass of the cluster.'),
  resources: resources.default({ requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '1', memory: '512Mi' } }),
});

const metering = z.strictObject({
  tokenSecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret in the namespace of the release whose key `token` gateways send with their access logs. If empty, one is made and kept.',
    ),
  gatewayNamespace: allowEmpty(name)
    .default('')
    .describe(
      'Namespace of the gateway and its shipper: the Secret that is made, moorage-metering, is copied into it, and Prometheus finds the shipper there. If empty, nothing is copied, and the shipper is looked for in the namespace of the Gateway.',
    ),
  graceSeconds: z
    .int()
    .min(1)
    .default(3_600)
    .describe(
      'Seconds after which a request that a gateway counted and sent no record of is reported as lost. A record that comes later is counted all the same.',
    ),
});

const database = z.strictObject({
  urlSecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret in the namespace of the release whose key `url` is postgres://role:password@host/database, for version 15 or newer: what the API connects with. Connections are encrypted if the server offers it; add ?sslmode=verify-full to require it and to check the certificate. If empty and postgres.enabled is false, models are not available.',
    ),
  migratorUrlSecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret whose key `url` is the same database with the role that owns the schema. Each pod of the API migrates with it before it serves, and gives the role of urlSecret its rights: that one can then neither change the schema nor what is recorded. If empty, the role of urlSecret owns everything, and the API warns at its start.',
    ),
  caSecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret whose key `ca.crt` certifies the database server; it is mounted for ?sslmode=verify-full&sslrootcert=/etc/moorage-database/ca.crt. If empty, public authorities count.',
    ),
  cidrs: z.array(cidr).default([]).describe('Addresses of the database server. If empty, any address is allowed.'),
  port: port.default(5432).describe('TCP port of the database server.'),
  keepDays: z
    .int()
    .min(7)
    .default(400)
    .describe(
      'Days for which individual uses and finished reservations are kept. The ledger, and with it every balance, is kept forever.',
    ),
  auditSeconds: z
    .int()
    .min(60)
    .default(3600)
    .describe('How often each replica of the API audits the whole ledger, in seconds.'),
});

export const values = z.strictObject({
  baseDomain: domain.describe('Domain of the API, which is served at https://<baseDomain>.'),
  appsDomain: allowEmpty(domain)
    .default('')
    .describe(
      'Domain of the apps, each of which is served at https://<app>.<appsDomain>. Defaults to baseDomain. Give apps a registered domain of their own, so that no app can set cookies for the API.',
    ),
  externalPort: port.default(443).describe('Port in the public URLs.'),
  image: z.string().min(1).describe('Image of the operator and the API.'),
  pipelineImage: z.string().min(1).describe('Image of the pipeline pods.'),
  imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).default('IfNotPresent'),
  imagePullSecrets: z
    .array(name)
    .default([])
    .describe('Secrets in the namespace of the release for pulling this image.'),
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error']).default('info'),
  crd: z
    .strictObject({ install: z.boolean().default(true).describe('Install and upgrade the CRD with the chart.') })
    .prefault({}),
  namespaces: z
    .strictObject({
      create: z
        .boolean()
        .default(true)
        .describe(
          'Create both namespaces. If false, they must exist, with the Pod Security labels that NOTES.txt lists.',
        ),
      apps: name.default('moorage-apps').describe('Namespace of the HostedApps and of the objects that run them.'),
      builds: name.default('moorage-builds').describe('Namespace of the pipeline Jobs.'),
    })
    .prefault({}),
  gateway,
  registry,
  git: git.prefault({}),
  review: review.prefault({}),
  builds: builds.prefault({}),
  apps: apps.prefault({}),
  services: services.prefault({}).describe('Databases and stores beside apps (spec.services).'),
  submissions: z
    .strictObject({
      perDay: z.int().min(1).default(20).describe('Maximum number of new apps that a caller can submit in 24 hours.'),
      modelsUsd: allowEmpty(dailyBudget)
        .default('')
        .describe(
          'Daily budget in USD with which a newly submitted app can call models (spec.models of its HostedApp), paid with the platform key. If empty, it cannot until the operator sets spec.models.enabled.',
        ),
    })
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
        .describe('Addresses whose X-Forwarded-For header is trusted: those of the pods of the gateway.'),
      callerSaltSecret: allowEmpty(name)
        .default('')
        .describe(
          'Secret whose key `salt` (at least 32 characters) is used to hash callers. If empty, one is created once and kept. Set it if the chart is rendered without a cluster (GitOps).',
        ),
      drainSeconds: z
        .int()
        .min(0)
        .max(300)
        .default(10)
        .describe('How many seconds requests are still served after SIGTERM, while the endpoint is removed.'),
    })
    // 16 calls with 17 MB each, waiting for workers, take 370 MB beside the 150 MB of the process.
    .prefault({
      replicas: 2,
      resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { cpu: '1', memory: '768Mi' } },
    }),
  activator: z
    .strictObject({
      ...workload,
      drainSeconds: z
        .int()
        .min(1)
        .max(3_600)
        .default(30)
        .describe('How many seconds requests and connections in progress may take when a pod of it ends.'),
      heldPerApp: z
        .int()
        .min(1)
        .default(2_000)
        .describe('Maximum number of requests that a pod of it holds for one app that wakes.'),
      heldPerClient: z
        .int()
        .min(1)
        .default(100)
        .describe(
          'Maximum number of requests that a pod of it holds for one client: an IPv4 address, or a /56 of IPv6. A client is known by X-Forwarded-For of the gateway; proxies before it belong in api.trustedProxies.',
        ),
      probeTokenSecret: allowEmpty(name)
        .default('')
        .describe(
          'Secret whose key `token` (at least 32 characters) marks requests of the platform that wake no app. If empty, one is created once and kept.',
        ),
      held: z.int().min(1).default(8_000).describe('Maximum number of requests that a pod of it holds for all apps.'),
      interval: duration.default('5s').describe('How often the operator asks it which apps are in use.'),
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
  prices: prices.prefault({}).describe('What uses, calls, tools and models cost whom.'),
  revenue: revenue.prefault({}).describe('Statements of authors.'),
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
export type Values = z.input<typeof values>;
