// Defines the status of a HostedApp: every field that the operator writes, from conditions to releases and rest.
import { z } from 'zod';
import { domainStatuses } from './domains.ts';
import { strategies } from './languages.ts';
import { taskStatus } from './tasks.ts';
import { listBy, mcpTransports, timestamp } from './values.ts';

/** Maximum number of paths in a plan. */
export const namedPaths = 8;

/** Maximum number of variables that a plan lists. A plan is reported in a message of 4096 bytes. */
export const maximumMcpVariables = 12;

/** A variable that the files of a repository ask for. */
export const mcpVariable = z.object({
  name: z.string().max(80),
  description: z.string().max(100).optional(),
  secret: z.boolean().describe('Its value is a secret, such as a key.'),
  required: z.boolean().describe('The server does not work without it.'),
});

const mcpPlan = z.object({
  file: z.string().max(200).describe('The file that shows it.'),
  transport: z.enum(mcpTransports).describe('What its start command speaks.'),
  command: z.string().max(300).describe('Start command, as shell text.'),
  path: z.string().max(100).describe('Path at which the server itself answers; stdio servers answer at /mcp.'),
  bridged: z
    .boolean()
    .describe('A bridge in the container serves streamable HTTP at /mcp: it starts a process for each session.'),
  environment: z
    .array(mcpVariable)
    .max(maximumMcpVariables)
    .optional()
    .describe('Variables that the files of the repository ask for.'),
});

export const plan = z.object({
  strategy: z.enum(strategies).describe('How the image is built.'),
  reason: z.string().max(400).describe('Why this strategy was chosen.'),
  framework: z.string().max(60).optional().describe('Detected framework.'),
  port: z.int().optional().describe('Port on which the planned app listens.'),
  paths: z
    .array(z.string().max(200))
    .max(namedPaths)
    .optional()
    .describe('Paths that the README or the code names. They count as its page if there is none at /.'),
  certainty: z
    .enum(['certain', 'likely', 'guessed'])
    .optional()
    .describe(
      'How sure the plan is: `certain` if a file states how the app starts, `likely` if its code shows it, `guessed` if nothing contradicts it.',
    ),
  otherwise: z
    .string()
    .max(300)
    .optional()
    .describe('Another reading of the same files that was not chosen, and how to choose it.'),
  mcp: mcpPlan.optional().describe('How the MCP server starts and is reached. Only for repositories that are one.'),
});

/** Variables that make a runtime, a loader or a shell run other code, or that the platform sets. */
const codeVariable =
  /^(?:LD_|DYLD_|GCONV_|NODE_|NPM_|BUN_|DENO_|PYTHON|PIP_|UV_|RUBY|GEM_|BUNDLE_|PERL|JAVA_|JDK_|_JAVA|DOTNET_|CORECLR_|COMPLUS_|PHP|GIT_|MOORAGE_|MCP_BRIDGE_)|^(?:PATH|HOME|SHELL|IFS|ENV|BASH_ENV|CLASSPATH|GOFLAGS|GODEBUG|EDITOR|VISUAL|PAGER|BROWSER|SSH_ASKPASS|PORT|TMPDIR)$/i;

/**
 * Lists the variables that a caller may set for its own session with an MCP server: those that the files of the repository
 * ask for, if the server has a process for each session. One that would be code of the caller is never among them.
 */
export function listCallerVariables(server: Plan['mcp']): z.infer<typeof mcpVariable>[] {
  if (server?.transport !== 'stdio' || !server.bridged) return [];
  return (server.environment ?? []).filter(({ name }) => !codeVariable.test(name));
}

export const stages = ['Queued', 'Clone', 'Review', 'Build'] as const;

export const condition = z.object({
  type: z.string(),
  status: z.enum(['True', 'False', 'Unknown']),
  observedGeneration: z.int().optional(),
  lastTransitionTime: timestamp,
  reason: z.string(),
  message: z.string(),
});

/** Maximum number of variables that a finding or rejection names. */
export const maximumVariables = 20;

const variableNames = z.array(z.string().max(128)).max(maximumVariables);
const missingVariables = variableNames.optional().describe('Variables that the app reads and that have no value.');

/** A problem found in a repository, and how the author can fix it. */
export const finding = z.object({
  rule: z.string().max(60).describe('ID of the rule, such as secrets/aws-access-token.'),
  severity: z.enum(['error', 'warning']).describe('An error rejects the commit; a warning does not.'),
  file: z.string().max(300).optional().describe('Path of the file in the repository.'),
  line: z.int().optional().describe('Line number in the file, starting at 1.'),
  message: z.string().max(2_000).describe('What was found.'),
  fix: z.string().max(600).describe('What to change.'),
  variables: missingVariables,
});

