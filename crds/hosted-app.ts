// Defines HostedApp: every field of the spec, its default, its bounds and its meaning. The status is in status.ts.
import { z } from 'zod';
import { services } from './backing-services.ts';
import { components, hasProcessFields, onlyInComponents } from './components.ts';
import { control } from './control.ts';
import { strategies } from './languages.ts';
import { previewOf, previewRule, previews } from './previews.ts';
import { status } from './status.ts';
import { findSharedName, tasks } from './tasks.ts';
import {
  appVariable,
  duration,
  healthPath,
  idleAfter,
  idleDepth,
  makeImmutable,
  listBy,
  mcp,
  createPatternRule,
  createNoParentSegmentRule,
  portNumber,
  quantity,
  relativePath,
  addRules,
  secretReference,
  stageName,
  variable,
  volume,
} from './values.ts';

export {
  condition,
  finding,
  historyEntry,
  plan,
  stages,
  status,
  type Condition,
  type Finding,
  type HistoryEntry,
  type HostedAppStatus,
  type Plan,
} from './status.ts';
export { strategies } from './languages.ts';

const repository = addRules(
  z.string().max(512),
  createPatternRule(
    '^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/@?[A-Za-z0-9_~][A-Za-z0-9._~%+-]*)+/?$',
    'repo must be a URL like https://github.com/owner/name, without credentials, query or fragment',
  ),
  createPatternRule(
    '^(https://|http://([A-Za-z0-9.-]+[.])?(localhost|svc[.]cluster[.]local)[:/])',
    'repo must start with https://; plain http:// is only for hosts that end in .svc.cluster.local or .localhost',
  ),
);

export const source = z.strictObject({
  repo: makeImmutable(repository, 'repo is immutable; create a new HostedApp for another repository').describe(
    'HTTPS address of the git repository, without credentials, or of the page of a package: https://www.npmjs.com/package/NAME or https://pypi.org/project/NAME. Immutable.',
  ),
  private: z
    .boolean()
    .optional()
    .describe(
      'Whether the repository is private: it is read over SSH with a deploy key of the installation, and nothing of its source is public.',
    ),
  revision: addRules(
    z.string().max(200),
    createPatternRule(
      '^[A-Za-z0-9_][A-Za-z0-9._/-]*$',
      'revision must be a branch, a tag or a full commit ID: letters, digits, ".", "_", "-" and "/", not starting with "-", "." or "/"',
    ),
    createNoParentSegmentRule('revision'),
  )
    .optional()
    .describe(
      'Branch, tag or full commit ID; for a package, a version. Defaults to the default branch of the repository, or the newest version.',
    ),
  path: relativePath('path')
    .default('.')
    .describe('Folder of the app, relative to the root of the repository, without "..".'),
  interval: duration('interval', '30s', '168h')
    .default('5m')
    .describe(
      'How often the repository or registry is polled for new commits or versions, such as 90s, 5m or 1h; from 30s to 168h.',
    ),
});

const buildResources = z.strictObject({
  cpu: quantity('cpu', '100m', '64').default('2').describe('CPU limit of a build, from 100m to 64.'),
  memory: quantity('memory', '128Mi', '256Gi').default('4Gi').describe('Memory limit of a build, from 128Mi to 256Gi.'),
  disk: quantity('disk', '256Mi', '500Gi')
    .default('10Gi')
    .describe('Disk limit for source, layers and image during a build, from 256Mi to 500Gi.'),
});

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
  target: stageName.optional().describe('Dockerfile stage to build. Defaults to the last one.'),
  args: listBy(z.array(variable).max(64), 'name')
    .default([])
    .describe('Build arguments. They are recorded in the image history, so never put a secret here.'),
  env: listBy(z.array(variable).max(64), 'name')
    .default([])
    .describe(
      'Environment variables of a build that Moorage plans. A Dockerfile of the repository does not see them: use args and ARG there.',
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

const runFields = z.strictObject({
  port: portNumber
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
      'Environment variables of the running app. Anyone who can read the HostedApp can read them: keep keys and passwords in secrets. The value ${{secret}} is replaced by 64 random hexadecimal digits, which stay the same for the life of the app; ${{app.host}} and ${{app.url}} in a value are replaced by the host name and the URL of the app, and ${{app.<subdomain>.host}} and ${{app.<subdomain>.url}} by those of a component with a subdomain.',
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
  healthPath: healthPath
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
      "Idle time after which the app rests, such as 15m, from 10s to 168h; the next request wakes it. auto: chosen from the app's past idle times. never: it always runs. Defaults to the installation's setting, or never.",
    ),
  idle: idleDepth
    .default('sleep')
    .describe(
      'How an unused app rests. sleep: no pod, so a wake takes as long as a start. nap: the process keeps running with minimal resource requests, so it responds immediately.',
    ),
});

