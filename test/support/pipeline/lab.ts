// Runs the pipeline's stages as a pod would: one process each, input by environment, result by termination message and
// exit code.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { startDaemon } from '../../../controller/pipeline/build/buildkit.ts';
import {
  pipelineInput,
  type PipelineInput,
  terminationMessageLimit,
  toWorkspacePaths,
} from '../../../controller/pipeline/contract.ts';
import { languages } from '../../../crds/languages.ts';
import { formatImageRepository, type PipelineContainer } from '../../../crds/names.ts';
import { stageMessage, type StageMessage } from '../../../controller/pipeline/message.ts';
import { run } from '../../../lib/child-process.ts';
import { images } from '../../../localnode/images/catalog.ts';
import { openLease } from '../servers/lease.ts';
import { fillRegistry, ordinaryImages, addProgramsToPath, startRegistry, type TestRegistry } from './registry.ts';
import { serveRepositories, type Repositories, type Repository, type RepositoryContent } from './repositories.ts';

/** Path of the pipeline's program in the project, and in its bundle. */
export const pipelineFile = 'controller/pipeline/main.ts';
/** The pipeline's main.ts: the bundle that the files of a run share, which starts in half the time of the source. */
let program: Promise<string> | undefined;

export interface StageEnd {
  readonly code: number | null;
  readonly message: StageMessage;
  readonly messageBytes: number;
  readonly log: string;
}

/** A workspace as one pod has it. */
export interface Pod {
  readonly root: string;
  /** `variables`: more of its environment. */
  stage(name: PipelineContainer, variables?: Readonly<Record<string, string>>): Promise<StageEnd>;
  /** clone and review (and build) up to the first that does not end with 0; gives the last. */
  upTo(name: PipelineContainer): Promise<StageEnd>;
  remove(): Promise<void>;
}

/** A cold builder is empty, as in a cluster, and pulls base images; a warm one has unpacked the ordinary ones. */
export type Builder = 'cold' | 'warm';

export interface Lab {
  readonly registry: TestRegistry;
  readonly repositories: Repositories;
  pod(repository: Repository, input: Partial<PipelineInput>, builder: Builder): Promise<Pod>;
  /** Takes a repository of this content through its whole pipeline, as the app of that name. */
  through(
    app: string,
    content: RepositoryContent,
    input?: Partial<PipelineInput>,
    builder?: Builder,
  ): Promise<StageEnd>;
  /** Builds a Dockerfile beside the pipeline, on a daemon that may pull what was pushed. Gives all that it printed. */
  buildBeside(dockerfile: string): Promise<string>;
  /** Puts a further base image of the catalog into the registry, after those that it starts from. */
  addImage(name: string): Promise<void>;
  stop(): Promise<void>;
}

/** UID of every app in the lab. */
export const labUid = '0a1b2c3d-0000-4000-8000-000000000000';

export const limits = { repositoryBytes: 50_000_000, files: 500, fileBytes: 10_000_000 };

/** Where the run keeps compiled sources, as the images of the platform do. */
const { NODE_COMPILE_CACHE: compileCache } = process.env;
const compiledSources = compileCache === undefined ? {} : { NODE_COMPILE_CACHE: compileCache };

