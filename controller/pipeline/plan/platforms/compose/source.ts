// Describes what the image of a compose service is built from: the folder of its source, its Dockerfile, and how its pages reach
// the others.
import { posix } from 'node:path';
import type { DeclaredComponent } from '../../../../../crds/components.ts';
import { omitUndefined } from '../../../../../lib/values.ts';
import type { Tree } from '../../../tree.ts';
import { describeDevelopment, listArguments, parseInstructions } from '../../dockerfile/text.ts';
import type { Part } from '../addresses.ts';
import type { DeclaredBuild } from '../declaration.ts';
import {
  findLocalPort,
  hasPageFramework,
  hasPageVariable,
  isBuiltToFiles,
  type PageAddress,
  readPageCalls,
} from '../page-calls.ts';
import { readFolderProxy } from './proxy.ts';
import type { ComposeService, Lookup } from './read.ts';
import { toFolder } from './services.ts';

export interface Source {
  /** Folder of its own files, which can be below that of the build. */
  readonly folder: string;
  readonly text: string;
  readonly isAuthored: boolean;
  readonly buildArguments: ReadonlySet<string>;
  readonly pages: Pick<Part, 'calls' | 'isStatic'>;
  readonly exposed: number | undefined;
  /** Moorage can plan its pages without the Dockerfile. */
  readonly canBePlanned: boolean;
  /** Another stage is built than the file says, or the plan of the files instead of the Dockerfile. */
  readonly isReplaced: boolean;
  /** The Dockerfile for visitors is built, and not the one for development that the file names. */
  readonly isReplacedFile: boolean;
}

/** Describes what the image of a service is built from. */
export function describeSource(
  build: DeclaredBuild | undefined,
  service: ComposeService,
  tree: Tree,
  lookup: Lookup,
): Source {
  const context = toContext(service.build?.context, lookup);
  const { text, folder, isReplacedFile } = findFiles(tree, context, build, service);
  const below = tree.getSubtree(folder);
  const isAuthored = text !== '' && !isPlannedInstead(build, service, tree.getSubtree(context), text);
  const hasPages = hasPageFramework(below) && (!isAuthored || buildsPages.test(text));
  const isOtherStage = service.build?.target !== undefined && build?.target === undefined;
  return {
    ...{ folder, text, isAuthored, isReplacedFile },
    buildArguments: new Set(listArguments(text)),
    pages: hasPages ? describePages(below, text, tree, context) : {},
    canBePlanned: hasPages && below.has('package.json'),
    exposed: findExposedPort(text),
    isReplaced: isAuthored && (isOtherStage || isReplacedFile),
  };
}

/** Finds the Dockerfile that is built, and the folder of the source. */
function findFiles(
  tree: Tree,
  context: string,
  build: DeclaredBuild | undefined,
  service: ComposeService,
): Pick<Source, 'text' | 'folder' | 'isReplacedFile'> {
  if (build === undefined) return { text: '', folder: context, isReplacedFile: false };
  const named = posix.join(build.path, build.dockerfile);
  const path = findBuiltFile(tree, context, named, build, service);
  const folder = findSourceFolder(tree, context, posix.dirname(path));
  return { text: tree.readFile(path) ?? '', folder, isReplacedFile: path !== named };
}

/** Next to a Dockerfile for development, such as Dockerfile.dev, the Dockerfile without an ending is the one for visitors. */
function findBuiltFile(
  tree: Tree,
  context: string,
  named: string,
  build: DeclaredBuild | undefined,
  service: ComposeService,
): string {
  const usual = posix.join(context, 'Dockerfile');
  const isForDevelopment = isPlannedInstead(build, service, tree.getSubtree(context), tree.readFile(named) ?? '');
  return isForDevelopment && named !== usual && tree.has(usual) ? usual : named;
}

const buildsPages = /\b(?:npm|npx|pnpm|yarn|bun|trunk|ng|node|deno)\b|\.html\b/;
const sourceFile = /\.(?:[cm]?[jt]sx?|py|go|rs|vue|svelte|html)$/;

