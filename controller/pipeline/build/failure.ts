// Turns what a failed build printed into a verdict on the repository or a fault of the platform.
import { posix } from 'node:path';
import type { Finding } from '../../../crds/hosted-app.ts';
import { DoubtfulFault, Fault, Rejected } from '../outcome.ts';
import { defaultNode, images } from '../plan/recipe.ts';
import { clean, head, oneLine, tail } from '../text.ts';
import { registryHost } from './daemon-config.ts';
import { excerptAt, type Excerpt } from './excerpt.ts';
import { suggestFix, registryHiccup } from './fixes.ts';
import { excerptOf } from './step-log.ts';

export interface FailedBuild {
  /** The plain progress and the error that buildctl printed at its end. */
  readonly output: string;
  /** Path of the author's Dockerfile in the repository; absent when Moorage planned it. */
  readonly authored?: string | undefined;
  /** Text of the Dockerfile that was built. */
  readonly dockerfile: string;
  /** A fault that the author could have staged was believed for this commit before. */
  readonly doubted?: boolean;
  /** Registry hosts that a mirror stands in for, which answers. */
  readonly mirrored?: readonly string[];
}

const logBytes = 2_500;
const platform =
  /failed to push|error (?:writing|exporting) (?:layer|cache)|failed to (?:authorize|fetch oauth token|configure registry cache)|exporting to image.*(?:unexpected status|dial tcp)|transport: |code = Unavailable|error reading from server|failed to (?:mount|prepare|create) .*(?:snapshot|overlay)|context (?:canceled|deadline exceeded)|runc did not terminate|unable to start container process: (?!exec:)/i;
const unavailable =
  /dial tcp|i\/o timeout|no such host|connection re(?:fused|set)|TLS handshake|EOF|unexpected status[^\n]{0,200}: 5\d\d|too many ?requests|429/i;

/** The verdict. @returns Rejected where the author can fix it, else Fault. */
export function judgeFailure(build: FailedBuild): Rejected | Fault {
  const output = clean(build.output);
  const error = oneLine(tail(output.slice(output.lastIndexOf('\nerror: ') + 1), 1_500)).replace(/^error: /, '');
  const said = failedStep(output);
  const fault = faultOf(error, said, output) ?? stagedFault(error, said, build);
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
  const prefix = `#${number} `;
  const lines = output
    .split('\n')
    .filter((line) => line.startsWith(prefix))
    .map((line) => line.slice(prefix.length).replace(/^\d+\.\d+ /, ''));
  return lines.filter((line) => !/^(?:ERROR:|DONE|CACHED|\.\.\.$)/.test(line)).join('\n');
}

const absent =
  /not found|pull access denied|insufficient_scope|authorization failed|unauthorized|not a valid|no match for platform|manifest unknown|failed to authorize/i;
const alwaysThere = [
  ...images.python.map((each) => each.image),
  defaultNode,
  images.nginx,
  'debian:bookworm-slim',
].join(', ');
const otherwise = `${alwaysThere} are always available; with build.strategy: python, node or static in moorage.yaml, the image is built without this Dockerfile.`;

/** An image named in FROM that cannot be had. */
function judgeBaseImage(error: string, build: FailedBuild): Finding | Fault | undefined {
  const [, name, why] =
    /(?:failed to resolve source metadata for|source docker-image:\/\/) ?([^\s:"]+(?::\d+\/[^\s:"]+)?(?::[^\s:"]+)?(?:@sha256:[0-9a-f]{64})?)"?:? (.*)$/.exec(
      error,
    ) ?? [];
  if (name === undefined || why === undefined) return undefined;
  const line = lineOfImage(build, name);
  const rule = { rule: 'build/base-image', severity: 'error', ...positionOf(build, line) } as const;
  const host = registryHost(name);
  const outOfReach = build.mirrored?.includes(host) === true;
  const closed = closedImage(name, outOfReach ? '' : why, error);
  if (closed !== undefined) return { ...rule, ...closed };
  if (!absent.test(why) && !outOfReach)
    return unavailable.test(why) ? unavailableImage(build, name, why, rule) : undefined;
  return {
    ...rule,
    message: `The base image ${name} cannot be found${outOfReach ? missed(host) : ''}.`,
    fix: `Check the name and tag in FROM: the image must be public and available for this CPU architecture. ${otherwise}`,
  };
}

function missed(host: string): string {
  const registry = host === 'docker.io' ? 'Docker Hub' : host;
  return `: neither this installation's mirror of ${registry} nor ${registry} itself, as far as it can be reached from here, has it`;
}

/** A registry of the author's can be out of reach whenever he likes; Docker Hub and those of our plans cannot. */
function unavailableImage(
  build: FailedBuild,
  name: string,
  why: string,
  rule: Pick<Finding, 'rule' | 'severity'>,
): Finding | Fault {
  const fault = `the base image ${name} could not be fetched: ${head(why, 300)}`;
  if (build.authored === undefined || name.startsWith('docker.io/')) return new Fault(fault);
  if (build.doubted !== true) return new DoubtfulFault(fault);
  return {
    ...rule,
    message: `The base image ${name} could not be fetched, also when tried again: ${head(why, 300)}`,
    fix: `Wait until its registry can be reached and submit the repository again, or use another image in FROM. ${otherwise}`,
  };
}

/**
 * Images that no other try brings: of other apps, or of a registry whose name has no address, which is misspelt or
 * closed off here for good.
 */
function closedImage(name: string, why: string, error: string): Pick<Finding, 'message' | 'fix'> | undefined {
  if (/denied by policy|not allowed by policy|source "?docker-image.*denied/i.test(error)) {
    return {
      message: `The base image ${name} cannot be used.`,
      fix: 'Use a public base image; images of other apps are not accessible.',
    };
  }
  const host = registryHost(name);
  if (host === 'docker.io' || !why.includes('no such host')) return undefined;
  return {
    message: `The base image ${name} cannot be pulled: no registry was found at ${host}.`,
    fix: `Check the registry in FROM. If it is correct, this installation cannot reach it; only the operator of this installation can change that. ${otherwise}`,
  };
}

function lineOfImage(build: FailedBuild, name: string): number | undefined {
  const short = name
    .replace(/^docker\.io\/(?:library\/)?/, '')
    .replace(/@sha256:.*$/, '')
    .replace(/:latest$/, '');
  const index = build.dockerfile
    .split('\n')
    .findIndex((line) => /^\s*(?:FROM|COPY|RUN)\b/i.test(line) && line.includes(short));
  return index < 0 ? undefined : index + 1;
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

function positionOf(build: FailedBuild, line: number | undefined): Pick<Finding, 'file' | 'line'> {
  if (build.authored === undefined) return {};
  return { file: posix.normalize(build.authored), ...(line === undefined ? {} : { line }) };
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
