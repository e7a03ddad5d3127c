// Stage 3: checks the Dockerfile, builds the image and pushes it by digest.
import { mkdir, readFile, statfs, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { z } from 'zod';
import type { Finding } from '../../../crds/hosted-app.ts';
import { buildChildEnvironment, OutputTail, run } from '../../../lib/child-process.ts';
import { type WorkspacePaths, type BuildResult, Fault, NotReached, type PipelineInput, Rejected } from '../contract.ts';
import { hasPassed, type PlanNotes, readNotes } from '../handover.ts';
import { mergeManifest } from '../app-manifest.ts';
import { formatFinding } from '../message.ts';
import { parseReport } from '../plan/build-warnings.ts';
import { keepHead, keepTail, toOneLine } from '../text.ts';
import { readDiskTree } from '../tree.ts';
import {
  buildMetadata,
  type Daemon,
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

const maximumLogBytes = 8 * 1024 * 1024;
const dockerfileBytes = 512 * 1024;

export interface BuildTools {
  /** Grants access to this app's repositories at the registry proxy. */
  readonly pushToken?: string | undefined;
  readonly printLine: (line: string) => void;
  /** Where the build log goes. */
  readonly write: (chunk: Buffer) => void;
  readonly signal?: AbortSignal;
}

/** @throws Rejected for what the author can fix, Fault for registry, network and daemon. */
export async function build(baseInput: PipelineInput, paths: WorkspacePaths, tools: BuildTools): Promise<BuildResult> {
  // Clone and review may still be running. Nothing from the author is run or read until the review has passed.
  await using daemon = await startDaemon(baseInput, paths, tools.signal);
  if (!(await hasPassed(paths, 'review', tools.signal)))
    throw new NotReached('the review did not pass, so nothing is built');
  const [{ time }, notes] = [await readNotes(paths.notes, 'clone'), await readNotes(paths.notes, 'plan')];
  const { input, settings } = mergeManifest(baseInput, readDiskTree(paths.source));
  const policyFile = join(paths.notes, 'source-policy.json');
  await writeFile(policyFile, formatSourcePolicy(input));
  const solve: Solve = {
    input,
    notes,
    time,
    cache: await chooseCache(input, tools.pushToken),
    policyFile,
    address: daemon.address,
    metadataFile: toMetadataPath(paths.notes),
    environment: await createClientEnvironment(
      parseRegistryHost(input.push),
      tools.pushToken,
      join(paths.builder, 'client'),
    ),
  };
  const findings = await solveAndLint(solve, paths, tools);
  await fillSmallerCache(solve, tools);
  const metadata = buildMetadata.parse(JSON.parse(await readFile(solve.metadataFile, 'utf8')));
  const config = notes.authored ? await readBuiltConfig(daemon, metadata['containerimage.config.digest']) : undefined;
  const port = notes.authored ? findExposedPort(config) : notes.plan.port;
  const disks = new Set((settings?.run?.volumes ?? []).map(({ path }) => path));
  for (const each of warnAboutVolumes(config, relative(paths.source, notes.dockerfile), disks)) {
    tools.printLine(formatFinding(each));
    findings.push(each);
  }
  return {
    image: `${input.image}@${metadata['containerimage.digest']}`,
    findings,
    ...(port === undefined ? {} : { port }),
  };
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
async function fillSmallerCache(solve: Solve, tools: BuildTools): Promise<void> {
  const smaller = await chooseSmallerCache(solve.input, solve.cache, tools.pushToken);
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
  const findings = readLint(checked.stdout, relative(paths.source, solve.notes.dockerfile));
  for (const each of findings) tools.printLine(formatFinding(each));
  const [first, ...more] = findings.filter((each) => each.severity === 'error');
  // The build judges an image that cannot be resolved, because it can distinguish an outage from an author's error.
  if (first !== undefined && !/resolve source metadata|failed to (?:authorize|fetch|do request)/.test(first.message))
    throw new Rejected([first, ...more]);
  return findings.filter((each) => each.severity === 'warning');
}

async function solveImage(solve: Solve, paths: WorkspacePaths, tools: BuildTools, reports: StepReports): Promise<void> {
  const log = new BuildLog(tools.write, maximumLogBytes);
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
    dockerfile: (await readFile(solve.notes.dockerfile, 'utf8')).slice(0, dockerfileBytes),
    ...toAuthored(solve.notes, paths),
    doubted: solve.input.doubted,
    lacksDisk: await isDiskLow(solve.input, paths),
    ...((await isMirrorUp(solve.input)) ? { mirrored: solve.input.mirrorOf } : {}),
  });
}

function toAuthored(notes: PlanNotes, paths: WorkspacePaths): { authored?: string } {
  return notes.authored ? { authored: relative(paths.source, notes.dockerfile) } : {};
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

async function readBuiltConfig(daemon: Daemon, digest: string | undefined): Promise<unknown> {
  return digest === undefined ? undefined : readImageConfig(daemon.root, digest);
}

const imageConfig = z.object({
  config: z
    .object({
      ExposedPorts: z.record(z.string(), z.unknown()).nullish(),
      Volumes: z.record(z.string(), z.unknown()).nullish(),
    })
    .nullish(),
});

/** Ports that HTTP is most often served on, most likely first. */
const likelyPorts = [8080, 8000, 3000, 80, 5000, 8501, 7860, 8888, 4000, 5173];

/**
 * Returns the TCP port that an image exposes, or the most likely HTTP port if there are several; undefined if it
 * exposes none.
 */
export function findExposedPort(config: unknown): number | undefined {
  const parsed = imageConfig.safeParse(config);
  const ports = Object.keys(parsed.data?.config?.ExposedPorts ?? {})
    .flatMap((each) => {
      const match = /^(\d{1,5})(?:\/tcp)?$/.exec(each);
      const port = Number(match?.[1] ?? 0);
      return port >= 1 && port <= 65_535 ? [port] : [];
    })
    .sort((one, other) => one - other);
  return likelyPorts.find((each) => ports.includes(each)) ?? ports[0];
}

/**
 * Warns about volumes that an image declares and that get no disk. Nodes do not create them, because nothing would
 * limit what is written there. `disks`: the paths where the app has one.
 */
export function warnAboutVolumes(config: unknown, file: string, disks: ReadonlySet<string>): Finding[] {
  const declaredVolumes = Object.keys(imageConfig.safeParse(config).data?.config?.Volumes ?? {});
  const volumes = declaredVolumes.filter((path) => !disks.has(path.replace(/(?!^)\/+$/, '')));
  if (volumes.length === 0) return [];
  const volumeList = keepHead(toOneLine(volumes.join(', ')), 200);
  return [
    {
      rule: 'dockerfile/volume',
      severity: 'warning',
      file,
      message: `VOLUME (${volumeList}) has no effect: files written there go to the app's temporary disk, and a folder that is missing in the image is not created.`,
      fix: 'Create the folder in the Dockerfile (RUN mkdir -p …); for persistent data, add a volume (run.volumes in moorage.yaml).',
    },
  ];
}

/** Reads an image's configuration from buildkitd's store, by digest. */
async function readImageConfig(root: string, digest: string): Promise<unknown> {
  const file = join(root, 'runc-overlayfs', 'content', 'blobs', 'sha256', digest.replace(/^sha256:/, ''));
  return JSON.parse(await readFile(file, 'utf8')) as unknown;
}

/** User name for token authentication; the proxy ignores it. */
const registryUser = 'moorage';

/** Builds the environment of buildctl, with a separate folder for the token. */
export async function createClientEnvironment(
  host: string,
  token: string | undefined,
  folder: string,
): Promise<Record<string, string>> {
  if (token === undefined) return buildChildEnvironment();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const auth = Buffer.from(`${registryUser}:${token}`).toString('base64');
  await writeFile(join(folder, 'config.json'), JSON.stringify({ auths: { [host]: { auth } } }), { mode: 0o600 });
  return { ...buildChildEnvironment(), DOCKER_CONFIG: folder };
}

/** Transfer progress, and the cache that a first build does not have yet: of no use to an author. */
const chatter = [
  /^#\d+ (?:sha256:|extracting sha256:|resolve |transferring |writing |preparing |sending cache|pushing |exporting (?:layers|manifest|config|attestation))/,
  /^#\d+ (?:\.\.\.$|\[auth\] |importing cache manifest |ERROR: failed to configure registry cache importer)/,
  /^ > importing cache manifest |^------$/,
];
const maximumHeld = 64 * 1024;

export class BuildLog {
  readonly #write: (chunk: Buffer) => void;
  readonly #limit: number;
  readonly #tail = new OutputTail(256 * 1024);
  #held = Buffer.alloc(0);
  #passed = 0;
  #cut = false;

  constructor(write: (chunk: Buffer) => void, limit: number) {
    this.#write = write;
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    this.#tail.add(chunk);
    const text = Buffer.concat([this.#held, chunk]);
    const end = text.length > maximumHeld ? text.length : text.lastIndexOf('\n') + 1;
    this.#held = text.subarray(end);
    this.#pass(text.subarray(0, end));
  }

  /** Flushes the last, partial line. @returns the end of the log, including lines that were filtered out */
  end(): string {
    this.#pass(this.#held);
    this.#held = Buffer.alloc(0);
    return this.#tail.toText();
  }

  #pass(lines: Buffer): void {
    if (lines.length === 0) return;
    const output = Buffer.from(
      lines
        .toString('latin1')
        .split(/(?<=\n)/)
        .filter((line) => !chatter.some((each) => each.test(line.trimEnd())))
        .join(''),
      'latin1',
    );
    const room = this.#limit - this.#passed;
    if (room > 0 && output.length > 0) this.#write(output.length > room ? output.subarray(0, room) : output);
    this.#passed += Math.min(room, output.length);
    if (output.length <= room || this.#cut) return;
    this.#cut = true;
    this.#write(Buffer.from(`\n[the log is longer than ${this.#limit} bytes; the rest is not shown]\n`));
  }
}

const maximumLineLength = 4_096;
const maximumReports = 5;

/** Collects step reports from log chunks. Keeps the first of each kind. */
export class StepReports {
  readonly #found = new Map<string, Finding>();
  #held = '';

  add(chunk: Buffer): void {
    const lines = (this.#held + chunk.toString('latin1')).split('\n');
    this.#held = (lines.pop() ?? '').slice(0, maximumLineLength);
    for (const line of lines) {
      const finding = parseReport(line.trimEnd());
      if (finding !== undefined && this.#found.size < maximumReports && !this.#found.has(finding.rule))
        this.#found.set(finding.rule, finding);
    }
  }

  get findings(): Finding[] {
    return [...this.#found.values()];
  }
}
