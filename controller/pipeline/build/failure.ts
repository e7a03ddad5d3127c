// Turns what a failed build printed into a verdict on the repository or a fault of the platform.
import type { Finding } from '../../../crds/hosted-app.ts';
import { DoubtfulFault, Fault, Rejected } from '../outcome.ts';
import { clean, head, oneLine, tail } from '../text.ts';
import { judgeBaseImage } from './base-image.ts';
import { excerptAt, type Excerpt } from './excerpt.ts';
import { positionOf, type FailedBuild } from './failed-build.ts';
import { suggestFix, registryHiccup } from './fixes.ts';
import { excerptOf } from './step-log.ts';

const logBytes = 2_500;
const platform =
  /failed to push|no space left on device|error (?:writing|exporting) (?:layer|cache)|failed to (?:authorize|fetch oauth token|configure registry cache)|exporting to image.*(?:unexpected status|dial tcp)|transport: |code = Unavailable|error reading from server|failed to (?:mount|prepare|create) .*(?:snapshot|overlay)|context (?:canceled|deadline exceeded)|runc did not terminate|unable to start container process: (?!exec:)/i;

/** The verdict. @returns Rejected where the author can fix it, else Fault. */
export function judgeFailure(build: FailedBuild): Rejected | Fault {
  const output = clean(build.output);
  const error = oneLine(tail(output.slice(output.lastIndexOf('\nerror: ') + 1), 1_500)).replace(/^error: /, '');
  const said = failedStep(output);
  const fault = faultOf(error, said, output) ?? diskFault(error, said, build) ?? stagedFault(error, said, build);
  if (fault !== undefined) return fault;
  const verdict =
    judgeBaseImage(error, build) ??
    judgeGitSource(error, build) ??
    judgeDockerfile(error, build, excerptAt(output)) ??
    judgeStep(error, said, build, excerptAt(output));
  return verdict instanceof Fault
    ? verdict
    : new Rejected([verdict], excerptOf(said === '' ? error : `${said}\n${error}`, logBytes));
}

const inStep = (error: string): boolean => error.includes('did not complete successfully');

/** Why this is nobody's fault here; undefined when the author can fix it. */
function faultOf(error: string, said: string, output: string): Fault | undefined {
  if (!/failed to solve|dockerfile parse error/i.test(error))
    return new Fault(`the builder failed: ${oneLine(tail(error === '' ? output : error, 500))}`);
  return !inStep(error) && platform.test(error) ? new Fault(`the builder failed: ${head(error, 600)}`) : undefined;
}

/**
 * A build beyond its limit is evicted, never out of space by itself: a step that is, on a node that could not give it
 * all of its disk, has found the node full. What it prints could be staged, but not what the node has.
 */
function diskFault(error: string, said: string, build: FailedBuild): Fault | undefined {
  if (build.lacksDisk !== true || !inStep(error) || !/no space left on device|ENOSPC/i.test(said)) return undefined;
  return new Fault(`the disk of the node is full: ${oneLine(tail(said, 300))}`);
}

/**
 * What a step printed proves nothing: any step can print it. So it is believed once, and of steps that we planned; an
 * author's Dockerfile can say what it likes.
 */
function stagedFault(error: string, said: string, build: FailedBuild): Fault | undefined {
  const isBelieved = build.authored === undefined && build.doubted !== true;
  if (!isBelieved || !inStep(error) || !registryHiccup(said)) return undefined;
  return new DoubtfulFault(`a package registry failed during the build: ${oneLine(tail(said, 400))}`);
}

