// The one definition of HostedApp: every field, its default, its bounds and what it means.
import { z } from 'zod';
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

const value = z.string().max(32_768).describe('Value, as it is; nothing is expanded in it.');

const variable = z.strictObject({
  name: environmentName.describe('Name of the variable.'),
  value,
});

const appVariable = z.strictObject({
  name: appVariableName.describe('Name of the variable. PORT is given by the platform.'),
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
  repo: immutable(
    repository,
    'repo is the identity of an app and cannot change; make a new HostedApp for the other repository',
  ).describe('Address of the git repository, https, without credentials. It cannot change later.'),
  revision: withRules(
    z.string().max(200),
    matches(
      '^[A-Za-z0-9_][A-Za-z0-9._/-]*$',
      'revision must be a branch, a tag or a full commit id: letters, digits, ".", "_", "-" and "/", not starting with "-", "." or "/"',
    ),
    noParentSegment('revision'),
  )
    .optional()
    .describe('Branch, tag or full commit id. Absent: the default branch of the repository.'),
  path: relativePath('path').default('.').describe('Folder of the app inside the repository, relative, without "..".'),
  interval: duration('interval', '30s', '168h')
    .default('5m')
    .describe('How often the repository is asked for a new commit, like 90s, 5m, 1h; 30s to 168h.'),
});

const buildResources = z.strictObject({
  cpu: quantity('cpu', '100m', '64').default('2').describe('Most processors that a build may use; 100m to 64.'),
  memory: quantity('memory', '128Mi', '256Gi')
    .default('4Gi')
    .describe('Most memory that a build may use; 128Mi to 256Gi.'),
  disk: quantity('disk', '256Mi', '500Gi')
    .default('10Gi')
    .describe('Most disk that source, layers and image may use during a build; 256Mi to 500Gi.'),
});

export const build = z.strictObject({
  strategy: z
    .enum(['auto', 'dockerfile', 'python', 'node', 'static'])
    .default('auto')
    .describe('How the image is made. auto: Dockerfile if there is one, else by the files found.'),
  dockerfile: relativePath('dockerfile').default('Dockerfile').describe('Path of the Dockerfile below source.path.'),
  args: listBy(z.array(variable).max(64), 'name')
    .default([])
    .describe('Build arguments. They end in the image history, so never put a secret here.'),
  env: listBy(z.array(variable).max(64), 'name')
    .default([])
    .describe(
      'Variables set during a build that is planned by Moorage. A Dockerfile does not see them: use args and ARG there.',
    ),
  resources: buildResources.prefault({}).describe('Limits of the build pod.'),
  timeout: duration('timeout', '1m', '2h')
    .default('20m')
    .describe('A build that takes longer is stopped and the app rejected; 1m to 2h.'),
});

const runResources = z.strictObject({
  cpu: quantity('cpu', '10m', '64').default('1').describe('Most processors for one replica; 10m to 64.'),
  memory: quantity('memory', '16Mi', '256Gi')
    .default('512Mi')
    .describe('Most memory for one replica, 16Mi to 256Gi; above it the replica is killed and started again.'),
  disk: quantity('disk', '16Mi', '100Gi')
    .default('1Gi')
    .describe('Most temporary disk for one replica; 16Mi to 100Gi.'),
});

const secretReference = z.strictObject({
  name: appVariableName.describe('Name of the variable that the app sees.'),
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
  ).describe('Key within that Secret.'),
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
    message: 'path must not be in /proc, /sys, /dev or /etc, which the platform needs; use a folder like /data',
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
  path: mountPath.describe('Where it is mounted: absolute, and not /proc, /sys, /dev or /etc.'),
  size: quantity('size', '1Mi', '1Ti')
    .default('1Gi')
    .describe('Size; it can grow later where the storage class allows it, never shrink.'),
});

const runFields = z.strictObject({
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe(
      'TCP port on which the app listens for HTTP, 1 to 65535, also given to it as $PORT. Absent: what the plan or the image says, else 8080.',
    ),
  command: z
    .array(z.string().min(1).max(4096))
    .max(64)
    .default([])
    .describe('Command and arguments instead of those of the image, like [python, server.py]. Not run by a shell.'),
  env: listBy(z.array(appVariable).max(128), 'name')
    .default([])
    .describe(
      'Variables of the running app, each with name and value. They can be read by whoever can read the HostedApp: keep keys and passwords in secrets.',
    ),
  secrets: listBy(z.array(secretReference).max(64), 'name')
    .default([])
    .describe('Variables taken from Secrets: the variable name of the app has the value at key of secret.'),
  resources: runResources.prefault({}).describe('Limits of one replica.'),
  replicas: z
    .int()
    .min(0)
    .max(20)
    .default(1)
    .describe('How many replicas run, 0 to 20. With 0 nothing answers at the URL.'),
  healthPath: withRules(
    z.string().max(200),
    matches(String.raw`^/[\x21-\x7e]*$`, 'healthPath must start with / and have no space, like /healthz'),
  )
    .optional()
    .describe('Path that answers 200 to 399 when the app can serve. Absent: the port accepting connections is enough.'),
  volumes: listBy(z.array(volume).max(8), 'name')
    .default([])
    .describe('Disks that outlive a replica and a new commit. With any, the app has at most one replica.'),
  startupTime: duration('startupTime', '10s', '30m')
    .default('2m')
    .describe('How long the app may take until it serves; 10s to 30m.'),
});

