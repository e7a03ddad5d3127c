// Resolves how a service of a compose file is built and started, and on which port it listens.
import { posix } from 'node:path';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import { parseJson } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import { omitUndefined } from '../../../../../lib/values.ts';
import { parseInstructions } from '../../dockerfile/text.ts';
import { createWarning, type Declaration, type DeclaredBuild, type DeclaredVariable } from '../declaration.ts';
import { toFolder } from './services.ts';
import { interpolate, type Lookup, splitWords, type ComposeService } from './read.ts';

export function resolveBuild(
  file: string,
  { name, build }: ComposeService,
  tree: Tree,
  lookup: Lookup,
): { build?: DeclaredBuild; findings: Finding[] } {
  if (build === undefined) return { findings: [] };
  const resolveText = (text: string | undefined, usual: string): string => interpolate(text ?? usual, lookup) ?? usual;
  const path = toFolder(resolveText(build.context, '.'));
  const dockerfile = posix.normalize(resolveText(build.dockerfile, 'Dockerfile'));
  const dockerfilePath = posix.join(path, dockerfile);
  if (dockerfile.startsWith('..') || !tree.has(dockerfilePath))
    return { findings: [warnAboutDockerfile(file, name, dockerfilePath)] };
  const target = resolveText(build.target, '');
  const args = resolveBuildArguments(build.args ?? [], lookup);
  return {
    build: omitUndefined({
      path,
      dockerfile,
      // A development stage is not for visitors.
      target: target === '' || /dev|test|debug/i.test(target) ? undefined : target,
      args: args.length === 0 ? undefined : args,
    }),
    findings: [],
  };
}

function resolveBuildArguments(
  buildArguments: readonly (readonly [string, string | null])[],
  lookup: Lookup,
): DeclaredVariable[] {
  return buildArguments.flatMap(([name, text]) => {
    const value = text === null ? lookup(name) : interpolate(text, lookup);
    return value === undefined || value === '' || name === 'NODE_ENV' ? [] : [{ name, value }];
  });
}

function warnAboutDockerfile(file: string, name: string, path: string): Finding {
  return createWarning(
    'compose/no-dockerfile',
    file,
    `The service ${name} is built from ${path.slice(0, 150)}, which is not in the repository, so its build is planned from its files.`,
    'Add the Dockerfile, or correct build.context and build.dockerfile of the service.',
  );
}

/** Settings that only make sense on a developer's machine. */
const ofDevelopment =
  /--reload\b|\bnodemon\b|\bair\b|(?:npm|yarn|pnpm|bun)(?: run)? (?:dev|start:dev|watch)\b|\bvite\b(?! preview)|next dev|\bwatch(?:fiff|man|exec)?\b|tail -f|sleep (?:infinity|[0-9])/;

export function resolveStart(
  file: string,
  app: ComposeService,
  tree: Tree,
  lookup: Lookup,
  build: DeclaredBuild | undefined,
): { start: Pick<Declaration, 'port' | 'command'>; findings: Finding[] } {
  const port = findPort(app, lookup);
  const start = { ...(port === undefined ? {} : { port }) };
  const entry = resolveArguments(app.entrypoint, lookup);
  const commandArguments = resolveArguments(app.command, lookup);
  const command = [...(entry ?? []), ...(commandArguments ?? [])];
  if (command.length === 0 || build === undefined) return { start, findings: [] };
  const ignoreCommand = (reason: string): { start: typeof start; findings: Finding[] } => ({
    start,
    findings: [warnAboutCommand(file, app.name, reason)],
  });
  if (ofDevelopment.test(command.join(' '))) return ignoreCommand('it is one of development');
  const text = tree.readFile(posix.join(build.path, build.dockerfile)) ?? '';
  if (entry === undefined && /^\s{0,20}ENTRYPOINT\s/im.test(text))
    return ignoreCommand('the Dockerfile has an ENTRYPOINT');
  return { start: { ...start, command }, findings: [] };
}

