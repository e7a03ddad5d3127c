// Defines the input of a pipeline pod and how a container reads it, the result of each container, and how a stage can fail.
import { join, posix } from 'node:path';
import { z } from 'zod';
import { serviceTypes } from '../../crds/backing-services.ts';
import { componentKinds } from '../../crds/components.ts';
import type { ResolvableApp } from '../../crds/effective-settings.ts';
import { build, finding, type Finding, plan, review } from '../../crds/hosted-app.ts';
import { formatImageTag } from '../../crds/names.ts';
import { componentImages } from '../../crds/status.ts';
import { mcp } from '../../crds/values.ts';
import { readConfig } from '../../lib/config.ts';
import { transportedSettings } from './settings-report.ts';

/** Exit code of a container whose verdict is final. The Job retries after any other failure. */
export const rejectedExitCode = 42;

/** Exit code of a build that needs an image which the installation still has to make. */
export const unpreparedExitCode = 44;

/** Exit code of a container with a fault that the author could have staged. The operator decides whether to retry. */
export const doubtfulExitCode = 43;

/**
 * Rule of a finding that the operator of the installation can approve. Any other error of a review takes precedence.
 */
export const approvalRule = 'license/approval';

/** Maximum size of a termination message in Kubernetes, in bytes. */
export const terminationMessageLimit = 4096;

/** Paths inside the pod. */
export const workspace = {
  root: '/workspace',
  source: '/workspace/source',
  notes: '/workspace/.moorage',
} as const;

const limits = z.strictObject({
  repositoryBytes: z.int().positive().describe('Most bytes of a checked-out tree.'),
  files: z.int().positive().describe('Most files in it.'),
  fileBytes: z.int().positive().describe('Most bytes of one file.'),
});

const verdict = z.enum(['reject', 'ask', 'warn']);

const licenses = z.strictObject({
  allow: z
    .array(z.string())
    .default([])
    .describe('SPDX identifiers that pass in addition to those of open-source licences.'),
  deny: z.array(z.string()).default([]).describe('SPDX identifiers that count as restricted.'),
  custom: verdict.default('warn').describe('For a licence with terms of its own.'),
  restricted: verdict
    .default('ask')
    .describe('For a licence that limits commercial or hosted use, or gives no rights.'),
  missing: verdict.default('reject').describe('Where no licence is found.'),
});
/** The installation's licence policy. */
export type LicensePolicy = z.infer<typeof licenses>;
export type PolicyVerdict = z.infer<typeof verdict>;

const gitHosts = z.strictObject({ allowed: z.array(z.string()), insecure: z.array(z.string()) });

const buildSettings = build.pick({ strategy: true, dockerfile: true, target: true, args: true, env: true });

const component = z.strictObject({
  name: z.string(),
  kind: z.enum(componentKinds),
  path: z.string().describe('Folder of its source, relative to the path of the app.'),
  build: buildSettings,
  imageOf: z.string().describe('Component whose image it runs: itself, if it builds one.'),
  port: z.int().optional(),
  hasCommand: z.boolean().describe('Its command is set, so the plan of its image needs no start command for it.'),
  isMain: z.boolean().describe('It answers at / of the app.'),
  mcp: mcp.optional().describe('How it starts if it is an MCP server; absent: what its files show.'),
});
/** A component, as far as its image and its port are concerned. */
export type PipelineComponent = z.infer<typeof component>;

