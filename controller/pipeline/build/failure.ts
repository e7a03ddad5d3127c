// Classifies the output of a failed build as the author's error or a platform fault.
import { posix } from 'node:path';
import type { Finding } from '../../../crds/hosted-app.ts';
import { debianImage, defaultNode, languages } from '../../../crds/languages.ts';
import { DoubtfulFault, Fault, Rejected } from '../contract.ts';
import { clean, keepHead, keepTail, toOneLine } from '../text.ts';
import { parseRegistryHost, type Excerpt, findExcerpt } from './buildkit.ts';
import { withoutGit } from './causes.ts';
import { isRegistryHiccup, suggestFix } from './fixes.ts';
import { shortenLog } from './step-log.ts';

const logBytes = 2_500;
const platformErrors =
  /failed to push|no space left on device|error (?:writing|exporting) (?:layer|cache)|failed to (?:authorize|fetch oauth token|configure registry cache)|exporting to image.*(?:unexpected status|dial tcp)|transport: |code = Unavailable|error reading from server|failed to (?:mount|prepare|create) .*(?:snapshot|overlay)|context (?:canceled|deadline exceeded)|runc did not terminate|unable to start container process: (?!exec:)/i;

/** Judges a failed build. @returns Rejected if the author can fix it, otherwise Fault */
export function judgeFailure(build: FailedBuild): Rejected | Fault {
  const output = clean(build.output);
  const error = toOneLine(keepTail(output.slice(output.lastIndexOf('\nerror: ') + 1), 1_500)).replace(/^error: /, '');
  const stepLog = readFailedStep(output);
  const fault =
    findFault(error, stepLog, output) ?? findDiskFault(error, stepLog, build) ?? findStagedFault(error, stepLog, build);
  if (fault !== undefined) return fault;
  const verdict =
    judgeBaseImage(error, build) ??
    judgeGitSource(error, build) ??
    judgeDockerfile(error, build, findExcerpt(output)) ??
    judgeStep(error, stepLog, build, findExcerpt(output));
  return verdict instanceof Fault
    ? verdict
    : new Rejected([verdict], shortenLog(stepLog === '' ? error : `${stepLog}\n${error}`, logBytes));
}

const isStepError = (error: string): boolean => error.includes('did not complete successfully');

/** Returns a platform fault that explains the failure; undefined if the author can fix it. */
function findFault(error: string, stepLog: string, output: string): Fault | undefined {
  if (!/failed to solve|dockerfile parse error/i.test(error))
    return new Fault(`the builder failed: ${toOneLine(keepTail(error === '' ? output : error, 500))}`);
  return !isStepError(error) && platformErrors.test(error)
    ? new Fault(`the builder failed: ${keepHead(error, 600)}`)
    : undefined;
}

/**
 * A build that exceeds its limit is evicted; it does not run out of disk. So if a step does run out, on a node with
 * less free disk than the build's limit, the node is full. A step could fake its output, but not the node's free space.
 */
function findDiskFault(error: string, stepLog: string, build: FailedBuild): Fault | undefined {
  if (build.lacksDisk !== true || !isStepError(error) || !/no space left on device|ENOSPC/i.test(stepLog))
    return undefined;
  return new Fault(`the disk of the node is full: ${toOneLine(keepTail(stepLog, 300))}`);
}

/**
 * Any step can print any text, so its output proves nothing. It is trusted once per commit, and only for steps that we
 * planned: an author's Dockerfile can print anything.
 */
function findStagedFault(error: string, stepLog: string, build: FailedBuild): Fault | undefined {
  const isBelieved = build.authored === undefined && build.doubted !== true;
  if (!isBelieved || !isStepError(error) || !isRegistryHiccup(stepLog)) return undefined;
  return new DoubtfulFault(`a package registry failed during the build: ${toOneLine(keepTail(stepLog, 400))}`);
}

