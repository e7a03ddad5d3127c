// The one definition of HostedApp: every field, its default, its bounds and what it means.
import { z } from 'zod';
import { agents, listing, models } from './app-access.ts';
import { serviceStatus, services } from './backing-services.ts';
import { historyEntry, rejection, rollout } from './release-record.ts';
import { metering } from './metering.ts';
import { idleAfter, idleDepth, idleStatus } from './idle.ts';
import { finding, review } from './review.ts';
import { immutable, listBy, matches, withRules } from './rules.ts';
import {
  appVariableName,
  duration,
  environmentName,
  noParentSegment,
  quantity,
  relativePath,
  timestamp,
} from './values.ts';

export { finding, review, type Finding, type Waiver } from './review.ts';

const value = z.string().max(32_768).describe('Value, used literally; references such as $(NAME) are not expanded.');

const variable = z.strictObject({
  name: environmentName.describe('Name of the variable.'),
  value,
});

const appVariable = z.strictObject({
  name: appVariableName.describe('Name of the variable. PORT is set by the platform.'),
  value,
});

const repository = withRules(
  z.string().max(512),
  matches(
    '^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9_~][A-Za-z0-9._~%+-]*)+/?$',
    'repo must be a URL like https://github.com/owner/name, without credentials, query or fragment',
  ),
  matches(
    '^(https://|http://([A-Za-z0-9.-]+[.])?(localhost|svc[.]cluster[.]local)[:/])',
    'repo must start with https://; plain http:// is only for hosts that end in .svc.cluster.local or .localhost',
  ),
);

export const source = z.strictObject({
  repo: immutable(repository, 'repo is immutable; create a new HostedApp for another repository').describe(
    'HTTPS address of the git repository, without credentials. Immutable.',
  ),
  revision: withRules(
    z.string().max(200),
    matches(
      '^[A-Za-z0-9_][A-Za-z0-9._/-]*$',
      'revision must be a branch, a tag or a full commit ID: letters, digits, ".", "_", "-" and "/", not starting with "-", "." or "/"',
    ),
    noParentSegment('revision'),
  )
    .optional()
    .describe('Branch, tag or full commit ID. Defaults to the default branch of the repository.'),
  path: relativePath('path')
    .default('.')
    .describe('Folder of the app, relative to the root of the repository, without "..".'),
  interval: duration('interval', '30s', '168h')
    .default('5m')
    .describe('How often the repository is polled for new commits, such as 90s, 5m or 1h; from 30s to 168h.'),
});

const buildResources = z.strictObject({
  cpu: quantity('cpu', '100m', '64').default('2').describe('CPU limit of a build, from 100m to 64.'),
  memory: quantity('memory', '128Mi', '256Gi').default('4Gi').describe('Memory limit of a build, from 128Mi to 256Gi.'),
  disk: quantity('disk', '256Mi', '500Gi')
    .default('10Gi')
    .describe('Disk limit for source, layers and image during a build, from 256Mi to 500Gi.'),
});

/** What an image can be made by: the author's Dockerfile, or a plan for a language. */
export const strategies = [
  'dockerfile',
  'python',
  'node',
  'static',
  'go',
  'java',
  'rust',
  'deno',
  'php',
  'ruby',
  'dotnet',
  'elixir',
] as const;

export const build = z.strictObject({
  strategy: z
    .enum(['auto', ...strategies])
    .default('auto')
    .describe(
      'How the image is built. auto uses the Dockerfile if there is one, and otherwise detects the language from the files.',
    ),
  dockerfile: relativePath('dockerfile')
    .default('Dockerfile')
    .describe('Path of the Dockerfile, relative to source.path.'),
  target: withRules(
    z.string().max(100),
    matches('^[A-Za-z][A-Za-z0-9_.-]*$', 'target must be the name of a stage: letters, digits, "_", "." and "-"'),
  )
    .optional()
    .describe('Stage of the Dockerfile that is built. Defaults to the last one.'),
  args: listBy(z.array(variable).max(64), 'name')
    .default([])
    .describe('Build arguments. They are recorded in the image history, so never put a secret here.'),
  env: listBy(z.array(variable).max(64), 'name')
    .default([])
    .describe(
      'Environment variables of a build that is planned by Moorage. They are not visible in a Dockerfile: use args and ARG there.',
    ),
  resources: buildResources.prefault({}).describe('Resource limits of the build pod.'),
  timeout: duration('timeout', '1m', '2h')
    .default('20m')
    .describe('Time limit of a build, from 1m to 2h. A build that exceeds it is stopped, and the commit is rejected.'),
});

