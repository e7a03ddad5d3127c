// The one definition of HostedApp: every field, its default, its bounds and what it means.
import { z } from 'zod';

const quantity = z.string().regex(/^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$/);
const duration = z.string().regex(/^([0-9]+h)?([0-9]+m)?([0-9]+s)?$/).min(2);
const timestamp = z.iso.datetime().describe('RFC 3339 time, UTC.');
const environmentName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/).max(128);

const variable = z.strictObject({
  name: environmentName.describe('Name of the variable.'),
  value: z.string().max(32_768).describe('Value, as it is; nothing is expanded in it.'),
});

export const source = z.strictObject({
  repo: z.string().regex(/^https?:\/\/[^\s@?#]+$/).max(512).describe('Address of the git repository, https, without credentials.'),
  revision: z.string().regex(/^[A-Za-z0-9_][A-Za-z0-9._/-]*$/).max(200).optional()
    .describe('Branch, tag or full commit id. Absent: the default branch of the repository.'),
  path: z.string().regex(/^[^/\\].*$/).max(200).default('.').describe('Folder of the app inside the repository, relative, without "..".'),
  interval: duration.default('5m').describe('How often the repository is asked for a new commit, like 90s, 5m, 1h; at least 30s.'),
});

const buildResources = z.strictObject({
  cpu: quantity.default('2').describe('Most processors that a build may use.'),
  memory: quantity.default('4Gi').describe('Most memory that a build may use.'),
  disk: quantity.default('10Gi').describe('Most disk that source, layers and image may use during a build.'),
});

export const build = z.strictObject({
  strategy: z.enum(['auto', 'dockerfile', 'python', 'node', 'static']).default('auto')
    .describe('How the image is made. auto: Dockerfile if there is one, else by the files found.'),
  dockerfile: z.string().regex(/^[^/\\].*$/).max(200).default('Dockerfile').describe('Path of the Dockerfile below source.path.'),
  args: z.array(variable).max(64).default([]).describe('Build arguments. They end in the image history, so never put a secret here.'),
  env: z.array(variable).max(64).default([]).describe('Variables set during a build that Moorage plans itself (not a Dockerfile).'),
  resources: buildResources.prefault({}).describe('Limits of the build pod.'),
  timeout: duration.default('20m').describe('A build that takes longer is stopped and the app rejected; 1m to 2h.'),
});

const runResources = z.strictObject({
  cpu: quantity.default('1').describe('Most processors for one replica.'),
  memory: quantity.default('512Mi').describe('Most memory for one replica; above it the replica is killed and started again.'),
  disk: quantity.default('1Gi').describe('Most temporary disk for one replica.'),
});

const secretReference = z.strictObject({
  name: environmentName.describe('Name of the variable that the app sees.'),
  secret: z.string().regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/).max(253).describe('Name of a Secret in the namespace of the app.'),
  key: z.string().regex(/^[-._A-Za-z0-9]+$/).max(253).describe('Key within that Secret.'),
});

const volume = z.strictObject({
  name: z.string().regex(/^[a-z]([-a-z0-9]*[a-z0-9])?$/).max(30).describe('Name of the volume, a DNS label.'),
  path: z.string().regex(/^\/[^:]*[^/:]$/).max(200).describe('Where it is mounted, absolute.'),
  size: quantity.default('1Gi').describe('Size; it can grow later where the storage class allows it, never shrink.'),
});

export const run = z.strictObject({
  port: z.int().min(1).max(65_535).optional()
    .describe('TCP port on which the app listens for HTTP, also given to it as $PORT. Absent: what the plan or the image says, else 8080.'),
  command: z.array(z.string().min(1).max(4096)).max(64).default([]).describe("Command and arguments instead of the image's own."),
  env: z.array(variable).max(128).default([]).describe('Variables of the running app.'),
  secrets: z.array(secretReference).max(64).default([]).describe('Variables taken from Secrets.'),
  resources: runResources.prefault({}).describe('Limits of one replica.'),
  replicas: z.int().min(0).max(20).default(1).describe('How many replicas run.'),
  healthPath: z.string().regex(/^\/[^\s]*$/).max(200).optional()
    .describe('Path that answers 200 to 399 when the app can serve. Absent: the port accepting connections is enough.'),
  volumes: z.array(volume).max(8).default([]).describe('Disks that outlive a replica. With any, the app has at most one replica.'),
  startupTime: duration.default('2m').describe('How long the app may take until it serves; 10s to 30m.'),
});

export const listing = z.strictObject({
  title: z.string().min(1).max(80).optional().describe('Name shown to people. Absent: the name of the HostedApp.'),
  description: z.string().max(500).optional().describe('One line on what the app does.'),
  category: z.enum(['chat', 'document', 'research', 'writing', 'slides', 'image', 'audio', 'code', 'other']).default('other').describe('Where the catalog lists it.'),
  upstream: z.string().regex(/^https?:\/\/\S+$/).max(512).optional().describe('Page of the original project, where the repository is a fork.'),
});

export const author = z.strictObject({
  contact: z.string().max(200).optional().describe('Where launch and revenue news go: an e-mail address or URL.'),
  share: z.string().regex(/^(0(\.[0-9]{1,4})?|1(\.0{1,4})?)$/).default('0.7').describe('Share of the revenue that the author accrues, a decimal from 0 to 1.'),
});

export const spec = z.strictObject({
  source: source.describe('Where the code comes from.'),
  build: build.prefault({}).describe('How it becomes an image.'),
  run: run.prefault({}).describe('How the image is run.'),
  listing: listing.prefault({}).describe('How it is shown.'),
  author: author.prefault({}).describe('Whose it is.'),
  suspend: z.boolean().default(false).describe('true: no replica runs and no build starts; data and address are kept.'),
});

/** One thing found wrong (or worth saying) in a repository. `mend` tells the author what to change. */
export const finding = z.object({
  rule: z.string().max(60).describe('Name of the rule, like secrets/aws-access-token.'),
  severity: z.enum(['error', 'warning']).describe('error rejects the app; warning does not.'),
  file: z.string().max(300).optional().describe('Path in the repository.'),
  line: z.int().optional().describe('Line in that file, from 1.'),
  message: z.string().max(2_000).describe('What was found.'),
  mend: z.string().max(600).describe('What to change.'),
});

export const plan = z.object({
  strategy: z.enum(['dockerfile', 'python', 'node', 'static']).describe('How the image is made.'),
  reason: z.string().max(400).describe('Why this strategy was taken.'),
  framework: z.string().max(60).optional().describe('Framework that was recognised.'),
  port: z.int().optional().describe('Port that the plan makes the app listen on.'),
});

export const stages = ['Queued', 'Clone', 'Review', 'Build'] as const;

const historyEntry = z.object({
  number: z.int().describe('Counts up with each pipeline of this app.'),
  job: z.string().describe('Name of the pipeline Job.'),
  commit: z.string().describe('Commit that was built.'),
  reason: z.string().describe('Why it was built: what changed since the last one.'),
  result: z.enum(['Succeeded', 'Rejected', 'Faulted', 'Superseded']).describe('How it ended. Faulted: a fault of the platform, tried again.'),
  message: z.string().max(1_000).optional().describe('In a word, why it ended so.'),
  image: z.string().optional().describe('Image by digest, when one was made.'),
  startedAt: timestamp.optional(),
  finishedAt: timestamp.optional(),
});

export const condition = z.object({
  type: z.string(),
  status: z.enum(['True', 'False', 'Unknown']),
  observedGeneration: z.int().optional(),
  lastTransitionTime: timestamp,
  reason: z.string(),
  message: z.string(),
});

export const status = z.object({
  observedGeneration: z.int().optional().describe('Generation of the spec that this status speaks of.'),
  phase: z.enum(['Pending', 'Queued', 'Cloning', 'Reviewing', 'Building', 'Deploying', 'Routing', 'Live', 'Rejected', 'Suspended']).optional()
    .describe('Where the newest revision stands, in a word.'),
  since: timestamp.optional().describe('Since when it has been in this phase.'),
  url: z.string().optional().describe('Where the app answers.'),
  source: z.object({
    commit: z.string().describe('Newest commit of the revision.'),
    reference: z.string().optional().describe('Reference it was resolved from.'),
    polledAt: timestamp.optional().describe('When the repository was last asked.'),
    polledFor: z.string().optional().describe('Hash of the source settings that the commit was resolved from.'),
  }).optional().describe('What the repository says.'),
  pipeline: z.object({
    job: z.string().describe('Name of the pipeline Job of the newest commit.'),
    pod: z.string().optional().describe('Its newest pod; its containers clone, review and build hold the log.'),
    number: z.int().optional(),
    reason: z.string().optional().describe('Why it was started: what changed.'),
    stage: z.enum(stages).optional().describe('Stage it is in.'),
    stageSince: timestamp.optional(),
    position: z.int().optional().describe('Place in the queue of builds, from 1, while it waits.'),
  }).optional().describe('The newest pipeline.'),
  plan: plan.optional().describe('How the image in service was made, and why so.'),
  findings: z.array(finding).max(50).optional().describe('What the review found in the newest commit.'),
  rejection: z.object({
    rule: z.string(),
    file: z.string().optional(),
    line: z.int().optional(),
    message: z.string(),
    mend: z.string(),
    log: z.string().max(8_000).optional().describe('Last lines of the log, where there is one.'),
  }).optional().describe('Why the newest commit is not served; absent while all is well.'),
  built: z.object({
    image: z.string().describe('Image by digest.'),
    commit: z.string(),
    inputsHash: z.string().describe('Hash of all that went into it.'),
    port: z.int().optional(),
  }).optional().describe('Newest image that was built.'),
  served: z.object({
    image: z.string(),
    commit: z.string(),
    since: timestamp,
  }).optional().describe('What answers at the URL now.'),
  history: z.array(historyEntry).max(20).optional().describe('Past pipelines, newest first.'),
  conditions: z.array(condition).optional().describe('Ready, Reconciling, Stalled and one a step.'),
});

export type HostedAppSpec = z.infer<typeof spec>;
export type HostedAppStatus = z.infer<typeof status>;
export type Finding = z.infer<typeof finding>;
export type Plan = z.infer<typeof plan>;
export type Condition = z.infer<typeof condition>;
export type HistoryEntry = z.infer<typeof historyEntry>;

/** Metadata as the API server gives it; what Moorage does not read is left out. */
const metadata = z.looseObject({
  name: z.string(),
  namespace: z.string(),
  uid: z.string(),
  generation: z.int(),
  resourceVersion: z.string(),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  finalizers: z.array(z.string()).optional(),
});

export const hostedApp = z.object({
  apiVersion: z.literal('moorage.dev/v1alpha1'),
  kind: z.literal('HostedApp'),
  metadata,
  spec,
  status: status.optional(),
});
export type HostedApp = z.infer<typeof hostedApp>;