/** Input of every container, as JSON in the variable MOORAGE_PIPELINE. */
export const pipelineInput = z.strictObject({
  app: z.string(),
  repo: z.string(),
  insecure: z.boolean().default(false).describe('Plain http is allowed for this repository.'),
  ssh: z
    .strictObject({ url: z.string(), knownHosts: z.string().describe('Lines of known_hosts for its server.') })
    .optional()
    .describe('How a private repository is reached; absent: it is public.'),
  commit: z.string().regex(/^[0-9a-f]{40}([0-9a-f]{24})?$/),
  path: z.string(),
  build: buildSettings,
  port: z.int().optional(),
  url: z.string().optional().describe('URL of the app, for ${{app.url}} in variables of a build.'),
  services: z
    .array(z.strictObject({ name: z.string(), type: z.enum(serviceTypes) }))
    .default([])
    .describe('spec.services of the HostedApp, which override those of the repository.'),
  offered: z
    .strictObject({
      types: z.array(z.string()).describe('Types of service that this installation has images for.'),
      count: z.int().describe('Most services an app may have.'),
    })
    .optional()
    .describe('Backing services that this installation offers; absent: not looked at.'),
  pinned: z
    .array(z.string())
    .default([])
    .describe(
      'Fields that the HostedApp sets to their default, such as build.strategy; moorage.yaml cannot change them.',
    ),
  hasCommand: z
    .boolean()
    .default(false)
    .describe('spec.run.command is set, so the plan needs no start command of its own.'),
  processFields: z
    .array(z.string())
    .optional()
    .describe('Other fields of the HostedApp that describe the only process of an app, such as run.volumes.'),
  components: z.array(component).optional().describe('spec.components of the HostedApp; absent: it lists none.'),
  builtImages: z
    .array(z.strictObject({ image: z.string(), sourceHash: z.string() }))
    .optional()
    .describe('Images of the last build. A component with the same hash takes one over; absent: all are built.'),
  mcp: mcp
    .optional()
    .describe('spec.mcp of the HostedApp, which overrides that of the repository; absent: it sets none of it.'),
  image: z
    .string()
    .describe('Name of the image, without tag or digest, like registry.moorage-system.svc:5000/apps/hello.<UID>.'),
  push: z.string().describe('The same image at the registry proxy, which is where it is pushed.'),
  tag: z.string().default(formatImageTag(1)).describe('Tag that it is pushed with and later removed by.'),
  memoryBytes: z
    .int()
    .positive()
    .optional()
    .describe('Memory limit of the build; absent: images are built one after another.'),
  diskBytes: z
    .int()
    .positive()
    .optional()
    .describe('Disk that the build may take; absent: its end for lack of disk is never the fault of the node.'),
  cacheBytes: z.int().positive().optional().describe('Most bytes of the cache of all steps; absent: no limit.'),
  cache: z.string().optional().describe('Name of the layer cache at the registry proxy; absent: none.'),
  noCache: z
    .boolean()
    .optional()
    .describe('Every step runs again, and no layer is taken from the cache; the cache is filled all the same.'),
  plainHosts: z.array(z.string()).default([]).describe('Registry hosts that are reached over plain http.'),
  missingImages: z
    .array(z.string())
    .optional()
    .describe('Base images that a plan could start from, and that this installation does not have.'),
  imagesOnDemand: z
    .array(z.string())
    .optional()
    .describe('Images that the installation makes when an app first needs them.'),
  mirror: z.string().optional().describe('Registry host asked instead of those of mirrorOf.'),
  mirrorOf: z.array(z.string()).default(['docker.io']).describe('Registry hosts that the mirror stands in for.'),
  doubted: z
    .boolean()
    .default(false)
    .describe('A fault that the author could have staged was believed once for this commit; no other is.'),
  gitHosts: gitHosts
    .default({ allowed: [], insecure: [] })
    .describe('Git hosts that submodules may be on; insecure: those over plain http.'),
  licenses: licenses.prefault({}).describe('Policy of the installation on licences.'),
  waivers: review.shape.waivers.describe('Findings that the operator of the installation waives.'),
  limits,
});
export type PipelineInput = z.infer<typeof pipelineInput>;

/** Extracts the HostedApp's settings from the input; settings from files only fill the gaps. */
export function toResolvableApp({
  repo,
  path,
  build: settings,
  port,
  mcp: mcpSettings = { command: [] },
  pinned,
}: PipelineInput): ResolvableApp {
  return { spec: { source: { repo, path }, build: settings, run: { port }, mcp: mcpSettings }, pinned };
}

export const cloneResult = z.object({
  commit: z.string(),
  files: z.int(),
  bytes: z.int(),
  ownership: z.array(z.string().max(1_000)).max(3).optional().describe('Ownership tokens in the repository, unread.'),
  authorKeys: z
    .array(z.string().length(64))
    .max(5)
    .optional()
    .describe("SHA-256 of the author's keys in the repository."),
});
export const reviewResult = z.object({
  findings: z.array(finding),
  plan,
  settings: transportedSettings
    .optional()
    .describe('What moorage.yaml of the commit says, and beneath it what it says for other platforms.'),
});
export const buildResult = z.object({
  image: z.string().describe('name@sha256:… of what was pushed.'),
  port: z.int().optional().describe('EXPOSEd by the image, or chosen by the plan.'),
  components: componentImages,
  findings: z.array(finding).default([]).describe("Warnings of BuildKit's own checks."),
});

/** Written by a container that exits with {@link rejectedExitCode}. The first error in `findings` is the reason. */
export const rejection = z.object({
  rejected: z.literal(true),
  findings: z.array(finding).min(1),
  log: z.string().optional().describe('Last lines of what went wrong.'),
});

export type CloneResult = z.infer<typeof cloneResult>;
export type ReviewResult = z.infer<typeof reviewResult>;
export type BuildResult = z.infer<typeof buildResult>;

/**
 * Rejects a commit whose objects git could not process within its memory limit. Detected when git, or its whole
 * container, is killed.
 */