export type Finding = z.infer<typeof finding>;

/** Why a commit is not served. */
export const rejection = z.object({
  rule: z.string(),
  file: z.string().optional(),
  line: z.int().optional(),
  message: z.string(),
  fix: z.string(),
  log: z.string().max(8_000).optional().describe('Last lines of the log, if there is one.'),
  variables: missingVariables,
});

/** One past pipeline. */
export const historyEntry = z.object({
  number: z.int().describe('Number of the pipeline; increases with each pipeline of the app.'),
  job: z.string().describe('Name of the pipeline Job.'),
  commit: z.string().describe('Commit that was built.'),
  reason: z.string().describe('Why it was built: what changed since the previous pipeline.'),
  result: z
    .enum(['Succeeded', 'Rejected', 'Faulted', 'Superseded'])
    .describe('Result of the pipeline. Faulted means that the platform failed and the pipeline is retried.'),
  message: z.string().max(1_000).optional().describe('Short explanation of the result.'),
  release: z
    .enum(['Pending', 'Released', 'Failed', 'Skipped'])
    .optional()
    .describe(
      "Result of the image's release. Failed: it does not start, or crashes repeatedly. Skipped: a newer image was built before it was ready.",
    ),
  releaseMessage: z.string().max(1_000).optional().describe('Why the release failed.'),
  doubtful: z
    .boolean()
    .optional()
    .describe('The app could have caused the fault deliberately; a second one for this commit counts as a rejection.'),
  image: z.string().optional().describe('Image by digest, if one was built.'),
  startedAt: timestamp.optional(),
  finishedAt: timestamp.optional(),
});

/** An image that the installation makes when an app first needs it. */
const neededImage = z.object({
  image: z.string().max(300).describe('Name with tag, as in a FROM instruction.'),
  since: timestamp.describe('Since when the app needs it. A state that was reported earlier says nothing about it.'),
});
export type NeededImage = z.infer<typeof neededImage>;

/** Starts the message of an app that waits for such an image. */
export const imageWait = 'Waiting for the image ';

/** Releases that the status keeps, among which a rollback chooses. Their images stay in the registry. */
export const keptReleases = 4;

/** The image of a component. */
const componentImage = z.object({
  name: z.string().max(30).describe('Name of the component.'),
  image: z.string().describe('Image by digest.'),
  port: z.int().optional().describe('Port on which it listens, if it does.'),
  sourceHash: z
    .string()
    .max(100)
    .optional()
    .describe('Hash of what the image was built from. A commit that does not change it takes the image over.'),
});
export type ComponentImage = z.infer<typeof componentImage>;

export const componentImages = z
  .array(componentImage)
  .max(8)
  .optional()
  .describe(
    'Images of the components, if the app lists any; then image and port are those of the one that answers at /.',
  );

/** An image and the settings that it runs with. */
export const release = z.object({
  image: z.string().describe('Image by digest.'),
  commit: z.string(),
  port: z.int(),
  components: componentImages,
  settings: z.string().max(16_000).optional().describe('Contents of moorage.yaml of that commit, as JSON.'),
  attempt: z.string().max(100).optional().describe('The rebuild that produced it, if one was requested.'),
});

const releaseRecord = z.object({
  ...release.shape,
  readyAt: timestamp.describe('When it was first ready.'),
  servingSince: timestamp.optional().describe('Since when it has been serving. Not set while it does not serve.'),
  servedSeconds: z.int().describe('Seconds that it served after its last crash and before servingSince.'),
  bestSeconds: z.int().describe('Longest time that it served before a crash, in seconds.'),
  crashedAt: timestamp.optional().describe('When it last crashed.'),
  goodAt: timestamp.optional().describe('When it had served long enough without a crash to count as good.'),
  answers: z
    .boolean()
    .optional()
    .describe('Whether its URL showed a page or an API description. Not set if it was never probed.'),
});
export type ReleaseRecord = z.infer<typeof releaseRecord>;

/** What the URL of a release answered, until it counts as working. */
const answer = z.object({
  template: z.string().max(100).describe('Hash of the pod template of the release.'),
  commit: z.string(),
  answeredAt: timestamp.optional().describe('When its URL first showed a page or an API description.'),
  confirmedAt: timestamp
    .optional()
    .describe('When a probe at least 30 s later found the same. Later errors are reported but do not reject it.'),
  failingSince: timestamp.optional().describe('Since when its URL has failed. Not set while it works.'),
  instead: z.string().max(200).optional().describe('Path that responds, if there is no page at /.'),
  rejection: rejection.optional().describe('Why the release does not count as live.'),
});
export type Answer = z.infer<typeof answer>;