/** How a component of several starts: its own command, after the ENTRYPOINT of its image. */
export function resolveCommand(
  file: string,
  app: ComposeService,
  lookup: Lookup,
  { dockerfile, isShared }: { readonly dockerfile: string; readonly isShared: boolean },
): { command?: readonly string[]; findings: Finding[] } {
  const entry = resolveArguments(app.entrypoint, lookup);
  const own = resolveArguments(app.command, lookup) ?? [];
  if (entry === undefined && own.length === 0) return { findings: [] };
  const ofImage = entry === undefined ? readEntrypoint(dockerfile) : entry;
  // An ENTRYPOINT in the form of a shell command takes no arguments.
  if (ofImage === undefined) return { findings: [] };
  const command = stripReload([...ofImage, ...own]);
  const isDevelopment = ofDevelopment.test(command.join(' '));
  if (!isDevelopment || isShared) return { command, findings: [] };
  return { findings: [warnAboutCommand(file, app.name, 'it is one of development')] };
}

/** Reads ENTRYPOINT of the last stage: none is an empty list, one in the form of a shell command undefined. */
function readEntrypoint(dockerfile: string): string[] | undefined {
  const instructions = parseInstructions(dockerfile);
  const last = instructions.findLastIndex(([word]) => word === 'FROM');
  const rest = instructions.findLast(([word], index) => word === 'ENTRYPOINT' && index > last)?.[1];
  if (rest === undefined) return [];
  const words = parseJson(rest);
  return Array.isArray(words) && words.every((word) => typeof word === 'string') ? words : undefined;
}

/** Removes what restarts a program when its source changes. */
function stripReload(command: readonly string[]): string[] {
  const at = command[0]?.endsWith('watchmedo') === true ? command.indexOf('--') : -1;
  return command
    .slice(at + 1)
    .filter((word) => word !== '--reload')
    .map((word) => word.replaceAll(/ --reload\b(?![-=])/g, ''));
}

function warnAboutCommand(file: string, name: string, reason: string): Finding {
  return createWarning(
    'compose/command',
    file,
    `The command of the service ${name} is not used, since ${reason}; the image's own is.`,
    'Set run.command in moorage.yaml if the app needs another.',
  );
}

function resolveArguments(source: string | string[] | undefined, lookup: Lookup): string[] | undefined {
  if (source === undefined) return undefined;
  const each = typeof source === 'string' ? (splitWords(source) ?? []) : source;
  const resolved = each.flatMap((word) => interpolate(word, lookup) ?? []);
  return resolved.length === each.length && resolved.every((word) => word !== '') ? resolved : undefined;
}

/** Ports that HTTP is most often served on, most likely first. */
const likely = [8080, 8000, 3000, 80, 5000, 8501, 7860, 8888, 4000, 5173];

/** Finds the container port: 3000 in 127.0.0.1:8080:3000/tcp. */
export function findPort(
  { ports = [], expose = [], environment = [] }: ComposeService,
  lookup: Lookup,
): number | undefined {
  const portVariable = environment.find(([name]) => name === 'PORT')?.[1];
  const texts = ports.length > 0 ? ports : expose.length > 0 ? expose : [portVariable ?? ''];
  const numbers = texts.flatMap((text) => parsePort(text, lookup)?.inside ?? []);
  return likely.find((each) => numbers.includes(each)) ?? numbers[0];
}

/** Lists the ports of the host that lead to a port of the container. */
export function listPublishedPorts(
  { ports = [] }: ComposeService,
  inside: number | undefined,
  lookup: Lookup,
): number[] {
  return ports.flatMap((text) => {
    const port = parsePort(text, lookup);
    return port === undefined || port.inside !== inside || port.outside === undefined ? [] : [port.outside];
  });
}

function parsePort(
  text: string,
  lookup: Lookup,
): { readonly inside: number; readonly outside: number | undefined } | undefined {
  const match = /(?:(?:^|:)([0-9]{1,5}))?(?:^|:)([0-9]{1,5})(?:\/tcp)?$/.exec((interpolate(text, lookup) ?? '').trim());
  const inside = Number(match?.[2] ?? 0);
  if (inside < 1 || inside > 65_535) return undefined;
  return { inside, outside: match?.[1] === undefined ? undefined : Number(match[1]) };
}