export const tooLargeSource = {
  rule: 'source/too-large',
  message: 'git exceeded the memory limit while cloning this commit and was killed.',
  fix: 'Make the repository smaller: keep models, datasets, media and generated files out of it (download them when the app starts, or store them on a volume), and spread many files over more folders.',
};

/** Written by a container that could not reach a verdict because of a platform or network fault. The Job retries. */
export const fault = z.object({
  fault: z.string(),
  doubtful: z.literal(true).optional().describe('The author could have staged it.'),
});
export type PipelineFault = z.infer<typeof fault>;

/** Written by a build that exits with {@link unpreparedExitCode}. */
export const unprepared = z.object({
  unprepared: z.array(z.string().max(300)).min(1).max(20).describe('Images that have to be made first.'),
});

/** The repository cannot be hosted as is. Final for this commit. `log` is the end of a tool's output. */
export class Rejected extends Error {
  override readonly name = 'Rejected';
  readonly findings: readonly [Finding, ...Finding[]];
  readonly log: string | undefined;
  constructor(findings: readonly [Finding, ...Finding[]], log?: string) {
    super(findings[0].message);
    this.findings = findings;
    this.log = log;
  }
}

/** A platform or network fault. The same input may succeed later. */
export class Fault extends Error {
  override readonly name = 'Fault';
}

/** A fault that the author's files or server could have staged. Trusted once per commit. */
export class DoubtfulFault extends Fault {}

/** The build needs images that the installation makes on first use, and has not made yet. */
export class Unprepared extends Error {
  override readonly name = 'Unprepared';
  readonly images: readonly string[];
  constructor(images: readonly string[]) {
    super(`${images.join(', ')} must be made first`);
    this.images = images;
  }
}

/** The previous stage did not pass, and reports the reason itself. */
export class NotReached extends Error {
  override readonly name = 'NotReached';
}

// The environment of a pipeline container.

/** Name of the variable with the deploy key. */
export const deployKeyVariable = 'MOORAGE_DEPLOY_KEY';

const environment = z.object({
  MOORAGE_PIPELINE: z
    .string()
    .transform((text, context) => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue('must be JSON');
        return z.NEVER;
      }
    })
    .pipe(pipelineInput),
  MOORAGE_PUSH_TOKEN: z.string().optional().describe('Opens the repositories of this app at the registry proxy.'),
  MOORAGE_GIT_TOKEN: z
    .string()
    .optional()
    .describe('Reads the repository of this app on its git server; for the clone alone.'),
  [deployKeyVariable]: z
    .string()
    .optional()
    .describe('Private key that reads a private repository; for the clone alone.'),
  MOORAGE_WORKSPACE: z.string().startsWith('/').default(workspace.root),
  MOORAGE_BUILDKIT_ROOT: z.string().startsWith('/').default('/var/lib/buildkit'),
});

export interface WorkspacePaths {
  readonly root: string;
  /** The author's files. */
  readonly source: string;
  /** Notes passed between stages, never inside the author's tree. */
  readonly notes: string;
  /** State of the builder, on a disk that supports overlay mounts; a container's root file system does not. */
  readonly builder: string;
}

export interface PipelineConfig {
  readonly input: PipelineInput;
  readonly paths: WorkspacePaths;
  readonly pushToken?: string | undefined;
  readonly gitToken?: string | undefined;
  readonly deployKey?: string | undefined;
}

/** Returns the path of the termination message: /dev/termination-log, except in tests. */
export function getTerminationLog(variables: NodeJS.ProcessEnv = process.env): string {
  return variables['MOORAGE_TERMINATION_LOG'] ?? '/dev/termination-log';
}

/** Returns the workspace folders under a root. Only tests use other roots. */
export function toWorkspacePaths(root: string, builder: string): WorkspacePaths {
  const toPath = (path: string): string => join(root, path.slice(workspace.root.length));
  return { root, source: toPath(workspace.source), notes: toPath(workspace.notes), builder };
}

/** Reads the configuration. @throws Error that names each invalid variable */
export function readPipelineConfig(variables: NodeJS.ProcessEnv = process.env): PipelineConfig {
  const read = readConfig(environment, variables);
  return {
    input: { ...read.MOORAGE_PIPELINE, path: normalizePath(read.MOORAGE_PIPELINE.path) },
    paths: toWorkspacePaths(read.MOORAGE_WORKSPACE, read.MOORAGE_BUILDKIT_ROOT),
    pushToken: read.MOORAGE_PUSH_TOKEN,
    gitToken: read.MOORAGE_GIT_TOKEN,
    deployKey: read[deployKeyVariable],
  };
}

/** Normalizes a folder path: "./web/" becomes "web". */
function normalizePath(path: string): string {
  return posix.normalize(path).replace(/(?!^)\/$/, '');
}