export const run = withRules(
  runFields,
  {
    cel: `!has(self.volumes) || self.volumes.size() == 0 || !has(self.replicas) || self.replicas <= 1`,
    holds: (fields) => fields.volumes.length === 0 || fields.replicas <= 1,
    message:
      'an app with volumes has at most one replica, since a volume is mounted by one; set replicas to 1 or remove volumes',
  },
  {
    cel: `!has(self.env) || !has(self.secrets) || !self.env.exists(one, self.secrets.exists(other, one.name == other.name))`,
    holds: (fields) => !fields.env.some((one) => fields.secrets.some((other) => one.name === other.name)),
    message: 'a variable stands in both env and secrets; keep it in one of them',
  },
  {
    cel: `!has(self.volumes) || self.volumes.all(one, self.volumes.exists_one(other, one.path == other.path))`,
    holds: (fields) => new Set(fields.volumes.map(({ path }) => path)).size === fields.volumes.length,
    message: 'two volumes have the same path; give each its own',
  },
);

export const listing = z.strictObject({
  title: z.string().min(1).max(80).optional().describe('Name shown to people. Absent: the name of the HostedApp.'),
  description: z.string().max(500).optional().describe('One line on what the app does.'),
  category: z
    .enum(['chat', 'document', 'research', 'writing', 'slides', 'image', 'audio', 'code', 'other'])
    .default('other')
    .describe('Where the catalog lists it.'),
  upstream: withRules(
    z.string().max(512),
    matches(String.raw`^https?://[\x21-\x7e]+$`, 'upstream must be a URL that starts with https:// or http://'),
  )
    .optional()
    .describe('Page of the original project, where the repository is a fork.'),
});

export const author = z.strictObject({
  contact: z.string().max(200).optional().describe('Where launch and revenue news go: an e-mail address or URL.'),
  share: withRules(
    z.string().max(6),
    matches(
      '^(0([.][0-9]{1,4})?|1([.]0{1,4})?)$',
      'share must be a decimal from 0 to 1 with at most 4 places, in quotes, like "0.7"',
    ),
  )
    .default('0.7')
    .describe('Share of the revenue that the author accrues, a decimal from 0 to 1.'),
});

export const models = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'true: the app can ask models: it gets OPENAI_BASE_URL and OPENAI_API_KEY, and its calls are booked to it.',
    ),
  dailyBudgetUsd: withRules(
    z.string().max(10),
    matches(
      '^(0|[1-9][0-9]{0,4})([.][0-9]{1,4})?$',
      'dailyBudgetUsd must be a decimal of USD with at most 4 places, in quotes, like "2.50"',
    ),
  )
    .default('1')
    .describe(
      'What its calls of models may cost in a day (UTC), USD. A call that could cost more than is left is refused.',
    ),
});

/** A path at the app itself; never an address elsewhere. */
function pathAtApp(field: string): z.ZodString {
  return withRules(
    z.string().max(200),
    matches(
      String.raw`^/[\x21-\x7e]*$`,
      `${field} must start with / and have no space, like /${field === 'mcp' ? 'mcp' : 'openapi.json'}`,
    ),
  );
}

export const agents = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'true: what the app can do is offered to agents as tools at /mcp, as <name>.<operation>. Without it the app can be called all the same.',
    ),
  openapi: pathAtApp('openapi')
    .default('/openapi.json')
    .describe('Path at the app of its OpenAPI document (3.1, 3.0 or 2.0; JSON or YAML).'),
  mcp: pathAtApp('mcp')
    .default('/mcp')
    .describe(
      'Path at the app of its MCP endpoint (streamable HTTP). Where one answers there, its tools are taken, and not the OpenAPI document.',
    ),
});

export const spec = z.strictObject({
  source: source.describe('Where the code comes from.'),
  build: build.prefault({}).describe('How the code becomes an image. A change here builds the same commit again.'),
  run: run
    .prefault({})
    .describe(
      'How the image is run. The app must listen for HTTP on all addresses (0.0.0.0) at $PORT; it runs without a Kubernetes token, with the limits of resources.',
    ),
  models: models.prefault({}).describe('Whether the app can ask models, and for how much.'),
  agents: agents.prefault({}).describe('Whether agents find what the app can do as tools.'),
  listing: listing.prefault({}).describe('How it is shown.'),
  author: author.prefault({}).describe('Whose it is.'),
  suspend: z.boolean().default(false).describe('true: no replica runs and no build starts; data and address are kept.'),
});