/** Runs one stage in a process of its own. */
async function runStage(
  name: PipelineContainer,
  input: PipelineInput,
  root: string,
  registry: TestRegistry | undefined,
  variables: Readonly<Record<string, string>> = {},
): Promise<StageEnd> {
  const pushToken = registry?.proxy.tokenOf({ name: input.app, uid: labUid });
  const terminationLog = join(root, 'termination-log');
  await writeFile(terminationLog, '');
  const child = spawn(process.execPath, [await (program ??= findProgram()), name], {
    env: {
      PATH: process.env['PATH'] ?? '',
      ...compiledSources,
      MOORAGE_PIPELINE: JSON.stringify(input),
      MOORAGE_WORKSPACE: join(root, 'workspace'),
      MOORAGE_BUILDKIT_ROOT: join(root, 'buildkit'),
      MOORAGE_TERMINATION_LOG: terminationLog,
      ...(pushToken === undefined || name !== 'build' ? {} : { MOORAGE_PUSH_TOKEN: pushToken }),
      ...variables,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
    });
  await once(child, 'close');
  const text = await readFile(terminationLog, 'utf8');
  return {
    code: child.exitCode,
    message: stageMessage.parse(JSON.parse(text)),
    messageBytes: Buffer.byteLength(text),
    log: Buffer.concat(chunks).toString('utf8'),
  };
}

export interface PodOptions {
  readonly registry?: TestRegistry;
  /** Root of a builder to begin the build with. */
  readonly builder?: string | undefined;
}

/** Of Python, the ordinary base images have one version. */
const missingImages = languages.python.images
  .map(({ image }) => image)
  .filter((image) => !image.startsWith('python:3.11'));

/** A pod without a registry is enough for clone and review. */
export async function makePod(
  repository: Repository,
  input: Partial<PipelineInput> = {},
  { registry, builder }: PodOptions = {},
): Promise<Pod> {
  const root = await mkdtemp(join(tmpdir(), 'moorage-pod-'));
  const app = input.app ?? 'sample';
  const path = formatImageRepository({ name: app, uid: labUid });
  const whole = pipelineInput.parse({
    app,
    repo: repository.url,
    insecure: true,
    commit: repository.commit,
    path: '.',
    build: { strategy: 'auto', dockerfile: 'Dockerfile', args: [], env: [] },
    image: `${registry?.host ?? 'registry.invalid'}/${path}`,
    push: `${registry?.proxy.host ?? 'proxy.invalid'}/${path}`,
    ...(registry === undefined ? {} : { mirror: registry.proxy.host, plainHosts: [registry.proxy.host] }),
    limits,
    missingImages,
    ...input,
  });
  const stage: Pod['stage'] = async (name, variables) => {
    if (name === 'build' && builder !== undefined) await copyBuilder(builder, join(root, 'buildkit'));
    return runStage(name, whole, root, registry, variables);
  };
  return {
    root,
    stage,
    upTo: async (name) => {
      let ended = await stage('clone');
      if (name !== 'clone' && ended.code === 0) ended = await stage('review');
      return name === 'build' && ended.code === 0 ? await stage('build') : ended;
    },
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

export async function startLab(): Promise<Lab> {
  await addProgramsToPath();
  const root = await mkdtemp(join(tmpdir(), 'moorage-lab-'));
  const template = (await leasePath('pipeline-template')) ?? (await makeTemplate(join(root, 'template')));
  const warm = join(template, 'builder');
  await copyRegistry(join(template, 'registry'), join(root, 'registry'));
  const registry = await startRegistry(join(root, 'registry'));
  await copyBuilder(warm, join(root, 'builder'));
  const builder = await startBuilder(registry, join(root, 'builder'));
  const repositories = await serveRepositories();
  const pod: Lab['pod'] = (repository, input, state) =>
    makePod(repository, input, { registry, builder: state === 'warm' ? warm : undefined });
  return {
    registry,
    repositories,
    addImage: (name) => fillRegistry(registry, [name], builder.build),
    pod,
    through: async (app, content, more = {}, state = 'warm') => {
      const made = await pod(await repositories.add(app, content), { app, ...more }, state);
      try {
        const ended = await made.upTo('build');
        assert.ok(ended.messageBytes <= terminationMessageLimit);
        return ended;
      } finally {
        await made.remove();
      }
    },
    buildBeside: async (dockerfile) => {
      const context = await mkdtemp(join(root, 'context-'));
      await writeFile(join(context, 'Dockerfile'), dockerfile);
      return builder.build(context, ['--no-cache']);
    },
    stop: async () => {
      await builder.stop();
      await repositories.stop();
      await registry.stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Outside of a run that shares servers, it is the source. */
async function findProgram(): Promise<string> {
  const source = join(import.meta.dirname, '..', '..', '..', pipelineFile);
  return (await leasePath('pipeline-program')) ?? source;
}

/** Asks for what all labs of a run have in common. @returns undefined outside of a run that shares servers */
async function leasePath(want: 'pipeline-template' | 'pipeline-program'): Promise<string | undefined> {
  const lease = await openLease();
  if (lease === undefined) return undefined;
  const path = await lease.request({ want }, z.string());
  lease.end();
  return path;
}

/** Fills a folder with a registry that has the ordinary base images, and a builder that has unpacked them. */
export async function makeTemplate(folder: string): Promise<string> {
  await addProgramsToPath();
  await mkdir(folder, { recursive: true });
  const registry = await startRegistry(join(folder, 'registry'));
  const builder = await startBuilder(registry, join(folder, 'builder'));
  await fillRegistry(registry, ordinaryImages, builder.build);
  const [first = '', ...others] = images.flatMap(({ name, repository, tags }) =>
    ordinaryImages.includes(name) ? [`docker.io/${repository}:${tags[0] ?? ''}`] : [],
  );
  const mounts = others.map((image, index) => `--mount=from=${image},target=/mnt/${index}`);
  const context = join(folder, 'context');
  await mkdir(context);
  await writeFile(join(context, 'Dockerfile'), `FROM ${first}\nRUN ${mounts.join(' ')} true\n`);
  await builder.build(context, []);
  await builder.stop();
  await registry.stop();
  return folder;
}

/**
 * Copies the state of a builder that has stopped: its databases, hard links to its blobs, and symbolic links to the
 * layers that it has unpacked, which serve as lower layers of mounts and never change.
 */
function copyBuilder(from: string, to: string): Promise<void> {
  return runShell(
    'worker=runc-overlayfs; layers=$worker/snapshots/snapshots; mkdir -p "$2/$layers"; cp -al "$1/$worker/content" "$2/$worker"; ln -s "$1/$layers"/* "$2/$layers"; cd "$1"; find . -maxdepth 3 -type f -exec cp --parents -t "$2" {} +',
    from,
    to,
  );
}

/** Copies a registry that has stopped. Blobs never change, so that hard links will do; links to them are written in place. */
function copyRegistry(from: string, to: string): Promise<void> {
  return runShell(
    'cp -al "$1" "$2"; cd "$1"; find . -name link -exec cp --parents --remove-destination -t "$2" {} +',
    from,
    to,
  );
}

async function runShell(script: string, ...args: readonly string[]): Promise<void> {
  const ended = await run('sh', ['-euc', script, 'sh', ...args], { env: { PATH: process.env['PATH'] ?? '' } });
  if (ended.code !== 0) throw new Error(`${args.join(', ')}: ${ended.stderr}`);
}

interface RunningBuilder {
  readonly build: (context: string, args: readonly string[]) => Promise<string>;
  stop(): Promise<void>;
}

/** A daemon of the lab, which may pull what the pipeline pushed. */
async function startBuilder(registry: TestRegistry, root: string): Promise<RunningBuilder> {
  const paths = toWorkspacePaths(join(root, '..', 'workspace'), root);
  const input = pipelineInput.parse({
    app: 'lab',
    repo: 'http://none.invalid/a/b',
    commit: '0'.repeat(40),
    path: '.',
    build: { strategy: 'auto', dockerfile: 'Dockerfile', args: [], env: [] },
    image: `${registry.host}/apps/lab`,
    push: `${registry.host}/apps/lab`,
    plainHosts: [registry.host],
    mirror: registry.host,
    limits,
  });
  const daemon = await startDaemon(input, paths);
  const env = { PATH: process.env['PATH'] ?? '', HOME: root, DOCKER_CONFIG: registry.dockerConfig };
  return {
    build: async (context, args) => {
      const built = await run(
        'buildctl',
        [
          '--addr',
          daemon.address,
          'build',
          '--progress=plain',
          '--frontend=dockerfile.v0',
          `--local=context=${context}`,
          `--local=dockerfile=${context}`,
          ...args,
        ],
        { env },
      );
      if (built.code !== 0) throw new Error(`buildctl: ${built.stderr.slice(-3000)}`);
      return built.stderr;
    },
    stop: async () => {
      await daemon[Symbol.asyncDispose]();
    },
  };
}