/** In a monorepo, the Dockerfile of an app is often next to its source, and the build has all of the repository. */
function findSourceFolder(tree: Tree, context: string, nested: string): string {
  const sources = tree.getSubtree(nested).entries.filter(({ kind, path }) => kind === 'file' && sourceFile.test(path));
  return nested !== context && sources.length > 1 ? nested : context;
}

/** The plan of an app replaces a Dockerfile for development, unless the file says how it is used. */
function isPlannedInstead(
  build: DeclaredBuild | undefined,
  { command, entrypoint }: ComposeService,
  tree: Tree,
  text: string,
): boolean {
  const isPlain = [build?.target, command, entrypoint].every((each) => each === undefined);
  return isPlain && describeDevelopment(tree, text) !== undefined;
}

/** Finds the port that the last EXPOSE of a Dockerfile names. */
export function findExposedPort(dockerfile: string): number | undefined {
  const rest = parseInstructions(dockerfile).findLast(([word]) => word === 'EXPOSE')?.[1];
  const port = /\d{2,5}/.exec(rest ?? '')?.[0];
  return port === undefined ? undefined : Number(port);
}

/** Describes how pages reach the others: also by the nginx or Caddy of their image, and by what its Dockerfile builds in. */
function describePages(below: Tree, dockerfile: string, tree: Tree, context: string): Pick<Part, 'calls' | 'isStatic'> {
  const calls = readPageCalls(below);
  const isStatic = isBuiltToFiles(below);
  const config = /nginx|caddy/i.test(dockerfile) ? readFolderProxy(tree, context) : undefined;
  const routes = (config?.routes ?? []).map(({ path, strips, host, port }) => ({
    ...{ path, strips, file: config?.file ?? '' },
    target: `http://${host}:${port ?? 80}`,
  }));
  const built = dockerfile.split('\n').flatMap((line, index): PageAddress[] => {
    const port =
      /^\s{0,20}(?:RUN|ENV)\s/i.test(line) && (isStatic || hasPageVariable(line)) ? findLocalPort(line) : undefined;
    return port === undefined
      ? []
      : [{ port, file: 'Dockerfile', line: index + 1, isFallback: false, isOfServer: false }];
  });
  return {
    calls: { ...calls, server: [...calls.server, ...routes], addresses: [...calls.addresses, ...built] },
    isStatic,
  };
}

function toContext(context: string | undefined, lookup: Lookup): string {
  const folder = toFolder(context ?? '.');
  const [, other] = /^\$\{[^}]*:-([^}]*)\}$/.exec(folder) ?? [];
  return toFolder(other ?? lookup(folder.replace(/^\$\{?|\}$/g, '')) ?? folder);
}

export function toSource(
  build: DeclaredBuild | undefined,
  service: ComposeService,
  source: Source,
  lookup: Lookup,
): Pick<DeclaredComponent, 'path' | 'build'> {
  const path = build?.path ?? toContext(service.build?.context, lookup);
  const isUsual = build === undefined || build.dockerfile === 'Dockerfile' || source.isReplacedFile;
  const dockerfile = isUsual || !source.isAuthored ? undefined : build.dockerfile;
  const fields = omitUndefined({ dockerfile, target: build?.target });
  return omitUndefined({
    path: path === '.' ? undefined : path,
    build: Object.keys(fields).length === 0 ? undefined : fields,
  });
}

/** Whether a program listens where $PORT says. */
export function hasPortVariable({ environment = [], command = '' }: ComposeService, dockerfile: string): boolean {
  return (
    environment.some(([name]) => name === 'PORT') ||
    /\$\{?PORT\b/.test(`${dockerfile}\n${String(command)}`) ||
    parseInstructions(dockerfile).some(([word, rest]) => word === 'ENV' && /(?:^|\s)PORT[= ]/.test(rest))
  );
}