/** Lines of the step that failed, without the progress prefix. */
function failedStep(output: string): string {
  const number = [...output.matchAll(/^#(\d+) ERROR: (?!failed to configure \w+ cache)/gm)].at(-1)?.[1];
  if (number === undefined) return '';
  return linesOf(output, number)
    .map((line) => line.replace(/^\d+\.\d+ /, ''))
    .filter((line) => !/^(?:DONE|CACHED|\.\.\.$)/.test(line))
    .join('\n');
}

/** What the step printed. A progress bar returns to the beginning of its line: what it prints then bears no number. */
function linesOf(output: string, number: string): string[] {
  const lines: string[] = [];
  let current = '';
  for (const line of output.split('\n')) {
    const [, step, text = line] = /^#(\d{1,6}) (.*)$/.exec(line) ?? [];
    if (step !== undefined) current = text.startsWith('ERROR:') ? '' : step;
    if (current === number) lines.push(text);
  }
  return lines;
}

/** Git runs beside the builder, with more rights than a step has, so no Dockerfile may start it. */
function judgeGitSource(error: string, build: FailedBuild): Finding | undefined {
  const url = /source "?git:\/\/([^\s"]+)"? (?:denied|not allowed) by policy/.exec(error)?.[1];
  if (url === undefined) return undefined;
  const name = url.replace(/#.*$/, '').split(/[/:]/).at(-1) ?? '';
  const line = build.dockerfile.split('\n').findIndex((each) => /^\s*ADD\b/i.test(each) && each.includes(name));
  return {
    rule: 'build/git-source',
    severity: 'error',
    ...positionOf(build, line < 0 ? undefined : line + 1),
    message: `The Dockerfile adds the git repository ${head(url, 200)}, which is not supported here.`,
    fix: 'Fetch it in a step instead (RUN git clone --depth 1 URL, with git installed before), or ADD an archive of it by https.',
  };
}

/** Errors of the Dockerfile itself: what cannot be read, and files that are not there to be copied. */
function judgeDockerfile(error: string, build: FailedBuild, at: Excerpt | undefined): Finding | undefined {
  const parse = /dockerfile parse error on line (\d+): (.*)$/.exec(error);
  if (parse !== null) {
    return {
      rule: 'dockerfile/invalid',
      severity: 'error',
      ...positionOf(build, Number(parse[1])),
      message: `The Dockerfile cannot be parsed: ${parse[2] ?? ''}`,
      fix: 'Fix this line; see https://docs.docker.com/reference/dockerfile/ for all instructions.',
    };
  }
  const missing = error.includes('did not complete') ? undefined : /"([^"]+)": not found/.exec(error)?.[1];
  return missing === undefined
    ? undefined
    : {
        rule: 'build/file-missing',
        severity: 'error',
        ...positionOf(build, at?.line),
        ...plannedFile(build, at),
        message: `The build copies ${missing}, but it does not exist.`,
        fix: 'Commit the file, correct its path (relative to source.path, case-sensitive), or remove it from .dockerignore. Use --from to copy files from another stage.',
      };
}

/** A step that ran and failed. */
function judgeStep(error: string, said: string, build: FailedBuild, at: Excerpt | undefined): Finding {
  const guess = suggestFix(`${said}\n${error}`);
  const step = nameOfStep(build, at);
  const code = /exit code: (\d+)/.exec(error)?.[1];
  const how =
    code === undefined
      ? `: ${head(error.replace(/^.*failed to solve: /, '').replace(/\.$/, ''), 400)}`
      : ` with exit code ${code}`;
  const evidence = guess.line === undefined || error.includes(guess.line) ? '' : `: ${head(oneLine(guess.line), 300)}`;
  const message =
    guess.message === undefined
      ? `${step} failed${how}${evidence}`.replace(/\.?$/, '.')
      : `${guess.message} ${step} failed${how}.`;
  return {
    rule: guess.rule,
    severity: 'error',
    ...positionOf(build, at?.line),
    ...plannedFile(build, at),
    message,
    fix: guess.fix,
  };
}

/** The step as its author knows it: the instruction, or what the planner wanted with it. */
function nameOfStep(build: FailedBuild, at: Excerpt | undefined): string {
  const planned = build.authored === undefined ? note(build.dockerfile, at)?.what : undefined;
  const what = planned ?? oneLine(at?.text ?? '');
  return what === '' ? 'A step of the build' : `The step "${head(what, 200)}"`;
}

/** What the planner noted about the step that the excerpt points at. */
function note(dockerfile: string, at: Excerpt | undefined): { file: string; what: string } | undefined {
  const above = dockerfile.split('\n').slice(0, Math.max(0, (at?.line ?? 1) - 1));
  const match = /^# step: ([^|]+) \| (.*)$/.exec(above.at(-1) ?? '');
  return match === null ? undefined : { file: match[1] ?? '', what: match[2] ?? '' };
}

function plannedFile(build: FailedBuild, at: Excerpt | undefined): Pick<Finding, 'file'> {
  const file = build.authored === undefined ? note(build.dockerfile, at)?.file : undefined;
  return file === undefined || file === 'plan' ? {} : { file };
}
