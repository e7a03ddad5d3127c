// Builds the pipeline Job, which takes one commit of an app through clone, review and build.
import type { V1Container, V1EnvVar, V1JobSpec, V1PodSpec, V1SecurityContext } from '@kubernetes/client-node';
import { listProcessFields } from '../../../crds/components.ts';
import type { HostedApp } from '../../../crds/hosted-app.ts';
import {
  annotations,
  formatAppUrl,
  formatCacheRepository,
  formatImageRepository,
  formatImageTag,
  labels,
} from '../../../crds/names.ts';
import { readSlug } from '../../../crds/slugs.ts';
import type { ComponentImage } from '../../../crds/status.ts';
import { createPushToken } from '../../../lib/app-tokens.ts';
import { deriveDeployKey, findSshRemote } from '../../../lib/git/deploy-keys.ts';
import { createCredential } from '../../../lib/git/git.ts';
import { computeHash, type Manifest, type Wire } from '../../../lib/kubernetes/index.ts';
import type { Repository } from '../../../lib/repository.ts';
import { parseDuration, omitUndefined } from '../../../lib/values.ts';
import { toPipelineComponents } from '../../pipeline/components.ts';
import { type Job, chooseSmaller, divideQuantity, parseBytes } from '../../objects/kinds.ts';
import {
  deployKeyVariable,
  doubtfulExitCode,
  rejectedExitCode,
  unpreparedExitCode,
  workspace,
  type LicensePolicy,
  type PipelineInput,
} from '../../pipeline/contract.ts';
import type { InstallationConfig } from '../../reconcile/installation-config.ts';
import { shortenCommit } from '../../reconcile/outcome.ts';

/** Distinguishes a pipeline from the app's others. */
export interface JobIdentity {
  readonly name: string;
  readonly commit: string;
  readonly inputs: BuildInputs;
  readonly number: number;
  readonly repository: Repository;
  readonly queuedAt: Date;
  /** Images of the components of the last build, if they may be taken over. */
  readonly builtImages?: readonly ComponentImage[];
  /** The author requested a build that ignores the layer cache. */
  readonly noCache?: boolean;
  /** A fault that the author could have staged was accepted for this commit before. */
  readonly doubted?: boolean;
  /** Why it is made, for people. */
  readonly reason: string;
}

/** The name of an app's image, without tag or digest. A pipeline may push to no other name. */
export function formatImageName({ registry }: InstallationConfig, { metadata }: HostedApp): string {
  return `${registry.host}/${formatImageRepository(metadata)}`;
}

/** Creates the Job suspended: the build queue resumes it in turn. */
export function buildPipelineJob(app: HostedApp, config: InstallationConfig, identity: JobIdentity): Manifest {
  const marks = {
    [labels.app]: app.metadata.name,
    [labels.appNamespace]: app.metadata.namespace,
    // A label holds 63 characters, one less than the longest commit id.
    [labels.commit]: identity.commit.slice(0, 40),
    [labels.component]: 'pipeline',
    [labels.partOf]: 'moorage',
    [labels.managedBy]: 'moorage',
    ...(identity.repository.isPrivate === true ? { [labels.ssh]: 'true' } : {}),
  };
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      name: identity.name,
      namespace: config.buildsNamespace,
      labels: marks,
      annotations: {
        [annotations.commit]: identity.commit,
        [annotations.number]: String(identity.number),
        [annotations.reason]: identity.reason,
        [annotations.queuedAt]: identity.queuedAt.toISOString(),
        [annotations.inputs]: JSON.stringify(identity.inputs.each),
        [annotations.appUid]: app.metadata.uid,
        [annotations.submitter]: identifySubmitter(app),
      },
    },
    spec: {
      suspend: true,
      backoffLimit: 3,
      activeDeadlineSeconds: Math.floor(
        Math.min(parseDuration(app.spec.build.timeout), config.pipeline.maximumMs) / 1000,
      ),
      podFailurePolicy: { rules: failureRules },
      template: { metadata: { labels: marks }, spec: buildPodSpec(app, config, identity) },
    } satisfies Wire<V1JobSpec>,
  };
}