/** What a container writes outside of volumes. */
const containerWrites = z.object({
  startedAt: timestamp.describe('When the container was created whose files these are.'),
  baseBytes: z.int().optional().describe('What it had written a minute after its start, such as caches.'),
  bytes: z.int().describe('What it has written, in bytes. Small changes are not recorded.'),
  lost: z
    .object({
      bytes: z.int().describe('What was written after the first minute and is gone.'),
      at: timestamp.describe('When the container was replaced.'),
    })
    .optional()
    .describe('Set if the container before this one had written more than a little.'),
});

/** What a release writes outside of its volumes. */
const written = containerWrites.extend({
  components: z
    .array(containerWrites.extend({ name: z.string().max(30).describe('Name of the component.') }))
    .max(8)
    .optional()
    .describe('The same for each component that does not answer at /.'),
});
export type Written = z.infer<typeof written>;

/** Fields of the status about releases and how one replaces another. */
export const rollout = {
  answer: answer.optional().describe('What the URL of the newest release answered.'),
  written: written
    .optional()
    .describe('What the app has written outside of its volumes. It is lost when the app is restarted or replaced.'),
  releases: z
    .array(releaseRecord)
    .max(keptReleases)
    .optional()
    .describe('Releases that have served, newest first. A rollback chooses among them.'),
  crashLoop: z
    .object({
      template: z.string().max(100).describe('Hash of the pod template that crashes.'),
      rejection,
    })
    .optional()
    .describe('Set while the running release crashes repeatedly, until it has served long enough without a crash.'),
  tried: z
    .string()
    .max(100)
    .optional()
    .describe(
      'Hash of the pod template that last started successfully while the release that it was to replace kept serving.',
    ),
  activated: z
    .boolean()
    .optional()
    .describe('true: reached through the activator, which holds requests while a new release replaces the old one.'),
};

/** Maximum number of wakes and gaps in the status. */
export const keptWakes = 30;
export const keptGaps = 30;

export const idleStates = ['Awake', 'Napping', 'Asleep', 'Waking'] as const;
export type IdleState = (typeof idleStates)[number];

export const idleStatus = z.object({
  state: z
    .enum(idleStates)
    .describe(
      'Awake; Napping: the process keeps running with minimal resource requests; Asleep: no pod; Waking: starting again.',
    ),
  since: timestamp.describe('When it entered this state.'),
  number: z
    .int()
    .min(0)
    .describe(
      'Number of times it has rested. To wake it manually, set the annotation moorage.dev/wake of the HostedApp to this number.',
    ),
  afterSeconds: z.int().describe('Idle seconds after which it rests; with auto, the current choice.'),
  lastUsedAt: timestamp
    .optional()
    .describe('When it was last used, as far as known. Updated occasionally, not at each use.'),
  gaps: z
    .array(z.int())
    .max(keptGaps)
    .optional()
    .describe('Most recent idle times in seconds, oldest first. auto is chosen from them.'),
  wakes: z
    .object({
      count: z.int().describe('Number of measured wakes.'),
      number: z.int().describe('Number of the rest that the last of them ended.'),
      p50Ms: z
        .int()
        .describe('Median of recent wakes in milliseconds, from the first request to the first connection.'),
      p95Ms: z.int().describe('95th percentile of recent wakes, in milliseconds.'),
      recentMs: z.array(z.int()).max(keptWakes).describe('Recent wakes in milliseconds, oldest first.'),
    })
    .optional()
    .describe('How long its wakes took.'),
});
export type IdleStatus = z.infer<typeof idleStatus>;

/** Milliseconds that a wake is assumed to take if the app has no history, for Retry-After. */
export const usualWakeMs = 10_000;

/** State of a backing service. */
export const serviceStatus = z.object({
  name: z.string().describe('Name of the service.'),
  type: z.string().describe('What it is.'),
  ready: z.boolean().describe('Whether it accepts connections.'),
  message: z.string().max(500).optional().describe('Why it is not ready, or how it differs from the request.'),
});
export type ServiceStatus = z.infer<typeof serviceStatus>;

/** State of a component of an app that lists any. */
const componentStatus = z.object({
  name: z.string().describe('Name of the component.'),
  kind: z.string().describe('What it is.'),
  ready: z
    .boolean()
    .describe('Whether it runs and, with a port, accepts connections. Of a task, whether it ended without an error.'),
  restarts: z.int().optional().describe('How often it was restarted, of the pod that serves.'),
  message: z.string().max(500).optional().describe('Why it is not ready.'),
});
export type ComponentStatus = z.infer<typeof componentStatus>;

