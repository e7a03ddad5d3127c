// Defines the sections of the chart's values: every value in them that does more than set an environment variable.
import { z } from 'zod';
import { allowEmpty, valueTypes } from '../lib/settings.ts';

const { quantity, duration, cidr, labels, port, name, url } = valueTypes;

const labelKey = z
  .string()
  .regex(/^[A-Za-z0-9]([-A-Za-z0-9._/]*[A-Za-z0-9])?$/)
  .max(317);
const resources = z.strictObject({
  requests: z.strictObject({ cpu: quantity, memory: quantity }),
  limits: z.strictObject({ cpu: quantity, memory: quantity }),
});
export const workload = {
  replicas: z.int().min(0).max(20).describe('Number of replicas.'),
  resources: resources.describe('Resource requests and limits of each replica.'),
};

export const gateway = z.strictObject({
  create: z
    .boolean()
    .default(true)
    .describe(
      'Create the Gateway. If false, a Gateway with this name and namespace must exist, with the listeners https (for *.appsDomain), https-base (for baseDomain) and http.',
    ),
  namespace: allowEmpty(name)
    .default('')
    .describe('Namespace of the Gateway. Defaults to the namespace of the release.'),
  className: name.describe('GatewayClass, such as traefik, envoy-gateway or cilium.'),
  tlsSecretName: name
    .default('moorage-wildcard')
    .describe('TLS Secret, in the namespace of the Gateway, for baseDomain and *.appsDomain.'),
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
});

export const registry = z.strictObject({
  pushSecret: name
    .default('moorage-registry')
    .describe(
      'Secret of type kubernetes.io/dockerconfigjson in the namespace of the release, for pushing images. Only the registry proxy has it.',
    ),
  pushTokenSecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret whose key `secret` (at least 32 characters) makes the tokens that builds push with. If empty, one is created once and kept. Set it if the chart is rendered without a cluster (GitOps).',
    ),
  proxy: z
    .strictObject(workload)
    .default({
      replicas: 1,
      resources: { requests: { cpu: '25m', memory: '64Mi' }, limits: { cpu: '1', memory: '256Mi' } },
    })
    .describe('The registry proxy, through which builds push and read their cache.'),
  cidrs: z.array(cidr).default([]).describe('Addresses of the registry, if it is not on the public internet.'),
  port: port.default(443).describe('TCP port of the registry at these addresses.'),
});

export const git = z.strictObject({
  namespaceLabels: labels.default({}).describe('Labels of the namespace of a git server inside the cluster.'),
  port: port.default(8080).describe('TCP port of the pods of that git server.'),
  readTokenSecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret with the key "secret" (at least 32 characters), if that git server gives a repository only to the holder of a token for it. It must have the same secret. A build then reads the repository of its own app alone.',
    ),
  sshPorts: z
    .array(port)
    .default([22])
    .describe(
      'TCP ports at which the operator and builds reach git servers over SSH, for private repositories. If empty, there are none.',
    ),
  sshCidrs: z
    .array(cidr)
    .default([])
    .describe(
      'Addresses of these git servers, such as those that GitHub publishes. If empty, the whole public internet at these ports, for the operator and for builds of private repositories.',
    ),
  deployKeySecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret whose key `secret` (at least 32 characters) derives the deploy keys of private repositories. If empty, one is created once and kept. Set it if the chart is rendered without a cluster (GitOps).',
    ),
});