/**
 * The network, which is harder to change than a key. An app that was not submitted through the API counts alone. The
 * previews of an app count together, and never take the slot that the app itself is waiting for.
 */
function identifySubmitter({ metadata, spec: { previewOf } }: HostedApp): string {
  if (previewOf !== undefined) return `${metadata.namespace}/${previewOf.app}/previews`;
  const { [labels.network]: network, [labels.caller]: caller } = metadata.labels ?? {};
  return network ?? caller ?? `${metadata.namespace}/${metadata.name}`;
}

const failureRules = [
  { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] },
  {
    action: 'FailJob',
    onExitCodes: { operator: 'In', values: [rejectedExitCode, doubtfulExitCode, unpreparedExitCode] },
  },
  // Killed for its memory or its disk; the same build would be killed again.
  ...['clone', 'build'].map((containerName) => ({
    action: 'FailJob',
    onExitCodes: { containerName, operator: 'In', values: [137] },
  })),
];

function buildPodSpec(app: HostedApp, config: InstallationConfig, identity: JobIdentity): Wire<V1PodSpec> {
  const limits = resolveLimits(app, config);
  const common = {
    image: config.pipeline.image,
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePolicy: 'FallbackToLogsOnError',
    env: [{ name: 'MOORAGE_PIPELINE', value: JSON.stringify(buildPipelineInput(app, config, identity)) }],
  };
  const command = ['node', 'controller/pipeline/main.ts'];
  const workspaceMount = { name: 'workspace', mountPath: workspace.root };
  const buildConfinedStage = (
    name: 'clone' | 'review',
    maximum: { memory: string; disk: string },
  ): Wire<V1Container> => ({
    name,
    ...common,
    command: [...command, name],
    securityContext: confined,
    volumeMounts: [workspaceMount],
    resources: {
      requests: { cpu: '25m', memory: '128Mi' },
      limits: { cpu: '1', memory: maximum.memory, 'ephemeral-storage': maximum.disk },
    },
  });
  return {
    restartPolicy: 'Never',
    hostUsers: false,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 10,
    ...(config.pipeline.priorityClass === undefined ? {} : { priorityClassName: config.pipeline.priorityClass }),
    // Containers start together, so that the builder is ready when the review has passed: starting one after another costs
    // about a second each. pipeline/gate.ts makes each wait for the one before.
    containers: [
      addVariables(
        buildConfinedStage('clone', { memory: cloneMemory, disk: limits.disk }),
        buildGitToken(config, identity),
      ),
      buildConfinedStage('review', reviewLimits),
      {
        name: 'build',
        ...common,
        command: [...command, 'build'],
        // Opens this app's repositories at the registry proxy. Code of the author does not see it.
        env: [
          ...common.env,
          { name: 'MOORAGE_PUSH_TOKEN', value: createPushToken(app.metadata, config.registry.tokenSecret) },
        ],
        // Root only inside the pod's user namespace: on the node it is an ordinary user.
        securityContext: {
          runAsUser: 0,
          privileged: false,
          procMount: 'Unmasked',
          capabilities: { add: ['SYS_ADMIN', 'NET_ADMIN'] },
          seccompProfile: { type: 'Unconfined' },
        },
        resources: {
          requests: { cpu: divideQuantity(limits.cpu, 16n), memory: divideQuantity(limits.memory, 8n) },
          limits: { cpu: limits.cpu, memory: limits.memory, 'ephemeral-storage': limits.disk },
        },
        volumeMounts: [workspaceMount, { name: 'layers', mountPath: '/var/lib/buildkit' }],
      },
    ],
    volumes: [
      { name: 'workspace', emptyDir: { sizeLimit: limits.disk } },
      { name: 'layers', emptyDir: { sizeLimit: limits.disk } },
    ],
  };
}

/** A Job that waits in the queue for longer is a platform fault, and is created again. */
const gitTokenMs = 24 * 60 * 60_000;

/**
 * Gives read access to the repository, if it is private or on the git server inside the cluster. Code of the author does
 * not see it.
 */
