// Parses a Dockerfile far enough to see whether it builds an app, and decides whether to use the author's own.
import { baseImages } from '../../../../crds/languages.ts';
import { parseJson, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import type { PlanInput } from '../recipe.ts';

export interface Stage {
  /** The argument of FROM: an image, or an earlier stage. */
  readonly from: string;
  readonly name: string | undefined;
  /** Whether it has CMD or ENTRYPOINT. */
  readonly starts: boolean;
  /** ENTRYPOINT and CMD as one line of words. */
  readonly command: string;
  /** Paths that it copies from the build context, as written. */
  readonly copies: readonly string[];
}

/** What a container of the image starts, and what else its stage says of that. */
export interface DockerStart {
  readonly entrypoint: readonly string[];
  /** CMD: arguments of the entrypoint, or the command itself. */
  readonly arguments: readonly string[];
  readonly variables: ReadonlyMap<string, string>;
  /** The first that it EXPOSEs. */
  readonly port?: number | undefined;
}

/**
 * Reads what the stage `target`, or the last, starts, with what it inherits from earlier stages. Undefined if it starts
 * what its base image does, which the text does not show.
 */
export function readDockerStart(text: string, target?: string): DockerStart | undefined {
  const stages = new Map<string, DockerStart & { readonly isSet: boolean }>();
  let stage: DockerStart & { readonly isSet: boolean } = { ...emptyStart, isSet: false };
  let [name, index, chosen] = ['', -1, stage];
  for (const [word, rest] of parseInstructions(text)) {
    if (word === 'FROM') {
      const [from = '', , as] = splitWords(rest);
      index += 1;
      name = as?.toLowerCase() ?? String(index);
      stage = stages.get(from.toLowerCase()) ?? { ...emptyStart, isSet: false };
    } else stage = addToStart(stage, word, rest);
    if (index >= 0) stages.set(name, stage);
    chosen = target === undefined ? stage : (stages.get(target.toLowerCase()) ?? chosen);
  }
  const { isSet, ...start } = chosen;
  return isSet ? start : undefined;
}

const emptyStart: DockerStart = { entrypoint: [], arguments: [], variables: new Map() };

function addToStart<Start extends DockerStart>(
  stage: Start,
  word: string,
  rest: string,
): Start & { readonly isSet: boolean } {
  const isSet = 'isSet' in stage && stage.isSet === true;
  switch (word) {
    // A new ENTRYPOINT takes the CMD of its own stage only; here both are of the same file, so the CMD stays.
    case 'ENTRYPOINT':
      return { ...stage, entrypoint: readCommand(rest), isSet: true };
    case 'CMD':
      return { ...stage, arguments: readCommand(rest), isSet: true };
    case 'ENV':
      return { ...stage, variables: new Map([...stage.variables, ...readVariables(rest)]), isSet };
    case 'EXPOSE': {
      const port = /^(\d{2,5})(?:\/tcp)?$/.exec(splitWords(rest)[0] ?? '')?.[1];
      return port === undefined || stage.port !== undefined
        ? { ...stage, isSet }
        : { ...stage, port: Number(port), isSet };
    }
    default:
      return { ...stage, isSet };
  }
}

/** Reads the words of the list form; the shell form is a shell's. */
function readCommand(rest: string): string[] {
  const parsed = parseJson(rest.trim());
  if (Array.isArray(parsed) && parsed.every((each) => typeof each === 'string')) return parsed;
  return ['/bin/sh', '-c', rest.trim()];
}

/** `ENV A=1 B="two"`, and the old form `ENV A 1`. */
function readVariables(rest: string): (readonly [string, string])[] {
  const pairs = [...rest.matchAll(/(\w{1,100})=("[^"]{0,500}"|'[^']{0,500}'|[^\s"']{0,500})/g)];
  if (pairs.length > 0)
    return pairs.map(([, name = '', value = '']) => [name, value.replace(/^(["'])(.*)\1$/, '$2')] as const);
  const [name = '', ...words] = rest.trim().split(/\s+/);
  return [[name, words.join(' ')]];
}

const maximumInstructions = 2_000;

/** Lists the stages in order; none if the text is not a Dockerfile. */
export function readStages(text: string): Stage[] {
  const stages: Draft[] = [];
  for (const [word, rest] of parseInstructions(text)) {
    if (word === 'FROM') stages.push(createDraft(rest));
    else extend(stages.at(-1), word, rest);
  }
  return stages;
}

interface Draft {
  from: string;
  name: string | undefined;
  starts: boolean;
  command: string;
  entrypoint: string;
  arguments: string;
  copies: string[];
}

function createDraft(rest: string): Draft {
  const [from = '', as, name] = splitWords(rest);
  return {
    from,
    name: as?.toUpperCase() === 'AS' ? name?.toLowerCase() : undefined,
    starts: false,
    command: '',
    entrypoint: '',
    arguments: '',
    copies: [],
  };
}

function extend(stage: Draft | undefined, word: string, rest: string): void {
  if (stage === undefined) return;
  if (word === 'CMD' || word === 'ENTRYPOINT') {
    if (word === 'CMD') stage.arguments = joinWords(rest);
    else stage.entrypoint = joinWords(rest);
    stage.starts = true;
    stage.command = `${stage.entrypoint} ${stage.arguments}`.trim();
  } else if (word === 'COPY' || word === 'ADD') stage.copies.push(...listCopiedSources(rest));
}

/** Returns whether the last stage, or a stage that it is based on, starts a program. */
export function hasStartCommand(stages: readonly Stage[]): boolean {
  return findStartCommand(stages) !== undefined;
}

/** Reads the list form and the shell form of a command: `["npm", "run", "dev"]` is `npm run dev`. */
function joinWords(rest: string): string {
  const list = /^\s*\[([\s\S]*)\]\s*$/.exec(rest)?.[1];
  return list === undefined
    ? rest.trim()
    : [...list.matchAll(/"((?:[^"\\]|\\.){0,1000})"/g)].map((match) => match[1] ?? '').join(' ');
}

/** Servers that compile while a page is read, for the developer in front of it. Some of them answer no other host name. */
const developmentServer =
  /(?:^|[\s;&|/])(?:vite(?! (?:preview|build))|(?:next|nuxt|nuxi|astro|gatsby|remix|svelte-kit|vinxi|rsbuild|quasar) (?:dev|develop)|ng serve|vue-cli-service serve|react-scripts start|react-app-rewired start|craco start|webpack(?:-dev-server| serve)|parcel(?! build)|snowpack dev|fastapi dev|nest start (?:\S+ )*(?:--watch|-w))\b/;
/** Commands that only keep a container running, for a developer who enters it. */
const idle =
  /^(?:exec )?(?:(?:\/usr)?(?:\/bin\/)?(?:ba|z|a)?sh(?: -[il])?|sleep (?:infinity|inf|\d\S*)|tail -[fF] \/dev\/null|\/bin\/true|true|while (?:true|:).*sleep.*)$|(?:^|&& )(?:sleep infinity|tail -[fF] \/dev\/null)$/;
const scriptCall = /(?:^|[\s;&|])(?:npm|pnpm|yarn|bun)(?: run(?:-script)?)?(?: --?\S+)* ([\w:.-]{1,60})/;
const developmentImage = /(?:^|\/)(?:devcontainers?|vscode)\/|gitpod\/workspace/i;
/** Of Docker Hub, which a name without a host belongs to. Started without a command, they end. */
const languageImages: ReadonlySet<string> = new Set([
  ...baseImages.map((name) => name.replace(/:.*$/, '')).filter((name) => name !== 'nginx' && name !== 'php'),
  ...['openjdk', 'gradle', 'oven/bun', 'ubuntu', 'alpine', 'busybox', 'composer'],
]);

export interface DevelopmentSign {
  /** The end of a sentence that begins with the name of the file. */
  readonly what: string;
  /** What it starts serves nothing at all. */
  readonly isIdle: boolean;
}

/** Finds what shows that a Dockerfile is only for development; undefined if it builds an app that serves. */
export function describeDevelopment(tree: Tree, text: string): DevelopmentSign | undefined {
  const stages = readStages(text);
  const last = stages.at(-1);
  if (last === undefined) return undefined;
  if (developmentImage.test(last.from))
    return { what: `is based on ${last.from}, an image to develop in`, isIdle: true };
  const command = findStartCommand(stages);
  return command === undefined ? describeMissingStart(stages, last) : describeCommand(tree, command);
}

function describeMissingStart(stages: readonly Stage[], last: Stage): DevelopmentSign | undefined {
  const base = stages.find((each) => each.name === last.from.toLowerCase())?.from ?? last.from;
  const name = base.replace(/^docker\.io\/(?:library\/)?/, '').replace(/[:@].*$/, '');
  return languageImages.has(name) ? { what: 'has no CMD, so that nothing is started', isIdle: true } : undefined;
}

function describeCommand(tree: Tree, command: string): DevelopmentSign | undefined {
  const shown = `"${command.slice(0, 60)}"`;
  const shell = command.replace(/^(?:\/bin\/)?(?:ba)?sh -l?c /, '').trim();
  if (idle.test(shell)) return { what: `starts only ${shown}, which serves nothing`, isIdle: true };
  if (developmentServer.test(shell)) return { what: `starts a development server (${shown})`, isIdle: false };
  const called = [findCalledScript(tree, shell), ...readShellScript(tree, shell)].find((each) =>
    developmentServer.test(each),
  );
  return called === undefined
    ? undefined
    : { what: `starts a development server (${shown}, which is "${called.slice(0, 60)}")`, isIdle: false };
}

/** Returns the script of package.json that a command calls; empty if it calls none. */
function findCalledScript(tree: Tree, command: string): string {
  const script = scriptCall.exec(command)?.[1] ?? '';
  return readText(parseJson(tree.readFile('package.json')), 'scripts', script) ?? '';
}

/** Commands of a shell script that start what visitors reach, so that it chooses between that and a development server. */
const servesVisitors =
  /\bexec "?\$[@*]|(?:^|[\s;&|/])(?:gunicorn|uvicorn|hypercorn|daphne|waitress-serve|fastapi run|(?:next|nuxt|remix-serve) start|nginx|node (?:\S*\/)?(?:server|index|main|app|dist|build)\b)/;

/**
 * Lists the commands of the repository's own shell script that a command starts, and what they call. Returns none if one of
 * them serves visitors.
 */
function readShellScript(tree: Tree, command: string): string[] {
  const path = /^(?:(?:\/bin\/)?(?:ba)?sh )?(?:\.?\/)?((?:[\w-]{1,60}\/){0,4}[\w.-]{1,60}\.sh)(?: |$)/.exec(
    command,
  )?.[1];
  // The image has the script in another folder, such as /app/start.sh.
  const names = path === undefined ? [] : [path, path.replace(/^[^/]*\//, ''), path.replace(/^.*\//, '')];
  const text = names.map((name) => tree.readFile(name, 16 * 1024)).find((each) => each !== undefined);
  const lines = (text ?? '').split('\n', 200).map((line) => line.trim());
  const called = lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => findCalledScript(tree, line) || line);
  return called.some((line) => servesVisitors.test(line)) ? [] : called;
}

/** Finds the start command of the last stage, or of a stage that it is based on. */
function findStartCommand(stages: readonly Stage[]): string | undefined {
  let stage = stages.at(-1);
  for (let stagesLeft = stages.length; stage !== undefined && stagesLeft > 0; stagesLeft -= 1) {
    if (stage.starts) return stage.command;
    const from = stage.from.toLowerCase();
    stage = stages.find((each) => each.name === from);
  }
  return undefined;
}

/** Splits text into instructions: joins continued lines, and skips comments and here-document bodies. */
export function parseInstructions(text: string): (readonly [string, string])[] {
  const joined = text
    .replace(/^\ufeff/, '')
    .replace(/\r/g, '')
    .replace(/^[ \t]*#.*\n?/gm, '')
    .replace(/[\\`][ \t]*\n/g, ' ');
  return joined
    .split('\n', maximumInstructions)
    .map((line) => /^\s*([A-Za-z]+)\s+(.*)$/.exec(line.slice(0, 20_000)))
    .flatMap((match) => (match === null ? [] : [[(match[1] ?? '').toUpperCase(), match[2] ?? ''] as const]));
}

/** Lists the names of the arguments that a Dockerfile declares. */
export function listArguments(dockerfile: string): string[] {
  return parseInstructions(dockerfile).flatMap(([word, rest]) =>
    word === 'ARG' ? rest.split(/\s+/).map((each) => each.split('=')[0] ?? '') : [],
  );
}

function splitWords(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '' && !word.startsWith('--'));
}

/** Lists the sources of COPY and ADD that come from the build context. */
function listCopiedSources(rest: string): string[] {
  if (/(?:^|\s)--from=/.test(rest) || rest.includes('<<')) return [];
  const list = /\[(.*)\]/.exec(rest)?.[1];
  const paths =
    list === undefined ? splitWords(rest) : [...list.matchAll(/"([^"]{0,300})"/g)].map((match) => match[1] ?? '');
  return paths.slice(0, -1).filter((each) => !/^(?:https?|git):|\$/.test(each));
}

/**
 * Returns true if the author requests it, or provides a Dockerfile and requests nothing else. The tree is that of
 * source.path.
 */
export function isAuthoredDockerfile(tree: Tree, build: PlanInput['build']): boolean {
  if (build.strategy === 'dockerfile') return true;
  return (
    build.strategy === 'auto' && (tree.getEntry(build.dockerfile) !== undefined || build.dockerfile !== 'Dockerfile')
  );
}