export const run = addRules(
  runFields,
  {
    cel: `!has(self.volumes) || self.volumes.size() == 0 || !has(self.replicas) || self.replicas <= 1`,
    isValid: (fields) => fields.volumes.length === 0 || fields.replicas <= 1,
    message:
      'an app with volumes can have at most one replica, since a volume is mounted by one; set replicas to 1 or remove volumes',
  },
  {
    cel: `!has(self.env) || !has(self.secrets) || !self.env.exists(one, self.secrets.exists(other, one.name == other.name))`,
    isValid: (fields) => !fields.env.some((one) => fields.secrets.some((other) => one.name === other.name)),
    message: 'a variable is set in both env and secrets; keep it in one of them',
  },
  {
    cel: `!has(self.volumes) || self.volumes.all(one, self.volumes.exists_one(other, one.path == other.path))`,
    isValid: (fields) => new Set(fields.volumes.map(({ path }) => path)).size === fields.volumes.length,
    message: 'two volumes have the same path; give each its own',
  },
);

const waiver = z.strictObject({
  rule: addRules(
    z.string().max(60),
    createPatternRule(
      '^((secrets|license|lfs)/[a-z0-9-]+|git/submodule)$',
      'rule must be the ID of a finding that can be waived: secrets/…, license/…, lfs/… or git/submodule',
    ),
  ).describe('ID of the rule, such as license/approval.'),
  file: z.string().min(1).max(300).optional().describe("Path of the finding's file. If not set, any file."),
  reason: addRules(
    z.string().max(300),
    createPatternRule(String.raw`^.*\S.*$`, 'reason must say, on one line, why the finding is waived; it is public'),
  ).describe('Why the finding is waived. It is public.'),
});
export type Waiver = z.infer<typeof waiver>;

export const review = z.strictObject({
  waivers: z
    .array(waiver)
    .max(32)
    .default([])
    .describe(
      'Findings that the operator of the installation waives for this app. A waived finding is a warning that states the reason.',
    ),
});

export const models = z.strictObject({
  enabled: z
    .boolean()
    .default(false)
    .describe(
      'Whether the app can call models. If true, OPENAI_BASE_URL and OPENAI_API_KEY are set in the app, and its calls are charged to its budget. For an app that reads other variables, a value in run.env may contain ${{models.url}}, ${{models.origin}} (the same without its path) and ${{models.key}}.',
    ),
  dailyBudgetUsd: addRules(
    z.string().max(10),
    createPatternRule(
      '^(0|[1-9][0-9]{0,4})([.][0-9]{1,4})?$',
      'dailyBudgetUsd must be a decimal of USD with at most 4 decimal places, in quotes, like "2.50"',
    ),
  )
    .default('1')
    .describe(
      "Maximum cost in USD of the app's model calls per day (UTC). A call that could exceed the remaining budget is rejected.",
    ),
});