/** Returns the lines of the failed step, without the progress prefix. */
function readFailedStep(output: string): string {
  const number = [...output.matchAll(/^#(\d+) ERROR: (?!failed to configure \w+ cache)/gm)].at(-1)?.[1];
  if (number === undefined) return '';
  return listStepLines(output, number)
    .map((line) => line.replace(/^\d+\.\d+ /, ''))
    .filter((line) => !/^(?:DONE|CACHED|\.\.\.$)/.test(line))
    .join('\n');
}

/** Lists what a step printed. A progress bar returns to the start of its line, so its output has no step number. */
function listStepLines(output: string, number: string): string[] {
  const lines: string[] = [];
  let current = '';
  for (const line of output.split('\n')) {
    const [, step, text = line] = /^#(\d{1,6}) (.*)$/.exec(line) ?? [];
    if (step !== undefined) current = text.startsWith('ERROR:') ? '' : step;
    if (current === number) lines.push(text);
  }
  return lines;
}

/** Git runs next to the builder, with more privileges than a step has, so a Dockerfile may not use git sources. */
function judgeGitSource(error: string, build: FailedBuild): Finding | undefined {
  const url = /source "?git:\/\/([^\s"]+)"? (?:denied|not allowed) by policy/.exec(error)?.[1];
  if (url === undefined) return undefined;
  const name = url.replace(/#.*$/, '').split(/[/:]/).at(-1) ?? '';
  const line = build.dockerfile.split('\n').findIndex((each) => /^\s*ADD\b/i.test(each) && each.includes(name));
  return {
    rule: 'build/git-source',
    severity: 'error',
    ...toPosition(build, line < 0 ? undefined : line + 1),
    message: `The Dockerfile adds the git repository ${keepHead(url, 200)}, which is not supported here.`,
    fix: 'Fetch it in a step instead (RUN git clone --depth 1 URL, with git installed before), or ADD an archive of it by https.',
  };
}

/** Judges errors in the Dockerfile itself: syntax errors, and files to copy that do not exist. */
function judgeDockerfile(error: string, build: FailedBuild, at: Excerpt | undefined): Finding | undefined {
  const parse = /dockerfile parse error on line (\d+): (.*)$/.exec(error);
  if (parse !== null) {
    return {
      rule: 'dockerfile/invalid',
      severity: 'error',
      ...toPosition(build, Number(parse[1])),
      message: `The Dockerfile cannot be parsed: ${parse[2] ?? ''}`,
      fix: 'Fix this line; see https://docs.docker.com/reference/dockerfile/ for all instructions.',
    };
  }
  return judgeMissingFile(error, build, at);
}

function judgeMissingFile(error: string, build: FailedBuild, at: Excerpt | undefined): Finding | undefined {
  const [, missing] = /"([^"]+)": not found/.exec(error) ?? missingMount.exec(error) ?? [];
  if (missing === undefined || error.includes('did not complete')) return undefined;
  const stage = /--from=(\S+)/.exec(at?.text ?? '')?.[1];
  const where = stage === undefined ? '' : ` in the stage or image ${keepHead(stage, 100)}`;
  return {
    rule: 'build/file-missing',
    severity: 'error',
    ...toPosition(build, at?.line),
    ...toPlannedFile(build, at),
    message: `The build copies ${missing}, but it does not exist${where}.`,
    fix: stage !== undefined ? missingInStage : isGitFolder(missing) ? withoutGit : describeMissingFile(build),
  };
}

function isGitFolder(path: string): boolean {
  return /^\/?\.git(?:\/|$)/.test(path);
}

/** What BuildKit says of a path with a pattern. */
const missingMount = /lstat \/tmp\/(?:buildkit-mount|containerd-mount)\d+(\/\S+): no such file or directory/;
const missingInStage =
  'Correct the path in COPY --from, or have an earlier step of that stage make the file (a build may write to another folder, such as dist or build); a link that points to nothing counts as missing.';

function describeMissingFile({ authored }: FailedBuild): string {
  return authored === undefined
    ? 'Commit the file, or correct its path (relative to source.path, case-sensitive).'
    : 'Commit the file, correct its path (relative to source.path, case-sensitive), or remove it from .dockerignore. Use --from to copy files from another stage.';
}