function buildGitToken(
  { gitAccess: { readSecret } }: InstallationConfig,
  { name, repository, queuedAt }: JobIdentity,
): V1EnvVar[] {
  if (repository.isPrivate === true)
    return [
      {
        name: deployKeyVariable,
        valueFrom: { secretKeyRef: { name: formatDeployKeySecretName(name), key: deployKeyField } },
      },
    ];
  const expires = new Date(queuedAt.getTime() + gitTokenMs);
  const credential = createCredential(repository, readSecret, expires);
  return credential === undefined ? [] : [{ name: 'MOORAGE_GIT_TOKEN', value: credential.token }];
}

const deployKeyField = 'key';

/** The admission policy lets the clone container of a pipeline read a Secret of such a name, and no other. */
function formatDeployKeySecretName(job: string): string {
  return `${job}-deploy-key`;
}

/** Builds the Secret with the deploy key for a pipeline of a private repository. It goes when its Job does. */
export function buildDeployKeySecret(
  job: Job,
  repository: Repository,
  { gitAccess: { deployKeys }, buildsNamespace: namespace }: InstallationConfig,
): Manifest | undefined {
  if (repository.isPrivate !== true || deployKeys === undefined) return undefined;
  const { name, uid, labels: marks } = job.metadata;
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: formatDeployKeySecretName(name),
      namespace,
      labels: { ...marks, [labels.component]: 'deploy-key' },
      ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid }],
    },
    type: 'Opaque',
    immutable: true,
    stringData: { [deployKeyField]: deriveDeployKey(repository, deployKeys.secret).privateKey },
  };
}

function addVariables(container: Wire<V1Container>, env: readonly V1EnvVar[]): Wire<V1Container> {
  return { ...container, env: [...(container.env ?? []), ...env] };
}

/** git needs the most, for the objects of the largest accepted repository; it has ended when the other stages work. */
const cloneMemory = '2Gi';

/** In addition to the build's limits. The review only writes notes. */
const reviewLimits = { memory: '1Gi', disk: '256Mi' };

const confined: Wire<V1SecurityContext> = {
  runAsUser: 0,
  privileged: false,
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
};

function resolveLimits(app: HostedApp, config: InstallationConfig): { cpu: string; memory: string; disk: string } {
  const { cpu, memory, disk } = app.spec.build.resources;
  const { maximum } = config.pipeline;
  return {
    cpu: chooseSmaller(cpu, maximum.cpu),
    memory: chooseSmaller(memory, maximum.memory),
    disk: chooseSmaller(disk, maximum.disk),
  };
}

function buildPipelineInput(
  app: HostedApp,
  config: InstallationConfig,
  { commit, repository, number, builtImages, noCache = false, doubted = false }: JobIdentity,
): PipelineInput {
  const { source, build, review, run, components } = app.spec;
  const limits = resolveLimits(app, config);
  const processFields = listUnbuiltFields(app);
  return {
    app: app.metadata.name,
    repo: repository.cloneUrl,
    insecure: repository.insecure,
    ...toSshInput(repository, config),
    commit,
    path: source.path,
    build: omitUndefined({
      strategy: build.strategy,
      dockerfile: build.dockerfile,
      target: build.target,
      args: build.args,
      env: build.env,
    }),
    url: new URL(formatAppUrl(readSlug(app), config.site)).origin,
    services: app.spec.services.map(({ name, type }) => ({ name, type })),
    offered: { types: Object.keys(config.run.services.images), count: config.run.services.count },
    ...(run.port === undefined ? {} : { port: run.port }),
    pinned: [...(app.pinned ?? [])],
    hasCommand: run.command.length > 0,
    ...(components.length === 0 ? {} : { components: toPipelineComponents(components) }),
    ...(processFields.length === 0 ? {} : { processFields }),
    ...(builtImages === undefined
      ? {}
      : {
          builtImages: builtImages.flatMap(({ image, sourceHash }) =>
            sourceHash === undefined ? [] : [{ image, sourceHash }],
          ),
        }),
    ...toMcpInput(app, 'mcp'),
    image: formatImageName(config, app),
    push: `${config.registry.proxy}/${formatImageRepository(app.metadata)}`,
    tag: formatImageTag(number),
    memoryBytes: Number(parseBytes(limits.memory)),
    diskBytes: Number(parseBytes(limits.disk)),
    ...(config.pipeline.cache
      ? {
          cache: `${config.registry.proxy}/${formatCacheRepository(app.metadata)}`,
          cacheBytes: config.pipeline.cacheBytes,
        }
      : {}),
    ...(noCache ? { noCache } : {}),
    ...resolveMirror(config.registry),
    ...pickImageLists(config.registry),
    doubted,
    gitHosts: { allowed: [...config.gitHosts.allowed], insecure: [...config.gitHosts.insecure] },
    licenses: toLicensePolicy(repository, config),
    waivers: review.waivers,
    limits: config.pipeline.limits,
  };
}