/** A path at the app itself; never an address elsewhere. */
function appPath(field: string): z.ZodString {
  return addRules(
    z.string().max(200),
    createPatternRule(
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
      "Whether agents can use the app's operations as tools at /mcp, named <name>.<operation>. The app can be called in either case.",
    ),
  openapi: appPath('openapi')
    .default('/openapi.json')
    .describe("Path of the app's OpenAPI document (3.1, 3.0 or 2.0; JSON or YAML)."),
  mcp: appPath('mcp')
    .default('/mcp')
    .describe(
      "Path of the app's MCP endpoint (streamable HTTP). If it responds, its tools are used instead of the OpenAPI document.",
    ),
});

export const listing = z.strictObject({
  title: z.string().min(1).max(80).optional().describe('Display name. Defaults to the name of the HostedApp.'),
  description: z.string().max(500).optional().describe('One line that describes what the app does.'),
  category: z
    .enum(['chat', 'document', 'research', 'writing', 'slides', 'image', 'audio', 'code', 'other'])
    .default('other')
    .describe('Category in the catalog.'),
  upstream: addRules(
    z.string().max(512),
    createPatternRule(
      String.raw`^https?://[\x21-\x7e]+$`,
      'upstream must be a URL that starts with https:// or http://',
    ),
  )
    .optional()
    .describe('URL of the original project, if the repository is a fork.'),
});

const freeRequest = addRules(
  z.strictObject({
    path: addRules(
      z.string().max(200),
      createPatternRule(
        String.raw`^/[\x21-\x7e]*$`,
        'path must start with / and have no space, like /healthz or /static/**',
      ),
    )
      .optional()
      .describe('Path without its query. `*` matches within a segment, `**` matches anything. If not set, any path.'),
    statuses: z
      .array(
        addRules(
          z.string().max(3),
          createPatternRule('^[1-5]([0-9][0-9]|xx)$', 'a status must be like "404" or "4xx"'),
        ),
      )
      .max(20)
      .optional()
      .describe('Statuses of the response, such as "404" or "4xx". If not set, any status.'),
  }),
  {
    cel: 'has(self.path) || (has(self.statuses) && self.statuses.size() > 0)',
    isValid: ({ path, statuses }) => path !== undefined || (statuses?.length ?? 0) > 0,
    message: 'set path, statuses or both',
  },
);

export const metering = z.strictObject({
  free: z.array(freeRequest).max(20).default([]).describe('Requests that match any of these are not counted as uses.'),
});
export type FreeRequests = z.output<typeof metering>['free'];

export const author = z.strictObject({
  contact: z
    .string()
    .max(200)
    .optional()
    .describe(
      'Contact for launch and revenue notifications: an email address or URL. One in the HostedApp overrides one in moorage.yaml; either overrides that of the submission.',
    ),
  share: addRules(
    z.string().max(6),
    createPatternRule(
      '^(0([.][0-9]{1,4})?|1([.]0{1,4})?)$',
      'share must be a decimal from 0 to 1 with at most 4 decimal places, in quotes, like "0.7"',
    ),
  )
    .default('0.7')
    .describe('Share of the revenue that accrues to the author, a decimal from 0 to 1.'),
});

export const submission = z.strictObject({
  contact: z
    .string()
    .max(200)
    .optional()
    .describe('Contact given with the submission. Used until the author provides one.'),
  note: z
    .string()
    .max(500)
    .optional()
    .describe('One-line description given with the submission. Used if listing.description is not set.'),
});