const runResources = z.strictObject({
  cpu: quantity('cpu', '10m', '64').default('1').describe('CPU limit of each replica, from 10m to 64.'),
  memory: quantity('memory', '16Mi', '256Gi')
    .default('512Mi')
    .describe('Memory limit of each replica, from 16Mi to 256Gi. A replica that exceeds it is killed and restarted.'),
  disk: quantity('disk', '16Mi', '100Gi')
    .default('1Gi')
    .describe('Temporary disk limit of each replica, from 16Mi to 100Gi.'),
});

const secretReference = z.strictObject({
  name: appVariableName.describe('Name of the environment variable in the app.'),
  secret: withRules(
    z.string().max(253),
    matches(
      '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$',
      'secret must be the name of a Secret: lower-case letters, digits, "-" and "."',
    ),
  ).describe('Name of a Secret in the namespace of the app.'),
  key: withRules(
    z.string().max(253),
    matches('^[-._A-Za-z0-9]+$', 'key must be a key of that Secret: letters, digits, "-", "_" and "."'),
  ).describe('Key in that Secret.'),
});

const mountPath = withRules(
  z.string().max(200),
  matches(
    String.raw`^(/[^\x00-\x1f\x7f:\\/]+)+$`,
    'path must be absolute and name a folder below /, like /data, without ":" and without a slash at its end',
  ),
  noParentSegment('path'),
  {
    cel: `!self.matches('^/(proc|sys|dev|etc)(/.*)?$')`,
    holds: (path) => !/^\/(proc|sys|dev|etc)(\/|$)/.test(path),
    message:
      'path must not be in /proc, /sys, /dev or /etc, which are reserved for the platform; use a folder like /data',
  },
);

const volume = z.strictObject({
  name: withRules(
    z.string().max(30),
    matches(
      '^[a-z]([-a-z0-9]*[a-z0-9])?$',
      'the name of a volume has lower-case letters, digits and inner hyphens, and starts with a letter',
    ),
  ).describe('Name of the volume, a DNS label of at most 30 characters.'),
  path: mountPath.describe('Absolute path at which the volume is mounted; not in /proc, /sys, /dev or /etc.'),
  size: quantity('size', '1Mi', '1Ti')
    .default('1Gi')
    .describe('Size of the volume. It can be increased later if the storage class allows it, but never decreased.'),
});