export const status = z.object({
  observedGeneration: z.int().optional().describe('Generation of the spec that this status reflects.'),
  dataKey: z
    .string()
    .max(100)
    .optional()
    .describe('Key in the names of its volumes and generated Secrets. A new HostedApp finds them by this key.'),
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
      seenAt: timestamp.optional().describe('When it was inspected. Not set while the inspection is in progress.'),
      status: z.int().optional().describe('Status of the response at /.'),
      assets: z.int().optional().describe("Number of the app's own scripts, styles and images that the page loads."),
      faults: z.array(z.string().max(300)).max(5).optional().describe('What does not work.'),
    })
    .optional()
    .describe("Inspection of the serving release's page through the gateway, once it is live."),
  shortCommit: z.string().max(12).optional().describe('Abbreviated source.commit, for the column COMMIT.'),
  source: z
    .object({
      commit: z.string().describe('Newest commit of the revision.'),
      reference: z.string().optional().describe('Git reference that was resolved to the commit.'),
      polledAt: timestamp.optional().describe('When the repository was last polled.'),
      polledFor: z.string().optional().describe('Hash of the source fields that the commit was resolved from.'),
    })
    .optional()
    .describe('The source resolved from the repository.'),
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
  neededImages: z
    .array(neededImage)
    .max(20)
    .optional()
    .describe('Images that the app waits for, because this installation makes them on first use.'),
  plan: plan.optional().describe('How the image is built, and why.'),
  findings: z.array(finding).max(50).optional().describe('Findings of the review of the newest commit.'),
  rejection: rejection.optional().describe('Why the newest commit was rejected. Not set if it was not.'),
  built: z
    .object({
      image: z.string().describe('Image by digest.'),
      commit: z.string(),
      inputsHash: z.string().describe('Hash of the build inputs.'),
      port: z.int().optional(),
      components: componentImages,
      settings: z.string().max(16_000).optional().describe('Contents of moorage.yaml of that commit, as JSON.'),
      attempt: z.string().max(100).optional().describe('The rebuild that produced it, if one was requested.'),
    })
    .optional()
    .describe('Newest image that was built.'),
  readyTemplate: z
    .string()
    .max(100)
    .optional()
    .describe('Hash of the pod template that was last ready. Its pods are always restarted.'),
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
      values: z.string().max(16_000).describe('Contents of moorage.yaml of that commit, as JSON.'),
    })
    .optional()
    .describe('Settings in moorage.yaml of the newest reviewed commit. Not set if it has no such file.'),
  effective: z
    .array(
      z.object({
        field: z.string().describe('Field of the spec, such as run.port.'),
        value: z
          .string()
          .describe('Effective value, shortened. For variables set by the HostedApp or the author, only the names.'),
        from: z
          .string()
          .describe(
            'Where the value comes from: HostedApp, author (set through the API), moorage.yaml, or a file for another platform such as compose.yaml. The former override the latter.',
          ),
      }),
    )
    .max(64)
    .optional()
    .describe('Effective value of each field that moorage.yaml of the newest reviewed commit sets.'),
  ownership: z
    .object({
      since: timestamp.describe('When a commit first contained a contact or an ownership token of the author.'),
      contact: z.string().max(200).optional().describe('Contact in the ownership token of the newest reviewed commit.'),
    })
    .optional()
    .describe(
      "Set once the author has provided a contact in the repository. From then on, the submission's contact is not used.",
    ),
  authorKeys: z
    .array(z.string().max(64))
    .max(5)
    .optional()
    .describe("SHA-256 of each key that grants access to the author's statements, from the newest reviewed commit."),
  secretVersions: z
    .object({
      upTo: z.int().describe('Highest version that was checked. The Secret of each newer version may exist.'),
      kept: z.array(z.int()).max(128).describe('Versions up to that one whose Secrets still exist.'),
    })
    .optional()
    .describe('Secrets of the author (spec.control.secrets) that may exist. Old ones are deleted after a rollout.'),
  attempt: z
    .string()
    .max(100)
    .optional()
    .describe('The rebuild that this status reflects: the value of the annotation moorage.dev/rebuild.'),
  idle: idleStatus
    .optional()
    .describe('State of an app that rests when unused. Set while it is reached through the activator.'),
  ...rollout,
  ...taskStatus,
  domains: domainStatuses.optional().describe('State of each own domain (spec.control.domains).'),
  components: z.array(componentStatus).max(8).optional().describe('State of each component, if the app lists any.'),
  services: z.array(serviceStatus).max(16).optional().describe("State of the app's backing services."),
  history: z.array(historyEntry).max(20).optional().describe('Past pipelines, newest first.'),
  conditions: listBy(z.array(condition).max(32), 'type')
    .optional()
    .describe('Conditions: Ready, Reconciling, Stalled, and one for each step.'),
});

export type HostedAppStatus = z.infer<typeof status>;
export type Plan = z.infer<typeof plan>;
export type Condition = z.infer<typeof condition>;
export type HistoryEntry = z.infer<typeof historyEntry>;