/** Who gives a repository the key of this installation decides that it is hosted; a licence would say so to others. */
function toLicensePolicy({ isPrivate }: Repository, { pipeline }: InstallationConfig): LicensePolicy {
  return isPrivate === true ? { ...pipeline.licenses, missing: 'warn' } : pipeline.licenses;
}

function toSshInput(
  repository: Repository,
  { gitAccess: { deployKeys } }: InstallationConfig,
): Pick<PipelineInput, 'ssh'> {
  const remote = repository.isPrivate === true ? findSshRemote(repository, deployKeys?.hostKeys ?? []) : undefined;
  return remote === undefined ? {} : { ssh: remote };
}

/** Fields that describe one process and that an image does not depend on: only one of components excludes them. */
function listUnbuiltFields({ spec: { run } }: HostedApp): string[] {
  return listProcessFields({ run: { healthPath: run.healthPath, volumes: run.volumes } });
}

function pickImageLists({
  missingImages = [],
  imagesOnDemand = [],
}: InstallationConfig['registry']): Pick<PipelineInput, 'missingImages' | 'imagesOnDemand'> {
  return {
    ...(missingImages.length === 0 ? {} : { missingImages: [...missingImages] }),
    ...(imagesOnDemand.length === 0 ? {} : { imagesOnDemand: [...imagesOnDemand] }),
  };
}

/** Builds reach the registry only through its proxy. */
function resolveMirror({
  host,
  proxy,
  mirror,
  mirrorOf,
  insecure,
}: InstallationConfig['registry']): Pick<PipelineInput, 'mirror' | 'mirrorOf' | 'plainHosts'> {
  if (mirror === undefined) return { mirrorOf: [], plainHosts: [proxy] };
  return mirror === host
    ? { mirror: proxy, mirrorOf: [...mirrorOf], plainHosts: [proxy] }
    : { mirror, mirrorOf: [...mirrorOf], plainHosts: insecure ? [proxy, mirror] : [proxy] };
}

// The inputs of an image, hashed, and the reason for a new build.

/** A hash of each setting that an image is made from, by field name. */
export type InputHashes = Readonly<Record<string, string>>;

/** Only if someone has set any of it: all other apps keep the input and the hash that they had before there was the field. */
function toMcpInput<Name extends string>({ spec: { mcp } }: HostedApp, name: Name): { [Key in Name]?: typeof mcp } {
  return mcp.transport === undefined && mcp.command.length === 0
    ? {}
    : ({ [name]: mcp } as { [Key in Name]: typeof mcp });
}

/** Hashes of everything that determines an image besides the commit. */
export interface BuildInputs {
  /** 16 hex digits over all of them. */
  readonly hash: string;
  readonly each: InputHashes;
}

/**
 * The pipeline's own image is left out: a new version of the platform must not rebuild every app at the same time.
 */