export const sandbox = z.strictObject({
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

export const network = z.strictObject({
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

export const models = z.strictObject({
  router: z
    .strictObject({
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

export const postgres = z.strictObject({
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

export const metering = z.strictObject({
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
});

export const database = z.strictObject({
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
});

export const apps = z.strictObject({
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
});

export const builds = z.strictObject({
  maximum: z.strictObject({}).prefault({}).describe('Resource limits of every build, whatever its HostedApp requests.'),
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
  packageCidrs: z
    .array(cidr)
    .default([])
    .describe(
      'Addresses among the closed ones at which builds find packages, such as those of a mirror inside. Apps and tools cannot reach them.',
    ),
});

export const services = z.strictObject({
  maximum: z.strictObject({}).prefault({}).describe('Limits of each service, whatever its app asks for.'),
  images: z
    .record(z.string().regex(/^[a-z]{1,20}(-[0-9A-Za-z._-]{1,40})?$/), z.string().regex(/^[^=,\s]{0,300}$/))
    .default({
      postgres: 'docker.io/pgvector/pgvector:pg17',
      redis: 'docker.io/library/redis:8',
      mongo: 'docker.io/library/mongo:8',
      mysql: 'docker.io/library/mysql:8.4',
      qdrant: 'docker.io/qdrant/qdrant:v1.15.4-unprivileged',
      chroma: 'docker.io/chromadb/chroma:1.0.20',
      minio: 'docker.io/minio/minio:RELEASE.2025-09-07T16-13-09Z',
      meilisearch: 'docker.io/getmeili/meilisearch:v1.22.1',
    })
    .describe(
      'Image of each type of service; of a further version as <type>-<version>, like postgres-16. A type that is empty is not offered, and apps that need it are rejected.',
    ),
});

const serviceAddress = {
  enabled: z.boolean().default(false).describe('Run this service with the release.'),
  url: allowEmpty(url).default('').describe('Base URL of a service that runs elsewhere, used if enabled is false.'),
  namespaceLabels: labels
    .default({})
    .describe(
      'Labels of the namespace of that service, if it is inside the cluster. If empty, it is on the public internet, on port 80, 443, 8080 or 8443.',
    ),
  port: port.default(80).describe('TCP port of its pods, if it is inside the cluster.'),
  offBecause: z
    .string()
    .max(300)
    .default('')
    .describe('Why it is off, for callers to read in GET /t, if it is neither enabled nor has a url.'),
};

/** Like 250m of CPU and 512Mi of memory. */
type Share = readonly [cpu: string, memory: string];

/** Fields of a service behind tools: an image that the chart runs, or the address of a server elsewhere. */
const createServiceFields = (image: string, [cpu, memory]: Share, maximum: Share) => ({
  ...serviceAddress,
  image: z.string().default(image).describe('Image of the service.'),
  replicas: workload.replicas.default(1),
  resources: workload.resources.default({ requests: { cpu, memory }, limits: { cpu: maximum[0], memory: maximum[1] } }),
});

export const tools = z.strictObject({
  searxng: z
    .strictObject({
      ...createServiceFields('docker.io/searxng/searxng:2026.11.2-cccbc9e15', ['100m', '256Mi'], ['1', '1Gi']),
      secretKeySecret: allowEmpty(name)
        .default('')
        .describe('Secret whose key `secret` is the secret key of SearXNG. If empty, one is created once and kept.'),
    })
    .prefault({})
    .describe('SearXNG, for web_search and deep_research. It can reach the public internet.'),
  gotenberg: z
    .strictObject({
      ...createServiceFields('docker.io/gotenberg/gotenberg:8.36.0', ['250m', '512Mi'], ['2', '3Gi']),
      proxy: z
        .strictObject(workload)
        .prefault({
          replicas: 1,
          resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { cpu: '1', memory: '512Mi' } },
        })
        .describe('The guarded proxy, which is the only way for its Chromium to reach the web.'),
    })
    .prefault({})
    .describe('Gotenberg, for convert_to_pdf and screenshot. It can reach only its proxy.'),
  languagetool: z
    .strictObject({
      ...createServiceFields('docker.io/erikvl87/languagetool:6.8', ['100m', '1Gi'], ['2', '2Gi']),
      heap: quantity.default('1Gi').describe('Maximum heap size of Java, below the memory limit.'),
    })
    .prefault({})
    .describe('LanguageTool, for check_grammar in languages other than English. It has no network access.'),
  speech: z
    .strictObject({
      ...createServiceFields('ghcr.io/speaches-ai/speaches:0.9.0-rc.3-cpu', ['250m', '1Gi'], ['4', '4Gi']),
      modelClaim: allowEmpty(name)
        .default('')
        .describe(
          'PersistentVolumeClaim with the model, laid out as a Hugging Face cache. If empty, each pod downloads the model before it starts, and can reach the public internet on port 443.',
        ),
      modelInImage: z
        .boolean()
        .default(false)
        .describe('The image holds the model: nothing is downloaded, and the pod has no network access.'),
    })
    .prefault({})
    .describe('A speech server, for transcribe_audio. It can reach only the download of its model.'),
  pdftranslator: z
    .strictObject(createServiceFields('', ['250m', '1Gi'], ['2', '4Gi']))
    .prefault({})
    .describe(
      'The PDF translator, for translate_pdf. Its image is built from localnode/images/pdf-translator. It has no network access.',
    ),
});

export const bench = z.strictObject({
  schedule: allowEmpty(z.string().regex(/^(\S+\s+){4}\S+$/))
    .default('')
    .describe(
      'When benchmarks run, in cron form and UTC, such as "0 3 * * *". If empty, none run. Model calls are charged to the app that is benchmarked, within its daily budget.',
    ),
  apps: z
    .array(z.string().regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/))
    .default([])
    .describe('Slugs of the apps, each with a folder in manifests/bench.'),
  models: z
    .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/))
    .default([])
    .describe('Models, as GET /api/models names them.'),
  runs: z.int().min(1).max(1_000).default(5).describe('Runs of each model on each task, each time.'),
  resources: resources
    .default({ requests: { cpu: '25m', memory: '128Mi' }, limits: { cpu: '1', memory: '512Mi' } })
    .describe('Resource requests and limits.'),
});

export const receipts = z.strictObject({
  keySecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret in the namespace of the release whose key `key` is an Ed25519 private key (PKCS#8, PEM). If empty, one is made and kept.',
    ),
});

export const mail = z.strictObject({
  urlSecret: allowEmpty(name)
    .default('')
    .describe(
      'Secret in the namespace of the release whose key `url` is the SMTP server, such as smtps://user:password@mail.example.org:465. A key `ca.crt` holds the certificates (PEM) of a private authority. If empty, no mail is sent.',
    ),
  cidrs: z.array(cidr).default([]).describe('Addresses of the SMTP server, if it is not on the public internet.'),
  port: port.default(465).describe('TCP port of the SMTP server.'),
});

export const signIn = z
  .strictObject({
    providersSecret: allowEmpty(name)
      .default('')
      .describe(
        'Secret in the namespace of the release whose key `providers.json` is a list of forges: objects with id, label, forge (github, gitlab or gitea), issuer, clientId, clientSecret, and optionally scopes, apiUrl and host. The redirect URI of a provider is https://<baseDomain>/sign-in/<id>/callback. If empty, authors use keys alone.',
      ),
    cidrs: z
      .array(cidr)
      .default([])
      .describe('Addresses of forges that are not on the public internet, which the API then reaches too.'),
    port: port.default(443).describe('TCP port of these forges.'),
  })
  .describe('Sign-in of authors with accounts of forges.');

export const monitoring = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe(
        'Create PodMonitors and a PrometheusRule, for which the CRDs of the Prometheus Operator must be installed. Set network.metricsNamespaceLabels too.',
      ),
    labels: z
      .record(z.string(), z.string())
      .default({})
      .describe('Their labels, which a Prometheus selects them by, such as release: kube-prometheus-stack.'),
    interval: duration.default('30s').describe('How often the processes are scraped.'),
    rules: z.boolean().default(true).describe('Create the PrometheusRule, the alerts.'),
  })
  .describe('Monitoring by Prometheus.');