const specFields = z.strictObject({
  source: source.describe("Source of the app's code."),
  build: build.prefault({}).describe('How the image is built. A change rebuilds the current commit.'),
  review: review
    .prefault({})
    .describe('Exceptions for the review of this app. A change reviews and rebuilds the current commit.'),
  run: run
    .prefault({})
    .describe(
      'How the app runs. It must listen for HTTP on all addresses (0.0.0.0) at $PORT. It runs without a Kubernetes token, within its resource limits.',
    ),
  components: components
    .default([])
    .describe(
      'Processes of the app, if it has several. They run in one pod and are built, released, rolled back, woken and put to rest as one. Fields of run that describe one process (port, command, healthPath, volumes) and build.strategy, dockerfile, target and args, and mcp are then set in each component. Defaults to one web component that run and build describe.',
    ),
  tasks: tasks
    .default([])
    .describe(
      'Commands that run on a schedule, or when the author starts them, with the image, variables, limits, volumes and services of the app: the short form of a cron component.',
    ),
  services: services
    .default([])
    .describe(
      'Databases and stores of the app. Each gets a volume, a generated password, and variables in the app such as DATABASE_URL; only the app can reach it. A value in run.env may contain ${{services.<name>.url}}, and likewise host, port, user, password and database.',
    ),
  models: models.prefault({}).describe('Whether the app can call models, and its budget.'),
  agents: agents.prefault({}).describe('How agents can use the app.'),
  mcp: mcp.prefault({}).describe('How the app starts if it is an MCP server.'),
  metering: metering.prefault({}).describe('Which visitor requests count as uses.'),
  listing: listing.prefault({}).describe('How the app is shown in the catalog.'),
  author: author.prefault({}).describe('The author of the app.'),
  submission: submission
    .prefault({})
    .describe(
      'Information given with the first submission of the repository. Anyone can submit, so it is unverified: the HostedApp and the author override it.',
    ),
  previews: previews
    .prefault({})
    .describe('Which pull requests and branches of the repository get a preview, which runs next to the app.'),
  previewOf: previewOf
    .optional()
    .describe('Set if this is a preview of another app. The operator creates, changes and deletes previews.'),
  deletionPolicy: z
    .enum(['Delete', 'Retain'])
    .default('Delete')
    .describe(
      "What happens to volumes and generated passwords when the HostedApp is deleted. Delete: they are deleted after the installation's grace period (7 days by default). Retain: they are kept until someone deletes them. Until then, a HostedApp with the same name, namespace and repository gets them back.",
    ),
  suspend: z
    .boolean()
    .default(false)
    .describe('If true, no replicas run and no builds start. The app keeps its data and address.'),
  control: control
    .optional()
    .describe(
      'What the author has set through the API, without a commit. Fields that the HostedApp itself sets override it.',
    ),
});

const formatAbsence = (section: string, fields: readonly string[]): string =>
  `(!has(self.${section}) || (${fields.map((field) => `!has(self.${section}.${field})`).join(' && ')}))`;

export const spec = addRules(
  specFields,
  {
    cel: `!has(self.components) || self.components.size() == 0 || (${formatAbsence('run', ['port', 'command', 'healthPath', 'volumes'])} && ${formatAbsence('build', ['strategy', 'dockerfile', 'target', 'args'])} && ${formatAbsence('mcp', ['transport', 'command'])})`,
    isValid: ({ components: list, run: own, build: ownBuild, mcp: ownMcp }) =>
      list.length === 0 || !hasProcessFields({ run: own, build: ownBuild, mcp: ownMcp }),
    message: onlyInComponents,
  },
  previewRule,
  {
    cel: `!has(self.components) || !has(self.run) || !has(self.run.replicas) || self.run.replicas <= 1 || self.components.all(one, !has(one.volumes) || one.volumes.size() == 0)`,
    isValid: ({ components: list, run: { replicas } }) =>
      replicas <= 1 || list.every(({ volumes = [] }) => volumes.length === 0),
    message:
      'an app with volumes can have at most one replica, since a volume is mounted by one; set replicas to 1 or remove volumes',
  },
  {
    cel: `!has(self.components) || !has(self.tasks) || self.tasks.all(one, !self.components.exists(other, one.name == other.name))`,
    isValid: ({ components: list, tasks: own }) => findSharedName(own, list) === undefined,
    message: 'a task and a component have the same name; rename one of them',
  },
);

export type HostedAppSpec = z.infer<typeof spec>;
/** A spec as it is stored: fields that an author can set are there only if someone set them. */
export type StoredSpec = z.input<typeof spec>;

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