const runFields = z.strictObject({
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe(
      'TCP port on which the app listens for HTTP, from 1 to 65535; passed to the app as $PORT. Defaults to the port of the build plan or the image, or 8080.',
    ),
  command: z
    .array(z.string().min(1).max(4096))
    .max(64)
    .default([])
    .describe(
      'Command and arguments that replace those of the image, such as [python, server.py]. Not run in a shell.',
    ),
  env: listBy(z.array(appVariable).max(128), 'name')
    .default([])
    .describe(
      'Environment variables of the running app. Anyone who can read the HostedApp can read them: keep keys and passwords in secrets. The value ${{secret}} is replaced by 64 random hexadecimal digits, which stay the same for the life of the app; ${{app.host}} and ${{app.url}} in a value are where the app answers.',
    ),
  secrets: listBy(z.array(secretReference).max(64), 'name')
    .default([])
    .describe('Environment variables whose values come from Secrets.'),
  resources: runResources.prefault({}).describe('Resource limits of each replica.'),
  replicas: z
    .int()
    .min(0)
    .max(20)
    .default(1)
    .describe('Number of replicas, from 0 to 20. With 0, nothing responds at the URL.'),
  healthPath: withRules(
    z.string().max(200),
    matches(String.raw`^/[\x21-\x7e]*$`, 'healthPath must start with / and have no space, like /healthz'),
  )
    .optional()
    .describe(
      'Path that responds with a status from 200 to 399 when the app is ready. If not set, the app is ready when its port accepts connections.',
    ),
  volumes: listBy(z.array(volume).max(8), 'name')
    .default([])
    .describe('Persistent volumes, kept across replicas and commits. An app with volumes has at most one replica.'),
  startupTime: duration('startupTime', '10s', '30m')
    .default('2m')
    .describe('How long the app may take to become ready, from 10s to 30m.'),
  idleAfter: idleAfter
    .optional()
    .describe(
      "Time without use after which the app is put to rest, such as 15m, from 10s to 168h; the next request wakes it. auto: chosen by the app's own pauses. never: it always runs. Defaults to what the installation sets, or never.",
    ),
  idle: idleDepth
    .default('sleep')
    .describe(
      'How an unused app rests. sleep: no pod, so a wake takes as long as a start. nap: the process stays and requests a minimum, so it answers at once.',
    ),
});

export const run = withRules(
  runFields,
  {
    cel: `!has(self.volumes) || self.volumes.size() == 0 || !has(self.replicas) || self.replicas <= 1`,
    holds: (fields) => fields.volumes.length === 0 || fields.replicas <= 1,
    message:
      'an app with volumes can have at most one replica, since a volume is mounted by one; set replicas to 1 or remove volumes',
  },
  {
    cel: `!has(self.env) || !has(self.secrets) || !self.env.exists(one, self.secrets.exists(other, one.name == other.name))`,
    holds: (fields) => !fields.env.some((one) => fields.secrets.some((other) => one.name === other.name)),
    message: 'a variable is set in both env and secrets; keep it in one of them',
  },
  {
    cel: `!has(self.volumes) || self.volumes.all(one, self.volumes.exists_one(other, one.path == other.path))`,
    holds: (fields) => new Set(fields.volumes.map(({ path }) => path)).size === fields.volumes.length,
    message: 'two volumes have the same path; give each its own',
  },
);

export const author = z.strictObject({
  contact: z
    .string()
    .max(200)
    .optional()
    .describe(
      'Contact for launch and revenue notifications: an email address or URL. One in the HostedApp overrides one in moorage.yaml; either overrides that of the submission.',
    ),
  share: withRules(
    z.string().max(6),
    matches(
      '^(0([.][0-9]{1,4})?|1([.]0{1,4})?)$',
      'share must be a decimal from 0 to 1 with at most 4 decimal places, in quotes, like "0.7"',
    ),
  )
    .default('0.7')
    .describe('Share of the revenue that accrues to the author, a decimal from 0 to 1.'),
});

export const submission = z.strictObject({
  contact: z.string().max(200).optional().describe('Contact that was given. Used until the author gives one.'),
  note: z
    .string()
    .max(500)
    .optional()
    .describe('One line that was given to describe the app. Used where listing.description is not set.'),
});

export { agents, listing, models };

