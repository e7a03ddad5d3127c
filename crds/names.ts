// Every name, label and annotation that Moorage writes into a cluster, in one place.

/** API group and version of HostedApp. */
export const group = 'moorage.dev';
export const version = 'v1alpha1';
export const kind = 'HostedApp';
export const plural = 'hostedapps';

/** Server-side apply field manager of everything the operator writes. */
export const fieldManager = 'moorage';

/** Held by a HostedApp until its pipeline Jobs (in another namespace) are gone. */
export const finalizer = 'moorage.dev/pipelines';

export const labels = {
  /** Name of the HostedApp that an object belongs to. */
  app: 'moorage.dev/app',
  /** Namespace of that HostedApp; needed where the object lives in another one. */
  appNamespace: 'moorage.dev/app-namespace',
  /** On a HostedApp: short hash of its normalized repository, to find it by repository. */
  repository: 'moorage.dev/repository',
  /** On a HostedApp: keyed hash of whoever submitted it, to limit submissions. */
  caller: 'moorage.dev/caller',
  /** On a HostedApp: keyed hash of the network it was submitted from, by which apps and builds are shared out. */
  network: 'moorage.dev/network',
  /** On a pipeline Job: full commit id. */
  commit: 'moorage.dev/commit',
  /** On what runs a backing service of an app: name of that service. */
  service: 'moorage.dev/service',
  /** On what holds data of an app (claims, generated Secrets): whose it is, as the operator's dataIdentity makes it. */
  data: 'moorage.dev/data',
  /** On a namespace whose HTTPRoutes the Gateway accepts. */
  routes: 'moorage.dev/routes',
  /** Standard labels. */
  name: 'app.kubernetes.io/name',
  instance: 'app.kubernetes.io/instance',
  component: 'app.kubernetes.io/component',
  partOf: 'app.kubernetes.io/part-of',
  managedBy: 'app.kubernetes.io/managed-by',
} as const;

export const annotations = {
  /** On a HostedApp: change its value to build the same commit again. */
  rebuild: 'moorage.dev/rebuild',
  /** On a HostedApp: change its value to look for a new commit now. */
  poll: 'moorage.dev/poll',
  /** On a HostedApp: the number of the rest (status.idle.number) that is to end. Written by the activator. */
  wake: 'moorage.dev/wake',
  /** On a HostedApp: its title and its description in Chinese, for the catalog. */
  titleZh: 'moorage.dev/title-zh',
  descriptionZh: 'moorage.dev/description-zh',
  /** On a pipeline Job and on app pods: full commit id, which may be longer than a label. */
  commit: 'moorage.dev/commit',
  /** On a pipeline Job: counts up with each pipeline of the app. */
  number: 'moorage.dev/number',
  /** On a pipeline Job: when it was queued, to the millisecond; creationTimestamp has whole seconds. */
  queuedAt: 'moorage.dev/queued-at',
  /** On a pipeline Job: why it was started. */
  reason: 'moorage.dev/reason',
  /** On a pipeline Job: hash of each build input, to say later which of them changed. */
  inputs: 'moorage.dev/inputs',
  /** On a pipeline Job: UID of the HostedApp that it builds. */
  appUid: 'moorage.dev/app-uid',
  /** On a pipeline Job: who submitted the app, of whom only so many builds run at once. */
  submitter: 'moorage.dev/submitter',
  /** On a pipeline Job: when and why its pod found no room, JSON. */
  noRoom: 'moorage.dev/no-room',
  /** On app pods: bytes of temporary disk, for container runtimes that can enforce it. */
  disk: 'moorage.dev/disk',
  /** On app pods: image by digest, as it was built. */
  image: 'moorage.dev/image',
  /** On app pods: port that they listen on. */
  port: 'moorage.dev/port',
  /** On what runs a backing service of an app: name of that service. */
  service: 'moorage.dev/service',
  /** On a claim: what the names of the app's data are made from (status.dataKey of its HostedApp). */
  dataKey: 'moorage.dev/data-key',
  /** On a claim: spec.deletionPolicy of its HostedApp. */
  deletionPolicy: 'moorage.dev/deletion-policy',
  /** On a claim: names of the generated Secrets that go with it, by comma. */
  dataSecrets: 'moorage.dev/data-secrets',
  /** On a claim whose HostedApp was deleted: when it is deleted too, RFC 3339, or never. */
  deleteAfter: 'moorage.dev/delete-after',
  /** On what starts a new image of an app while the old one serves, before it replaces it. */
  trial: 'moorage.dev/trial',
  /** On app pods: hash of the template that they were made from. */
  template: 'moorage.dev/template',
  /** On a Deployment: the release that it runs, JSON. */
  release: 'moorage.dev/release',
  /** On a Deployment: the release that a rollback would run, JSON. */
  before: 'moorage.dev/before',
  /** On a Deployment: templates, by comma, that were evicted for their disk too often to be started again. */
  stopped: 'moorage.dev/stopped',
  /** On a Deployment: template that failed again and again and is not started again, and why, JSON. */
  halted: 'moorage.dev/halted',
} as const;

/** Component of pods that only try a new image: no request reaches them. */
export const trialComponent = 'trial';

/** Header of requests by which the platform itself looks at an app: they wake none, and are no use of it. */
export const probeHeader = 'moorage-probe';

/** Service of the activator in the namespace of the installation, and the ports of its pods. */
export const activator = { name: 'moorage-activator', component: 'activator', port: 8080, controlPort: 8082 } as const;

const maximumSlugLength = 40;

/** The form of an app's slug, which is the name of its HostedApp and its subdomain. */
export const slugPattern = '^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$';

/**
 * Makes a DNS label (RFC 1123) of any text: lower case, digits and inner hyphens, at most 40 characters
 * so that names derived from it (Jobs, pods) still fit in 63. Empty when nothing usable is left.
 */
export function toDnsLabel(text: string): string {
  return text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, maximumSlugLength)
    .replace(/-+$/, '');
}

/** Containers of a pipeline pod, in order. */
export const containers = ['clone', 'review', 'build'] as const;
export type PipelineContainer = (typeof containers)[number];