export function hashBuildInputs(app: HostedApp): BuildInputs {
  const { source, build, review, run, components } = app.spec;
  const pinned = (app.pinned ?? []).filter((field) => /^(source|build|mcp)\.|^run\.command$|^components$/.test(field));
  const values: Record<string, unknown> = {
    'spec.source.repo': source.repo,
    'spec.source.path': source.path,
    'spec.build.strategy': build.strategy,
    'spec.build.dockerfile': build.dockerfile,
    // Only if set, so that apps built before this field existed keep their hash.
    ...(build.target === undefined ? {} : { 'spec.build.target': build.target }),
    'spec.build.args': build.args,
    'spec.build.env': build.env,
    'spec.build.resources': build.resources,
    'spec.build.timeout': build.timeout,
    // Only if set, for the same reason.
    ...(review.waivers.length === 0 ? {} : { 'spec.review.waivers': review.waivers }),
    ...toMcpInput(app, 'spec.mcp'),
    ...(pinned.length === 0 ? {} : { [pinnedInput]: pinned }),
    // Only if the app lists any: an app of one process keeps its hash, and a change of what runs needs no build.
    ...(components.length === 0 ? {} : { 'spec.components': toPipelineComponents(components) }),
    ...hashExcludedFields(app),
    'spec.run.port': run.port ?? null,
    'spec.run.command': run.command.length > 0,
    [rebuildInput]: app.metadata.annotations?.[annotations.rebuild] ?? null,
  };
  const each = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, computeHash(value).slice(0, 8)]),
  );
  return { hash: computeHash(each), each };
}

/**
 * Fields that the components of the last build exclude: the next review must refuse them. No other app is rebuilt for them,
 * since its image does not depend on them.
 */
function hashExcludedFields(app: HostedApp): Record<string, true> {
  if (app.status?.built?.components === undefined) return {};
  return Object.fromEntries(listUnbuiltFields(app).map((field) => [`spec.${field}`, true]));
}

/** Only if a default is pinned, so that apps from before there were pins keep their hash. */
const pinnedInput = 'spec fields set to their default';
const rebuildInput = `metadata.annotations.${annotations.rebuild}`;

/**
 * The name derives from commit and inputs, so requesting a build twice gives the same Job. At most 57 characters, as app
 * names have 40.
 */
export function formatJobName(app: string, commit: string, hash: string): string {
  return `${app}-${shortenCommit(commit)}-${hash.slice(0, 8)}`;
}

/** The build and the one before it. */
interface Comparison {
  readonly commit: string;
  readonly inputs: InputHashes;
  readonly previous: { readonly commit: string | undefined; readonly inputs: InputHashes | undefined } | undefined;
  /** Faults of the platform at this very Job so far. */
  readonly faults: number;
  readonly faultLimit: number;
  /** An image that the build waited for, and that is ready. */
  readonly preparedImage?: string | undefined;
}

/** Possible reasons for a build, in the order in which they are reported; undefined if one does not apply. */
const causes: readonly ((comparison: Comparison) => string | undefined)[] = [
  ({ faults, faultLimit }) =>
    faults === 0 ? undefined : `retry after a platform fault (attempt ${faults + 1} of ${faultLimit})`,
  ({ preparedImage }) => (preparedImage === undefined ? undefined : `the image ${preparedImage} is ready`),
  ({ previous, preparedImage }) => (previous === undefined && preparedImage === undefined ? 'first build' : undefined),
  ({ previous, commit }) =>
    previous?.commit === undefined || previous.commit === commit
      ? undefined
      : `new commit ${shortenCommit(commit)} (was ${shortenCommit(previous.commit)})`,
  (comparison) => (listChanges(comparison).includes(rebuildInput) ? 'rebuild requested' : undefined),
  (comparison) => {
    const fields = listChanges(comparison).filter((name) => name !== rebuildInput);
    return fields.length === 0 ? undefined : `changed build settings: ${fields.join(', ')}`;
  },
];

function listChanges({ inputs, previous }: Comparison): string[] {
  const before = previous?.inputs;
  return before === undefined ? [] : Object.keys(inputs).filter((name) => before[name] !== inputs[name]);
}

/** Every reason that applies. */
export function explainBuild(comparison: Comparison): string {
  const reasons = causes.flatMap((cause) => cause(comparison) ?? []);
  return reasons.length === 0 ? 'the previous Job no longer exists' : reasons.join('; ');
}

/** The inputs annotated on a Job; undefined if they cannot be read. */
export function readInputs(job: Job | undefined): InputHashes | undefined {
  const text = job?.metadata.annotations?.[annotations.inputs];
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as InputHashes) : undefined;
  } catch {
    return undefined;
  }
}