export const spec = z.strictObject({
  source: source.describe('Where the code of the app comes from.'),
  build: build.prefault({}).describe('How the image is built. A change rebuilds the current commit.'),
  review: review
    .prefault({})
    .describe('What the review of this app lets pass. A change reviews and rebuilds the current commit.'),
  run: run
    .prefault({})
    .describe(
      'How the app is run. It must listen for HTTP on all addresses (0.0.0.0) at $PORT. It runs without a Kubernetes token, within the limits of resources.',
    ),
  services: services
    .default([])
    .describe(
      'Databases and stores of the app. Each gets a volume, a generated password, and variables in the app such as DATABASE_URL; nothing but the app reaches it. A value in run.env may contain ${{services.<name>.url}}, and likewise host, port, user, password and database.',
    ),
  models: models.prefault({}).describe('Whether the app can call models, and its budget for that.'),
  agents: agents.prefault({}).describe('How the app is offered to agents.'),
  metering: metering.prefault({}).describe('Which requests of visitors are counted as uses.'),
  listing: listing.prefault({}).describe('How the app is shown in the catalog.'),
  author: author.prefault({}).describe('The author of the app.'),
  submission: submission
    .prefault({})
    .describe(
      'What was said with the first submission of the repository, by anybody. It is unverified: the HostedApp and the author override it.',
    ),
  deletionPolicy: z
    .enum(['Delete', 'Retain'])
    .default('Delete')
    .describe(
      'What becomes of volumes and generated passwords when the HostedApp is deleted. Delete: they are deleted after a grace period that the installation sets (7 days by default). Retain: they are kept until someone deletes them. Until then, a HostedApp with the same name, namespace and repository gets them back.',
    ),
  suspend: z
    .boolean()
    .default(false)
    .describe('If true, no replicas run and no builds start. The data and the address of the app are kept.'),
});

export const plan = z.object({
  strategy: z.enum(strategies).describe('How the image is built.'),
  reason: z.string().max(400).describe('Why this strategy was chosen.'),
  framework: z.string().max(60).optional().describe('Framework that was detected.'),
  port: z.int().optional().describe('Port on which the plan makes the app listen.'),
});

export const stages = ['Queued', 'Clone', 'Review', 'Build'] as const;

export const condition = z.object({
  type: z.string(),
  status: z.enum(['True', 'False', 'Unknown']),
  observedGeneration: z.int().optional(),
  lastTransitionTime: timestamp,
  reason: z.string(),
  message: z.string(),
});