/** Judges a step that ran and failed. */
function judgeStep(error: string, stepLog: string, build: FailedBuild, at: Excerpt | undefined): Finding {
  const guess = suggestFix(`${stepLog}\n${error}`, build.authored === undefined);
  const step = formatStepName(build, at);
  const code = /exit code: (\d+)/.exec(error)?.[1];
  const how =
    code === undefined
      ? `: ${keepHead(error.replace(/^.*failed to solve: /, '').replace(/\.$/, ''), 400)}`
      : ` with exit code ${code}`;
  const quote =
    guess.line === undefined || error.includes(guess.line)
      ? ''
      : keepHead(toOneLine(guess.line).replace(/[.:]$/, ''), 300);
  const message =
    guess.message === undefined
      ? `${step} failed${how}${quote === '' ? '' : `: ${quote}`}`.replace(/[.:]?$/, '.')
      : `${guess.message} ${step} failed${how}.${quote === '' ? '' : ` Its log says "${quote}".`}`;
  return {
    rule: guess.rule,
    severity: 'error',
    ...toPosition(build, at?.line),
    ...toPlannedFile(build, at),
    message,
    fix: guess.fix,
  };
}

/** Names the step as its author knows it: the instruction, or the planner's purpose for it. */
function formatStepName(build: FailedBuild, at: Excerpt | undefined): string {
  const planned = build.authored === undefined ? findStepNote(build.dockerfile, at)?.what : undefined;
  const step = planned ?? toOneLine(at?.text ?? '');
  return step === '' ? 'A step of the build' : `The step "${keepHead(step, 200)}"`;
}

/** Finds the planner's note about the step that the excerpt points at. */
function findStepNote(dockerfile: string, at: Excerpt | undefined): { file: string; what: string } | undefined {
  const above = dockerfile.split('\n').slice(0, Math.max(0, (at?.line ?? 1) - 1));
  const match = /^# step: ([^|]+) \| (.*)$/.exec(above.at(-1) ?? '');
  return match === null ? undefined : { file: match[1] ?? '', what: match[2] ?? '' };
}

function toPlannedFile(build: FailedBuild, at: Excerpt | undefined): Pick<Finding, 'file'> {
  const file = build.authored === undefined ? findStepNote(build.dockerfile, at)?.file : undefined;
  return file === undefined || file === 'plan' ? {} : { file };
}

