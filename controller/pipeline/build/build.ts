// Stage 3: checks the Dockerfile, builds the image and pushes it by digest.
import { readFile, statfs, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { Finding } from '../../../crds/hosted-app.ts';
import type { BuildResult, PipelineInput } from '../contract.ts';
import { readNotes, type PlanNotes } from '../notes.ts';
import { Fault, NotReached, Rejected } from '../outcome.ts';
import { run } from '../process.ts';
import { hasPassed } from '../gate.ts';
import { findingLine } from '../finding-line.ts';
import { mergeManifest } from '../manifest/merge.ts';
import type { WorkspacePaths } from '../config.ts';
import { oneLine, tail } from '../text.ts';
import { diskTree } from '../tree.ts';
import { BuildLog } from './build-log.ts';
import { startDaemon, type Daemon } from './daemon.ts';
import { clientEnvironment } from './credentials.ts';
import { buildMetadata, registryHost, sourcePolicy } from './daemon-config.ts';
import { judgeFailure } from './failure.ts';
import { exposedPort, readImageConfig, volumeWarning } from './image-config.ts';
import { readLint } from './lint.ts';
import { StepReports } from './reports.ts';
import { chooseCache, smallerCache } from './layer-cache.ts';
import { buildArguments, cacheArguments, lintArguments, metadataPath, type Solve } from './solve.ts';

const maximumLogBytes = 8 * 1024 * 1024;
const dockerfileBytes = 512 * 1024;

export interface BuildTools {
  /** Opens the repositories of this app at the registry proxy. */
  readonly pushToken?: string | undefined;
  readonly say: (line: string) => void;
  /** Where the build log goes. */
  readonly write: (chunk: Buffer) => void;
  readonly signal?: AbortSignal;
}

/** @throws Rejected for what the author can fix, Fault for registry, network and daemon. */
export async function build(asked: PipelineInput, paths: WorkspacePaths, tools: BuildTools): Promise<BuildResult> {
  // Clone and review are still at work beside this; nothing of the author's is run, or read, before it has passed.
  await using daemon = await startDaemon(asked, paths, tools.signal);
  if (!(await hasPassed(paths, 'review', tools.signal)))
    throw new NotReached('the review did not pass, so nothing is built');
  const [{ time }, notes] = [await readNotes(paths.notes, 'clone'), await readNotes(paths.notes, 'plan')];
  const { input, settings } = mergeManifest(asked, diskTree(paths.source));
  const policyFile = join(paths.notes, 'source-policy.json');
  await writeFile(policyFile, sourcePolicy(input));
  const solve: Solve = {
    input,
    notes,
    time,
    cache: await chooseCache(input, tools.pushToken),
    policyFile,
    address: daemon.address,
    metadataFile: metadataPath(paths.notes),
    environment: await clientEnvironment(registryHost(input.push), tools.pushToken, join(paths.builder, 'client')),
  };
  const findings = await solveAndLint(solve, paths, tools);
  await fillSmallerCache(solve, tools);
  const metadata = buildMetadata.parse(JSON.parse(await readFile(solve.metadataFile, 'utf8')));
  const config = notes.authored ? await configOf(daemon, metadata['containerimage.config.digest']) : undefined;
  const port = notes.authored ? exposedPort(config) : notes.plan.port;
  const disks = new Set((settings?.run?.volumes ?? []).map(({ path }) => path));
  for (const each of volumeWarning(config, relative(paths.source, notes.dockerfile), disks)) {
    tools.say(findingLine(each));
    findings.push(each);
  }
  return {
    image: `${input.image}@${metadata['containerimage.digest']}`,
    findings,
    ...(port === undefined ? {} : { port }),
  };
}

/**
 * Checks while it builds: most Dockerfiles are sound. What the checks refuse ends the build, and counts more than how
 * that ended.
 */
async function solveAndLint(solve: Solve, paths: WorkspacePaths, tools: BuildTools): Promise<Finding[]> {
  const refused = new AbortController();
  const signal = AbortSignal.any([refused.signal, ...(tools.signal === undefined ? [] : [tools.signal])]);
  const checked = solve.notes.authored ? lint(solve, paths, tools) : Promise.resolve([]);
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
  // Anybody can print a marked line; only of the steps that we wrote it is taken for what they mean.
  const reported = solve.notes.authored ? [] : reports.findings;
  for (const each of reported) tools.say(findingLine(each));
  return [...findings.value, ...reported];
}

/** A cache that has grown too large is given up for one that takes no space of its own; the build is none the worse. */
async function fillSmallerCache(solve: Solve, tools: BuildTools): Promise<void> {
  const smaller = await smallerCache(solve.input, solve.cache, tools.pushToken);
  if (smaller === undefined) return;
  tools.say('The cache of all steps is larger than this installation keeps; from now on, the layers of the image are.');
  await run('buildctl', cacheArguments(solve, smaller), {
    env: solve.environment,
    ...(tools.signal === undefined ? {} : { signal: tools.signal }),
  });
}

/** Checks that say an error are final; a check that cannot be made says nothing, for the build decides. */
async function lint(solve: Solve, paths: WorkspacePaths, tools: BuildTools): Promise<Finding[]> {
  const checked = await run('buildctl', lintArguments(solve), {
    env: solve.environment,
    ...(tools.signal === undefined ? {} : { signal: tools.signal }),
  });
  if (checked.code !== 0) return [];
  const findings = readLint(checked.stdout, relative(paths.source, solve.notes.dockerfile));
  for (const each of findings) tools.say(findingLine(each));
  const [first, ...more] = findings.filter((each) => each.severity === 'error');
  // An image that cannot be resolved is judged by the build, which knows a fault from an error.
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
  const built = await run('buildctl', buildArguments(solve), {
    env: solve.environment,
    onStdout: add,
    onStderr: add,
    keepBytes: 64 * 1024,
    ...(tools.signal === undefined ? {} : { signal: tools.signal }),
  });
  const output = log.end();
  if (built.code === 0) return;
  if (built.code === null)
    throw new Fault(`buildctl was terminated by ${built.signal ?? 'a signal'}: ${oneLine(tail(output, 300))}`);
  throw judgeFailure({
    output,
    dockerfile: (await readFile(solve.notes.dockerfile, 'utf8')).slice(0, dockerfileBytes),
    ...authored(solve.notes, paths),
    doubted: solve.input.doubted,
    lacksDisk: await lacksDisk(solve.input, paths),
    ...((await mirrorAnswers(solve.input)) ? { mirrored: solve.input.mirrorOf } : {}),
  });
}

function authored(notes: PlanNotes, paths: WorkspacePaths): { authored?: string } {
  return notes.authored ? { authored: relative(paths.source, notes.dockerfile) } : {};
}

async function lacksDisk({ diskBytes }: PipelineInput, { builder }: WorkspacePaths): Promise<boolean> {
  if (diskBytes === undefined) return false;
  const { bavail, bsize } = await statfs(builder);
  return bavail * bsize < diskBytes;
}

/** Whether the mirror is there at all: only then a missing image is missing and not out of reach. */
async function mirrorAnswers(input: PipelineInput): Promise<boolean> {
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

async function configOf(daemon: Daemon, digest: string | undefined): Promise<unknown> {
  return digest === undefined ? undefined : readImageConfig(daemon.root, digest);
}
