// Reads a compose file: which image is the app, how it starts, and which backing services it needs.
import { posix } from 'node:path';
import type { Finding } from '../../../../../crds/hosted-app.ts';
import type { Tree } from '../../../tree.ts';
import { omitUndefined } from '../../../../../lib/values.ts';
import { createWarning, type Declaration, type DeclaredBuild, type DeclaredVariable } from '../declaration.ts';
import { type ChoiceOptions, chooseServices, toBackingServices, toFolder } from './services.ts';
import { buildEnvironment, readSampleValues } from './environment.ts';
import { interpolate, type Lookup, splitWords, type ComposeService, readCompose } from './read.ts';
import { findDisks } from './volumes.ts';

/** Returns undefined if there is no compose file, or it declares nothing useful. */
export function declareCompose(tree: Tree, options: ChoiceOptions): Declaration | undefined {
  const compose = readCompose(tree);
  if (compose === undefined) return undefined;
  const { file } = compose;
  const { app, knownServices, findings } = chooseServices(compose, options);
  const lookup = readSampleValues(tree);
  const backingServices = toBackingServices(file, knownServices, lookup);
  const services = backingServices.services.length === 0 ? {} : { services: [...backingServices.services] };
  if (app === undefined) return { file, ...services, findings: [...findings, ...backingServices.findings] };
  const environment = buildEnvironment(file, app, tree, backingServices);
  const disks = findDisks(file, app, tree);
  const build = resolveBuild(file, app, tree, lookup);
  const start = resolveStart(file, app, tree, lookup, build.build);
  return {
    file,
    ...services,
    ...start.start,
    ...(build.build === undefined ? {} : { build: build.build }),
    env: environment.env,
    volumes: disks.volumes,
    findings: [
      ...findings,
      ...build.findings,
      ...start.findings,
      ...backingServices.findings,
      ...environment.findings,
      ...disks.findings,
    ],
  };
}

function resolveBuild(
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
    `The service ${name} is built from ${path.slice(0, 150)}, which is not in the repository.`,
    'Correct build.context and build.dockerfile of the service.',
  );
}

/** Settings that only make sense on a developer's machine. */
const ofDevelopment =
  /--reload\b|\bnodemon\b|\bair\b|(?:npm|yarn|pnpm|bun)(?: run)? (?:dev|start:dev|watch)\b|\bvite\b(?! preview)|next dev|\bwatch(?:fiff|man|exec)?\b|tail -f|sleep (?:infinity|[0-9])/;

function resolveStart(
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
    findings: [
      createWarning(
        'compose/command',
        file,
        `The command of the service ${app.name} is not used, since ${reason}; the image's own is.`,
        'Set run.command in moorage.yaml if the app needs another.',
      ),
    ],
  });
  if (ofDevelopment.test(command.join(' '))) return ignoreCommand('it is one of development');
  const text = tree.readFile(posix.join(build.path, build.dockerfile)) ?? '';
  if (entry === undefined && /^\s{0,20}ENTRYPOINT\s/im.test(text))
    return ignoreCommand('the Dockerfile has an ENTRYPOINT');
  return { start: { ...start, command }, findings: [] };
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
function findPort({ ports = [], expose = [], environment = [] }: ComposeService, lookup: Lookup): number | undefined {
  const portVariable = environment.find(([name]) => name === 'PORT')?.[1];
  const texts = ports.length > 0 ? ports : expose.length > 0 ? expose : [portVariable ?? ''];
  const numbers = texts.flatMap((text) => {
    const match = /(?:^|:)([0-9]{1,5})(?:\/tcp)?$/.exec((interpolate(text, lookup) ?? '').trim());
    const number = Number(match?.[1] ?? 0);
    return number >= 1 && number <= 65_535 ? [number] : [];
  });
  return likely.find((each) => numbers.includes(each)) ?? numbers[0];
}