const unresolvedImage =
  /(?:failed to resolve source metadata for|source docker-image:\/\/) ?([^\s:"]+(?::\d+\/[^\s:"]+)?(?::[^\s:"]+)?(?:@sha256:[0-9a-f]{64})?)"?:? (.*)$/;
const networkErrors =
  /dial tcp|i\/o timeout|no such host|connection re(?:fused|set)|TLS handshake|EOF|unexpected status[^\n]{0,200}: 5\d\d|too many ?requests|429/i;
const absentErrors =
  /not found|pull access denied|insufficient_scope|authorization failed|unauthorized|not a valid|no match for platform|manifest unknown|failed to authorize/i;

/** Images that are always available, by repository. */
const alwaysThere: Readonly<Record<string, readonly string[]>> = {
  python: languages.python.images.slice(0, 2).map((each) => each.image),
  node: [defaultNode],
  nginx: [languages.static.images[0].image],
};

/** Suggests an image that the author can use instead. */
function suggestAlternative(name: string): string {
  const repository = /^docker\.io\/library\/([^:@/]{1,100})/.exec(name)?.[1] ?? '';
  const alike = (Object.hasOwn(alwaysThere, repository) ? alwaysThere[repository] : undefined) ?? [debianImage];
  const named = alike.length === 1 ? `${alike.join('')} is` : `${alike.join(' and ')} are`;
  return `${named} always available. For a language that Moorage plans, build.strategy in moorage.yaml (such as python or node) builds the image without this Dockerfile.`;
}

/** Judges a FROM image that cannot be pulled. @returns undefined if the image did not cause the failure */
function judgeBaseImage(error: string, build: FailedBuild): Finding | Fault | undefined {
  const [, name, reason] = unresolvedImage.exec(error) ?? [];
  if (name === undefined || reason === undefined) return undefined;
  const rule = {
    rule: 'build/base-image',
    severity: 'error',
    ...toPosition(build, findImageLine(build, name)),
  } as const;
  const isMirrored = build.mirrored?.includes(parseRegistryHost(name)) === true;
  const closed = judgeClosedImage(name, isMirrored ? '' : reason, error);
  if (closed !== undefined) return { ...rule, ...closed };
  if (isMirrored || absentErrors.test(reason)) return { ...rule, ...describeAbsentImage(name, isMirrored) };
  return networkErrors.test(reason) ? judgeUnavailableImage(build, name, reason, rule) : undefined;
}

function describeAbsentImage(name: string, isMirrored: boolean): Pick<Finding, 'message' | 'fix'> {
  return {
    message: `The base image ${name} cannot be found${isMirrored ? describeMirrorMiss(parseRegistryHost(name)) : ''}.`,
    fix: `Check the name and tag in FROM: the image must be public and available for this CPU architecture. ${suggestAlternative(name)}`,
  };
}

function describeMirrorMiss(host: string): string {
  const registry = host === 'docker.io' ? 'Docker Hub' : host;
  return `: neither this installation's mirror of ${registry} nor ${registry} itself, as far as it can be reached from here, has it`;
}

/**
 * Authors could take down their own registry deliberately, so its outage may be staged. An outage of Docker Hub or of
 * the registries in our plans cannot be.
 */
function judgeUnavailableImage(
  build: FailedBuild,
  name: string,
  reason: string,
  rule: Pick<Finding, 'rule' | 'severity'>,
): Finding | Fault {
  const fault = `the base image ${name} could not be fetched: ${keepHead(reason, 300)}`;
  if (build.authored === undefined || name.startsWith('docker.io/')) return new Fault(fault);
  if (build.doubted !== true) return new DoubtfulFault(fault);
  return {
    ...rule,
    message: `The base image ${name} could not be fetched, also when tried again: ${keepHead(reason, 300)}`,
    fix: `Wait until its registry can be reached and submit the repository again, or use another image in FROM. ${suggestAlternative(name)}`,
  };
}

/**
 * Judges images that no retry can fetch: images of other apps, or from a registry whose name does not resolve because
 * it is misspelt or permanently blocked here.
 */
function judgeClosedImage(name: string, reason: string, error: string): Pick<Finding, 'message' | 'fix'> | undefined {
  if (/denied by policy|not allowed by policy|source "?docker-image.*denied/i.test(error)) {
    return {
      message: `The base image ${name} cannot be used.`,
      fix: 'Use a public base image; images of other apps are not accessible.',
    };
  }
  const host = parseRegistryHost(name);
  if (host === 'docker.io' || !reason.includes('no such host')) return undefined;
  return {
    message: `The base image ${name} cannot be pulled: no registry was found at ${host}.`,
    fix: `Check the registry in FROM. If it is correct, this installation cannot reach it; only the operator of this installation can change that. ${suggestAlternative(name)}`,
  };
}

function findImageLine(build: FailedBuild, name: string): number | undefined {
  const short = name
    .replace(/^docker\.io\/(?:library\/)?/, '')
    .replace(/@sha256:.*$/, '')
    .replace(/:latest$/, '');
  const index = build.dockerfile
    .split('\n')
    .findIndex((line) => /^\s*(?:FROM|COPY|RUN)\b/i.test(line) && line.includes(short));
  return index < 0 ? undefined : index + 1;
}

export interface FailedBuild {
  /** The plain progress output of buildctl, with its error at the end. */
  readonly output: string;
  /** Path of the author's Dockerfile in the repository; absent if Moorage planned it. */
  readonly authored?: string | undefined;
  /** Text of the built Dockerfile. */
  readonly dockerfile: string;
  /** This commit has already had a retry for a fault that the author could have staged. */
  readonly doubted?: boolean;
  /** The node has less free disk than the build may use. */
  readonly lacksDisk?: boolean;
  /** Registry hosts replaced by a mirror that responds. */
  readonly mirrored?: readonly string[];
}

/** Returns path and line in the author's Dockerfile; empty if Moorage planned it. */
function toPosition(build: FailedBuild, line: number | undefined): Pick<Finding, 'file' | 'line'> {
  if (build.authored === undefined) return {};
  return { file: posix.normalize(build.authored), ...(line === undefined ? {} : { line }) };
}
