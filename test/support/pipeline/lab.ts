// Runs the pipeline's stages as a pod would: one process each, input by environment, result by termination message and
// exit code.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startDaemon } from '../../../controller/pipeline/build/buildkit.ts';
import {
  pipelineInput,
  type PipelineInput,
  terminationMessageLimit,
  toWorkspacePaths,
} from '../../../controller/pipeline/contract.ts';
import { formatImageRepository, type PipelineContainer } from '../../../crds/names.ts';
import { stageMessage, type StageMessage } from '../../../controller/pipeline/message.ts';
import { run } from '../../../lib/child-process.ts';
import { fillRegistry, ordinaryImages, addProgramsToPath, startRegistry, type TestRegistry } from './registry.ts';
import { serveRepositories, type Repositories, type Repository, type RepositoryContent } from './repositories.ts';

const main = join(import.meta.dirname, '..', '..', '..', 'controller', 'pipeline', 'main.ts');

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

export interface Lab {
  readonly registry: TestRegistry;
  readonly repositories: Repositories;
  pod(repository: Repository, input?: Partial<PipelineInput>): Promise<Pod>;
  /** Takes a repository of this content through its whole pipeline, as the app of that name. */
  through(app: string, content: RepositoryContent, input?: Partial<PipelineInput>): Promise<StageEnd>;
  /** Builds a Dockerfile beside the pipeline, on a daemon that may pull what was pushed. Gives all that it printed. */
  buildBeside(dockerfile: string): Promise<string>;
  /** Puts a further base image of the catalog into the registry, after those that it starts from. */
  addImage(name: string): Promise<void>;
  stop(): Promise<void>;
}

/** UID of every app in the lab. */
export const labUid = '0a1b2c3d-0000-4000-8000-000000000000';

export const limits = { repositoryBytes: 50_000_000, files: 500, fileBytes: 10_000_000 };

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
  const child = spawn(process.execPath, [main, name], {
    env: {
      PATH: process.env['PATH'] ?? '',
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

/** A pod without a registry: enough for clone and review. */
export async function makePod(
  repository: Repository,
  input: Partial<PipelineInput> = {},
  registry?: TestRegistry,
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
    ...input,
  });
  const stage: Pod['stage'] = (name, variables) => runStage(name, whole, root, registry, variables);
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
  const registry = await startRegistry();
  const repositories = await serveRepositories();
  const root = await mkdtemp(join(tmpdir(), 'moorage-lab-'));
  const paths = toWorkspacePaths(join(root, 'workspace'), join(root, 'buildkit'));
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
  await run('mkdir', ['-p', paths.notes], { env: {} });
  const daemon = await startDaemon(input, paths);
  const env = { PATH: process.env['PATH'] ?? '', HOME: root, DOCKER_CONFIG: registry.dockerConfig };
  const buildctl = async (context: string, args: readonly string[]): Promise<string> => {
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
  };
  const addImages = (names: readonly string[]): Promise<void> =>
    fillRegistry(registry, names, async (context, args) => {
      await buildctl(context, args);
    });
  await addImages(ordinaryImages);
  return {
    registry,
    repositories,
    addImage: (name) => addImages([name]),
    pod: (repository, more = {}) => makePod(repository, more, registry),
    through: async (app, content, more = {}) => {
      const pod = await makePod(await repositories.add(app, content), { app, ...more }, registry);
      try {
        const ended = await pod.upTo('build');
        assert.ok(ended.messageBytes <= terminationMessageLimit);
        return ended;
      } finally {
        await pod.remove();
      }
    },
    buildBeside: async (dockerfile) => {
      const context = await mkdtemp(join(root, 'context-'));
      await writeFile(join(context, 'Dockerfile'), dockerfile);
      return buildctl(context, ['--no-cache']);
    },
    stop: async () => {
      await daemon[Symbol.asyncDispose]();
      await repositories.stop();
      await registry.stop();
      await rm(root, { recursive: true, force: true });
    },
  };
}