export const status = z.object({
  observedGeneration: z.int().optional().describe('Generation of the spec that this status reflects.'),
  dataKey: z
    .string()
    .max(100)
    .optional()
    .describe('What the names of its volumes and generated Secrets are made from, so that they are found again.'),
  phase: z
    .enum([
      'Pending',
      'Queued',
      'Cloning',
      'Reviewing',
      'Building',
      'Deploying',
      'Routing',
      'Live',
      'Failing',
      'Rejected',
      'Suspended',
    ])
    .optional()
    .describe('Phase of the newest commit. Failing: it is released, and its URL responds with errors or not at all.'),
  since: timestamp.optional().describe('When it entered this phase.'),
  checkedAt: timestamp.optional().describe('When the operator last confirmed this status: at least every 10 minutes.'),
  url: z.string().optional().describe('URL of the app.'),
  warning: z.string().max(300).optional().describe('Problem with an app that is live, such as errors at /.'),
  page: z
    .object({
      image: z.string(),
      commit: z.string(),
      seenAt: timestamp.optional().describe('When it was looked at. Not set while that is in progress.'),
      status: z.int().optional().describe('Status of the response at /.'),
      assets: z.int().optional().describe('Scripts, styles and images of its own that the page loads.'),
      faults: z.array(z.string().max(300)).max(5).optional().describe('What does not work.'),
    })
    .optional()
    .describe('How the page of the release that serves looks, seen through the gateway once it is live.'),
  shortCommit: z.string().max(12).optional().describe('Abbreviated source.commit, for the column COMMIT.'),
  source: z
    .object({
      commit: z.string().describe('Newest commit of the revision.'),
      reference: z.string().optional().describe('Git reference that was resolved to the commit.'),
      polledAt: timestamp.optional().describe('When the repository was last polled.'),
      polledFor: z.string().optional().describe('Hash of the source fields that the commit was resolved from.'),
    })
    .optional()
    .describe('The source that was resolved from the repository.'),
  pipeline: z
    .object({
      job: z.string().describe('Name of the pipeline Job of the newest commit.'),
      pod: z
        .string()
        .optional()
        .describe('Newest pod of the Job. Its containers clone, review and build have the log.'),
      number: z.int().optional(),
      reason: z.string().optional().describe('Why the pipeline was started: what changed.'),
      stage: z.enum(stages).optional().describe('Current stage of the pipeline.'),
      stageSince: timestamp.optional(),
      position: z
        .int()
        .optional()
        .describe('Position in the build queue, starting at 1, while the pipeline is queued.'),
    })
    .optional()
    .describe('The newest pipeline.'),
  plan: plan.optional().describe('How the image is built, and why.'),
  findings: z.array(finding).max(50).optional().describe('Findings of the review of the newest commit.'),
  rejection: rejection.optional().describe('Why the newest commit was rejected. Not set if it was not.'),
  built: z
    .object({
      image: z.string().describe('Image by digest.'),
      commit: z.string(),
      inputsHash: z.string().describe('Hash of the build inputs.'),
      port: z.int().optional(),
      settings: z.string().max(4_000).optional().describe('Contents of moorage.yaml of that commit, as JSON.'),
      attempt: z.string().max(100).optional().describe('The rebuild that produced it, if one was requested.'),
    })
    .optional()
    .describe('Newest image that was built.'),
  readyTemplate: z
    .string()
    .max(100)
    .optional()
    .describe('Hash of the pod template that was last ready: its pods are restarted for as long as they are wanted.'),
  served: z
    .object({
      image: z.string(),
      commit: z.string(),
      since: timestamp,
    })
    .optional()
    .describe('The release that currently serves the URL.'),
  settings: z
    .object({
      commit: z.string(),
      values: z.string().max(4_000).describe('Contents of moorage.yaml of that commit, as JSON.'),
    })
    .optional()
    .describe('Settings in moorage.yaml of the newest reviewed commit. Not set if it has no such file.'),
  effective: z
    .array(
      z.object({
        field: z.string().describe('Field of the spec, such as run.port.'),
        value: z.string().describe('Effective value, shortened. Of variables that the HostedApp sets, only the names.'),
        from: z
          .string()
          .describe(
            'Where the value comes from: HostedApp, moorage.yaml, or a file for another platform such as compose.yaml. The former override the latter.',
          ),
      }),
    )
    .max(64)
    .optional()
    .describe('Effective value of each field that moorage.yaml of the newest reviewed commit sets.'),
  ownership: z
    .object({
      since: timestamp.describe('When a commit first had a contact or an ownership token of the author.'),
      contact: z.string().max(200).optional().describe('Contact in the ownership token of the newest reviewed commit.'),
    })
    .optional()
    .describe(
      'Set once the author has given a contact in the repository. From then on, that of the submission is not used.',
    ),
  authorKeys: z
    .array(z.string().max(64))
    .max(5)
    .optional()
    .describe(
      'SHA-256 of each key with which the author reads his statements, as the newest reviewed commit has them.',
    ),
  attempt: z
    .string()
    .max(100)
    .optional()
    .describe('The rebuild that this status reflects: the value of the annotation moorage.dev/rebuild.'),
  idle: idleStatus
    .optional()
    .describe(
      'How an app stands that rests when it is not used. Set for as long as it is reached through the activator.',
    ),
  ...rollout,
  services: z.array(serviceStatus).max(16).optional().describe('How the backing services of the app stand.'),
  history: z.array(historyEntry).max(20).optional().describe('Past pipelines, newest first.'),
  conditions: listBy(z.array(condition).max(32), 'type')
    .optional()
    .describe('Conditions: Ready, Reconciling, Stalled, and one for each step.'),
});

export type HostedAppSpec = z.infer<typeof spec>;
/** A spec as it is stored: fields that an author can set are there only if someone set them. */
export type StoredSpec = z.input<typeof spec>;
export type HostedAppStatus = z.infer<typeof status>;
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
export type HostedApp = z.infer<typeof hostedApp> & {
  /** Fields that the stored spec sets to their default, which the author's file cannot change. */
  readonly pinned?: readonly string[] | undefined;
};
/** A HostedApp as the API server returns it. */
export type StoredHostedApp = Omit<HostedApp, 'spec' | 'pinned'> & { spec: StoredSpec };