/** One thing found wrong (or worth saying) in a repository. `fix` tells the author what to change. */
export const finding = z.object({
  rule: z.string().max(60).describe('Name of the rule, like secrets/aws-access-token.'),
  severity: z.enum(['error', 'warning']).describe('error rejects the app; warning does not.'),
  file: z.string().max(300).optional().describe('Path in the repository.'),
  line: z.int().optional().describe('Line in that file, from 1.'),
  message: z.string().max(2_000).describe('What was found.'),
  fix: z.string().max(600).describe('What to change.'),
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
  result: z
    .enum(['Succeeded', 'Rejected', 'Faulted', 'Superseded'])
    .describe('How it ended. Faulted: a fault of the platform, tried again.'),
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
      'Rejected',
      'Suspended',
    ])
    .optional()
    .describe('Where the newest revision stands, in a word.'),
  since: timestamp.optional().describe('Since when it has been in this phase.'),
  url: z.string().optional().describe('Where the app answers.'),
  warning: z.string().max(300).optional().describe('What is amiss with an app that answers, like errors on /.'),
  shortCommit: z.string().max(12).optional().describe('First characters of source.commit, for the column COMMIT.'),
  source: z
    .object({
      commit: z.string().describe('Newest commit of the revision.'),
      reference: z.string().optional().describe('Reference it was resolved from.'),
      polledAt: timestamp.optional().describe('When the repository was last asked.'),
      polledFor: z.string().optional().describe('Hash of the source settings that the commit was resolved from.'),
    })
    .optional()
    .describe('What the repository says.'),
  pipeline: z
    .object({
      job: z.string().describe('Name of the pipeline Job of the newest commit.'),
      pod: z.string().optional().describe('Its newest pod; its containers clone, review and build hold the log.'),
      number: z.int().optional(),
      reason: z.string().optional().describe('Why it was started: what changed.'),
      stage: z.enum(stages).optional().describe('Stage it is in.'),
      stageSince: timestamp.optional(),
      position: z.int().optional().describe('Place in the queue of builds, from 1, while it waits.'),
    })
    .optional()
    .describe('The newest pipeline.'),
  plan: plan.optional().describe('How the image in service was made, and why so.'),
  findings: z.array(finding).max(50).optional().describe('What the review found in the newest commit.'),
  rejection: z
    .object({
      rule: z.string(),
      file: z.string().optional(),
      line: z.int().optional(),
      message: z.string(),
      fix: z.string(),
      log: z.string().max(8_000).optional().describe('Last lines of the log, where there is one.'),
    })
    .optional()
    .describe('Why the newest commit is not served; absent while all is well.'),
  built: z
    .object({
      image: z.string().describe('Image by digest.'),
      commit: z.string(),
      inputsHash: z.string().describe('Hash of all that went into it.'),
      port: z.int().optional(),
      settings: z.string().max(4_000).optional().describe('What moorage.yaml of that commit says, JSON.'),
      attempt: z.string().max(100).optional().describe('The rebuild that it was made by, where one was asked for.'),
    })
    .optional()
    .describe('Newest image that was built.'),
  served: z
    .object({
      image: z.string(),
      commit: z.string(),
      since: timestamp,
    })
    .optional()
    .describe('What answers at the URL now.'),
  settings: z
    .object({
      commit: z.string(),
      values: z.string().max(4_000).describe('What moorage.yaml of that commit says, JSON.'),
    })
    .optional()
    .describe('Settings of the newest commit that was reviewed; absent when it has no moorage.yaml.'),
  effective: z
    .array(
      z.object({
        field: z.string().describe('Field of the spec, like run.port.'),
        value: z.string().describe('What holds for it, shortened.'),
        from: z
          .enum(['HostedApp', 'moorage.yaml'])
          .describe('Who says so. What the HostedApp sets itself wins over the file.'),
      }),
    )
    .max(64)
    .optional()
    .describe('Each field that moorage.yaml of the newest reviewed commit sets, and what holds for it.'),
  attempt: z
    .string()
    .max(100)
    .optional()
    .describe('The rebuild that this status speaks of: value of the annotation moorage.dev/rebuild.'),
  history: z.array(historyEntry).max(20).optional().describe('Past pipelines, newest first.'),
  conditions: listBy(z.array(condition).max(32), 'type')
    .optional()
    .describe('Ready, Reconciling, Stalled and one a step.'),
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
