// Stage 3: checks the Dockerfiles, builds the images and pushes them by digest.
import { mkdir, readFile, statfs, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { ReportedSettings } from '../../../crds/app-manifest.ts';
import type { Finding } from '../../../crds/hosted-app.ts';
import { buildChildEnvironment, run } from '../../../lib/child-process.ts';
import { omitUndefined } from '../../../lib/values.ts';
import { mergeManifest } from '../app-manifest.ts';
import { listImages, nameComponent, nameImage } from '../components.ts';
import {
  type WorkspacePaths,
  type BuildResult,
  DoubtfulFault,
  Fault,
  NotReached,
  type PipelineComponent,
  type PipelineInput,
  Rejected,
  Unprepared,
} from '../contract.ts';
import { hasPassed, type PlanNotes, readNotes } from '../handover.ts';
import { formatFinding } from '../message.ts';
import { assignPorts } from '../ports.ts';
import { keepTail, toOneLine } from '../text.ts';
import { readDiskTree } from '../tree.ts';
import { findUnpreparedImages } from './base-images.ts';
import { BuildLog, StepReports } from './build-log.ts';
import {
  buildMetadata,
  type Daemon,
  encodeRegistryLogin,
  formatSourcePolicy,
  parseRegistryHost,
  startDaemon,
  readLint,
  buildCacheArguments,
  buildImageArguments,
  buildLintArguments,
  chooseCache,
  chooseSmallerCache,
  type Solve,
  toMetadataPath,
} from './buildkit.ts';
import { judgeFailure } from './failure.ts';
import { findExposedPort, readBuiltConfig, readPushedConfig, warnAboutVolumes } from './image-config.ts';
import { computeSourceHash, createPathHasher } from './source-hash.ts';

const maximumLogBytes = 8 * 1024 * 1024;
const dockerfileBytes = 512 * 1024;

export interface BuildTools {
  /** Grants access to this app's repositories at the registry proxy. */
  readonly pushToken?: string | undefined;
  readonly printLine: (line: string) => void;
  /** Where the build log goes. */
  readonly write: (chunk: Buffer) => void;
  /** Begins each line of the build log; absent: nothing. */
  readonly prefix?: string;
  readonly signal?: AbortSignal;
}

/** An image to build, or to take over. */
interface ImageBuild {
  readonly component: PipelineComponent | undefined;
  readonly input: PipelineInput;
  readonly notes: PlanNotes;
  readonly sourceHash?: string;
  /** The image of an earlier build that was built from the same, and its configuration. */
  readonly unchanged?: { readonly image: string; readonly config: object };
}

/** An image in the registry. */
interface FinishedImage extends ImageBuild {
  /** Name with digest. */
  readonly image: string;
  /** Port that it exposes or that its plan chose. */
  readonly port: number | undefined;
  readonly findings: readonly Finding[];
}

/** @throws Rejected for what the author can fix, Fault for registry, network and daemon. */
export async function build(baseInput: PipelineInput, paths: WorkspacePaths, tools: BuildTools): Promise<BuildResult> {
  // Clone and review may still be running. Nothing from the author is run or read until the review has passed.
  await using daemon = await startDaemon(baseInput, paths, tools.signal);
  if (!(await hasPassed(paths, 'review', tools.signal)))
    throw new NotReached('the review did not pass, so nothing is built');
  const { package: registry } = await readNotes(paths.notes, 'clone');
  const { input, settings } = mergeManifest(baseInput, readDiskTree(paths.source, { registry }));
  const builds = await prepareBuilds(input, paths, tools);
  const unprepared = await Promise.all(
    builds.map(async ({ unchanged, input: own, notes }) =>
      unchanged === undefined ? findUnpreparedImages(own, await readDockerfile(notes), tools.pushToken) : [],
    ),
  );
  if (unprepared.flat().length > 0) throw new Unprepared([...new Set(unprepared.flat())].slice(0, maximumUnprepared));
  const shared = await prepareSolves(input, daemon, paths, tools);
  const finished = await buildAll(builds, countParallel(input), tools, (each, imageTools) =>
    makeImage(each, shared, paths, imageTools, settings),
  );
  return toResult(input, finished);
}

const maximumUnprepared = 20;

/** Reads what to build, and finds the images of earlier builds that can be taken over. */
async function prepareBuilds(input: PipelineInput, paths: WorkspacePaths, tools: BuildTools): Promise<ImageBuild[]> {
  const [{ time }, { images }] = [await readNotes(paths.notes, 'clone'), await readNotes(paths.notes, 'plan')];
  const hash = createPathHasher();
  return Promise.all(
    listImages(input).map(async (image): Promise<ImageBuild> => {
      const notes = images.find(({ name }) => name === nameImage(image.component));
      if (notes === undefined) throw new Fault(`the review left no plan for ${nameImage(image.component)}`);
      const common = { component: image.component, input: image.input, notes };
      if (image.component === undefined) return common;
      const sourceHash = await computeSourceHash({ ...common, time }, hash, tools.pushToken);
      const unchanged = await findUnchanged(image.input, sourceHash, tools.pushToken);
      return { ...common, sourceHash, ...(unchanged === undefined ? {} : { unchanged }) };
    }),
  );
}

/** Finds an image that was built from the same and is still in the registry. */
async function findUnchanged(
  input: PipelineInput,
  sourceHash: string,
  token: string | undefined,
): Promise<ImageBuild['unchanged']> {
  const built = (input.builtImages ?? []).find((each) => each.sourceHash === sourceHash);
  const [name, digest = ''] = built?.image.split('@') ?? [];
  if (built === undefined || name !== input.image) return undefined;
  const config = await readPushedConfig(input, digest, token);
  return config === undefined ? undefined : { image: built.image, config };
}

type SharedSolve = Pick<Solve, 'time' | 'policyFile' | 'address' | 'environment'> & { readonly builder: string };

async function prepareSolves(
  input: PipelineInput,
  daemon: Daemon,
  paths: WorkspacePaths,
  { pushToken }: BuildTools,
): Promise<SharedSolve> {
  const { time } = await readNotes(paths.notes, 'clone');
  const policyFile = join(paths.notes, 'source-policy.json');
  await writeFile(policyFile, formatSourcePolicy(input));
  const host = parseRegistryHost(input.push);
  return {
    time,
    policyFile,
    address: daemon.address,
    environment: await createClientEnvironment(host, pushToken, join(paths.builder, 'client')),
    builder: daemon.root,
  };
}

/** Memory that one build of several is given at least: two fit into the usual limit. */
const memoryPerBuild = 2 * 1024 ** 3;

function countParallel({ memoryBytes }: PipelineInput): number {
  return Math.max(1, Math.floor((memoryBytes ?? 0) / memoryPerBuild));
}

/** Builds at most `parallel` images at the same time. The first failure ends the others. */
async function buildAll(
  builds: readonly ImageBuild[],
  parallel: number,
  tools: BuildTools,
  finish: (each: ImageBuild, tools: BuildTools) => Promise<FinishedImage>,
): Promise<FinishedImage[]> {
  const failed = new AbortController();
  const signal = AbortSignal.any([failed.signal, ...(tools.signal === undefined ? [] : [tools.signal])]);
  const finished = new Map<ImageBuild, FinishedImage>();
  const waiting = builds.values();
  const work = async (): Promise<void> => {
    for (const each of waiting) {
      if (failed.signal.aborted) return;
      try {
        finished.set(each, await finish(each, { ...nameLines(tools, each), signal }));
      } catch (error) {
        // Only the first call has an effect: the others fail because they are ended.
        failed.abort(nameError(error, each.component?.name));
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(parallel, builds.length) }, work));
  failed.signal.throwIfAborted();
  return builds.flatMap((each) => finished.get(each) ?? []);
}

/** Lines of several builds arrive mixed, so each begins with the name of its component. */
function nameLines(tools: BuildTools, { component }: ImageBuild): BuildTools {
  if (component === undefined) return tools;
  return {
    ...tools,
    prefix: `${component.name} | `,
    printLine: (line) => {
      tools.printLine(`${component.name} | ${line}`);
    },
  };
}

function nameError(error: unknown, component: string | undefined): unknown {
  if (component === undefined) return error;
  if (error instanceof Rejected) {
    const [first, ...more] = error.findings;
    const name = (finding: Finding): Finding => nameComponent(finding, component);
    return new Rejected([name(first), ...more.map(name)], error.log);
  }
  const message = `component ${component}: ${error instanceof Error ? error.message : String(error)}`;
  if (error instanceof DoubtfulFault) return new DoubtfulFault(message);
  return error instanceof Fault ? new Fault(message) : error;
}

/** Builds and pushes an image, or takes over the one of an earlier build. */
async function makeImage(
  each: ImageBuild,
  { builder, ...shared }: SharedSolve,
  paths: WorkspacePaths,
  tools: BuildTools,
  settings: ReportedSettings | undefined,
): Promise<FinishedImage> {
  const { component, input, notes, unchanged } = each;
  const solve: Solve = {
    ...{ ...shared, input, notes },
    cache: unchanged === undefined ? await chooseCache(input, component?.name, tools.pushToken) : undefined,
    metadataFile: toMetadataPath(paths.notes, notes.name),
  };
  if (unchanged !== undefined) {
    tools.printLine('unchanged since the build before: its image is taken over');
    // An author sees the same warnings as when it was built. Errors would have kept it from being built.
    const findings = notes.authored ? await lintDockerfile(solve, paths, tools).catch(() => []) : [];
    const volumes = notes.authored ? reportVolumes(unchanged.config, each, paths, tools, settings) : [];
    return { ...each, ...describeImage(each, unchanged.image, unchanged.config), findings: [...findings, ...volumes] };
  }
  const findings = await solveAndLint(solve, paths, tools);
  await fillSmallerCache(solve, component?.name, tools);
  const metadata = buildMetadata.parse(JSON.parse(await readFile(solve.metadataFile, 'utf8')));
  const config = notes.authored ? await readBuiltConfig(builder, metadata['containerimage.config.digest']) : undefined;
  return {
    ...each,
    ...describeImage(each, `${input.image}@${metadata['containerimage.digest']}`, config),
    findings: [...findings, ...reportVolumes(config, each, paths, tools, settings)],
  };
}

function describeImage({ notes }: ImageBuild, image: string, config: unknown): Pick<FinishedImage, 'image' | 'port'> {
  return { image, port: notes.authored && notes.bridge !== true ? findExposedPort(config) : notes.plan.port };
}

function reportVolumes(
  config: unknown,
  { component, notes }: ImageBuild,
  paths: WorkspacePaths,
  { printLine }: BuildTools,
  settings: ReportedSettings | undefined,
): Finding[] {
  const volumes =
    component === undefined
      ? settings?.run?.volumes
      : settings?.components
          ?.filter(({ name, image = name }) => image === component.name)
          .flatMap((own) => own.volumes ?? []);
  const disks = new Set((volumes ?? []).map(({ path }) => path));
  const findings = warnAboutVolumes(config, nameDockerfile(notes, paths), disks);
  for (const finding of findings) printLine(formatFinding(finding));
  return findings;
}

/** @throws Rejected if two components listen on the same port */
function toResult({ components = [] }: PipelineInput, finished: readonly FinishedImage[]): BuildResult {
  const [only] = finished;
  if (only === undefined) throw new Fault('nothing was built');
  const findings = finished.flatMap((each) =>
    each.findings.map((finding) => nameComponent(finding, each.component?.name)),
  );
  if (only.component === undefined)
    return { image: only.image, findings, ...(only.port === undefined ? {} : { port: only.port }) };
  const byName = new Map(finished.map((each) => [each.notes.name, each]));
  const { ports, conflict } = assignPorts(
    components,
    new Map(finished.map(({ notes, port }) => [notes.name, { port, isMovable: notes.isPortMovable }])),
  );
  if (conflict !== undefined) throw new Rejected([conflict]);
  const images = components.map(({ name, imageOf }) => {
    const own = byName.get(imageOf);
    if (own === undefined) throw new Fault(`no image was built for ${name}`);
    return omitUndefined({ name, image: own.image, port: ports.get(name), sourceHash: own.sourceHash });
  });
  const main = images.find(({ name }) => components.some((each) => each.isMain && each.name === name)) ?? images[0];
  return omitUndefined({ image: main?.image ?? only.image, port: main?.port, components: images, findings });
}

/**
 * Lints while the image builds, because most Dockerfiles pass. A lint error aborts the build and takes precedence over
 * its result.
 */
async function solveAndLint(solve: Solve, paths: WorkspacePaths, tools: BuildTools): Promise<Finding[]> {
  const refused = new AbortController();
  const signal = AbortSignal.any([refused.signal, ...(tools.signal === undefined ? [] : [tools.signal])]);
  const checked = solve.notes.authored ? lintDockerfile(solve, paths, tools) : Promise.resolve([]);
  checked.catch((error: unknown) => {
    refused.abort(error);
  });
  const reports = new StepReports();
  const [built, findings] = await Promise.allSettled([
    solveImage(solve, paths, { ...tools, signal }, reports),
    checked,
  ]);
  if (findings.status === 'rejected') throw findings.reason;
  if (built.status === 'rejected') throw built.reason;
  // Any step can print a marked line, so these reports are trusted only if every step is ours.
  const reported = solve.notes.authored ? [] : reports.findings;
  for (const each of reported) tools.printLine(formatFinding(each));
  return [...findings.value, ...reported];
}

/**
 * If the cache of all steps has grown too large, fills one with only the image's layers, which takes no extra space.
 * The current build is not affected.
 */
async function fillSmallerCache(solve: Solve, component: string | undefined, tools: BuildTools): Promise<void> {
  const smaller = await chooseSmallerCache(solve.input, component, solve.cache, tools.pushToken);
  if (smaller === undefined) return;
  tools.printLine(
    'The cache of all steps is larger than this installation keeps; from now on, the layers of the image are.',
  );
  await run('buildctl', buildCacheArguments(solve, smaller), {
    env: solve.environment,
    ...(tools.signal === undefined ? {} : { signal: tools.signal }),
  });
}

/** Lint errors are final. If the lint itself fails, it returns no findings and the build decides. */
async function lintDockerfile(solve: Solve, paths: WorkspacePaths, tools: BuildTools): Promise<Finding[]> {
  const checked = await run('buildctl', buildLintArguments(solve), {
    env: solve.environment,
    ...(tools.signal === undefined ? {} : { signal: tools.signal }),
  });
  if (checked.code !== 0) return [];
  const findings = readLint(checked.stdout, nameDockerfile(solve.notes, paths));
  for (const each of findings) tools.printLine(formatFinding(each));
  const [first, ...more] = findings.filter((each) => each.severity === 'error');
  // The build judges an image that cannot be resolved, because it can distinguish an outage from an author's error.
  if (first !== undefined && !/resolve source metadata|failed to (?:authorize|fetch|do request)/.test(first.message))
    throw new Rejected([first, ...more]);
  return findings.filter((each) => each.severity === 'warning');
}

async function solveImage(solve: Solve, paths: WorkspacePaths, tools: BuildTools, reports: StepReports): Promise<void> {
  const log = new BuildLog(tools.write, maximumLogBytes, tools.prefix);
  const add = (chunk: Buffer): void => {
    log.add(chunk);
    reports.add(chunk);
  };
  const built = await run('buildctl', buildImageArguments(solve), {
    env: solve.environment,
    onStdout: add,
    onStderr: add,
    keepBytes: 64 * 1024,
    ...(tools.signal === undefined ? {} : { signal: tools.signal }),
  });
  const output = log.end();
  if (built.code === 0) return;
  if (built.code === null)
    throw new Fault(`buildctl was terminated by ${built.signal ?? 'a signal'}: ${toOneLine(keepTail(output, 300))}`);
  throw judgeFailure({
    output,
    dockerfile: await readDockerfile(solve.notes),
    ...toAuthored(solve.notes, paths),
    doubted: solve.input.doubted,
    lacksDisk: await isDiskLow(solve.input, paths),
    ...((await isMirrorUp(solve.input)) ? { mirrored: solve.input.mirrorOf } : {}),
  });
}

async function readDockerfile({ dockerfile }: Pick<PlanNotes, 'dockerfile'>): Promise<string> {
  return (await readFile(dockerfile, 'utf8')).slice(0, dockerfileBytes);
}

function toAuthored(notes: Solve['notes'], paths: WorkspacePaths): { authored?: string } {
  return notes.authored ? { authored: nameDockerfile(notes, paths) } : {};
}

/** Path of the author's file, for messages: an extended one has the same lines. */
function nameDockerfile(
  { dockerfile, extended = dockerfile }: Pick<PlanNotes, 'dockerfile' | 'extended'>,
  { source }: WorkspacePaths,
): string {
  return relative(source, extended);
}

async function isDiskLow({ diskBytes }: PipelineInput, { builder }: WorkspacePaths): Promise<boolean> {
  if (diskBytes === undefined) return false;
  const { bavail, bsize } = await statfs(builder);
  return bavail * bsize < diskBytes;
}

/** Returns whether the mirror responds. Only then does a missing image not exist, rather than being unreachable. */
async function isMirrorUp(input: PipelineInput): Promise<boolean> {
  if (input.mirror === undefined) return false;
  const protocol = input.plainHosts.includes(input.mirror) ? 'http' : 'https';
  try {
    const answer = await fetch(`${protocol}://${input.mirror}/v2/`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(10_000),
    });
    await answer.body?.cancel();
    return answer.status < 500;
  } catch {
    return false;
  }
}

/** Builds the environment of buildctl, with a separate folder for the token. */
export async function createClientEnvironment(
  host: string,
  token: string | undefined,
  folder: string,
): Promise<Record<string, string>> {
  if (token === undefined) return buildChildEnvironment();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const auth = encodeRegistryLogin(token);
  await writeFile(join(folder, 'config.json'), JSON.stringify({ auths: { [host]: { auth } } }), { mode: 0o600 });
  return { ...buildChildEnvironment(), DOCKER_CONFIG: folder };
}
