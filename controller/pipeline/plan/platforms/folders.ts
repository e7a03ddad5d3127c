// Finds the components of a repository that has a page and an API in folders or packages of a workspace, where the files say how
// the page reaches the API.
import { posix } from 'node:path';
import { type DeclaredComponent, maximumComponents, onlyComponent } from '../../../../crds/components.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import { plannedLanguages } from '../../../../crds/languages.ts';
import { omitUndefined } from '../../../../lib/values.ts';
import type { Tree } from '../../tree.ts';
import { findDockerfile, hasSources } from '../dockerfile/find.ts';
import { listArguments, readStages } from '../dockerfile/text.ts';
import { type Candidate, isWorkspace, listCandidates, tryPlan } from '../folder.ts';
import { listWorkspaceApps } from '../node/workspace.ts';
import { defaultPort, type PlanInput, type Recipe } from '../recipe.ts';
import { assembleComponents, type PartDraft } from './assemble.ts';
import { readFolderProxy } from './compose/proxy.ts';
import { toHostName } from './compose/services.ts';
import { findExposedPort } from './compose/source.ts';
import { parseEnv } from './compose/read.ts';
import type { Declaration, DeclaredVariable } from './declaration.ts';
import {
  findLocalPort,
  hasPageFramework,
  isBuiltToFiles,
  isPageVariable,
  type PageCalls,
  readPageCalls,
} from './page-calls.ts';

/** A folder with an app, and what is known about its image. */
interface AppPart {
  readonly folder: string;
  readonly isAuthored: boolean;
  /** Port in its code or its Dockerfile. */
  readonly port: number | undefined;
  /** Its pages; absent: it has none. */
  readonly calls?: PageCalls;
  /** How it is built, if not as a plan of the folder would. */
  readonly build?: NonNullable<DeclaredComponent['build']>;
  /** A framework that draws pages on the server, such as Streamlit. */
  readonly isScreen: boolean;
  /** Variables of its server with an address of the developer's machine, from a sample file. */
  readonly links: readonly DeclaredVariable[];
}

/** Returns undefined if there is one app, or the files do not say how one part reaches the others. */
export function declareFolders(tree: Tree, input: PlanInput): Declaration | undefined {
  if (tree.has('Dockerfile') || findDockerfile(tree)?.certain === true) return undefined;
  const parts = listParts(tree, input);
  if (parts.length < 2 || parts.length > maximumComponents) return undefined;
  const servers = parts.filter(({ calls, isScreen }) => calls === undefined && !isScreen);
  const pages = parts.filter((each) => !servers.includes(each));
  if (servers.length === 0 || pages.length === 0) return undefined;
  const drafts = createDrafts(tree, parts, servers);
  const assembly = assembleComponents(drafts, { file: 'package.json', tree, proxy: readFolderProxy(tree, '.') });
  if (assembly === undefined) return undefined;
  const findings = assembly.findings.map((each) => (each.file === 'package.json' ? omitFile(each) : each));
  const refusal = findings.filter(({ severity }) => severity === 'error');
  const isReached = ({ name, port }: PartDraft, index: number): boolean => {
    const part = parts[index];
    const { kind = 'web' } = assembly.components.find((each) => each.name === name) ?? {};
    const isServer = part !== undefined && servers.includes(part);
    return !isServer || kind === 'web' || parts.some((each) => each !== part && isNaming(tree, each, parts, port));
  };
  const isWired = drafts.every(isReached);
  // An address in the code says how they belong together, and why they cannot.
  if (refusal.length > 0) return { file: '', findings: refusal };
  return isWired ? { file: nameFile(parts), components: assembly.components, findings } : undefined;
}

function omitFile({ rule, severity, message, fix }: Finding): Finding {
  return { rule, severity, message, fix };
}

function nameFile(parts: readonly AppPart[]): string {
  return parts
    .map(({ folder }) => folder)
    .join(', ')
    .slice(0, 150);
}

// The parts.

function listParts(tree: Tree, input: PlanInput): AppPart[] {
  const root = tryPlan(tree, input);
  const isMonorepo = isWorkspace(tree);
  // A folder of a template has no name yet.
  const candidates = listCandidates(tree, input).filter(({ folder }) => !folder.includes('{'));
  if (candidates.some((each) => each.recipe === undefined && isPart(each))) return [];
  const folders = candidates.flatMap(({ folder, recipe, strategy }) =>
    recipe === undefined || (isMonorepo && strategy === 'node') ? [] : toParts(tree, input, folder, recipe),
  );
  if (typeof root === 'string') {
    if (isMonorepo) return root === 'plan/several-apps' ? [...listPackages(tree), ...folders] : [];
    return ['plan/unknown', 'plan/no-start'].includes(root) ? folders : [];
  }
  if (root.plan.strategy === 'dockerfile' || isMonorepo) return [];
  const pages = findPagesAtRoot(tree, input, root);
  if (pages !== undefined) return [pages, { ...toPart(tree, '.', root), build: { strategy: 'python' } }];
  const others = folders.filter(({ folder }) => root.builds?.includes(folder) !== true);
  // Pages next to a server that serves some of its own are reported, and stay as they are.
  return root.filesOnly === true || root.callsOnly === true ? [toPart(tree, '.', root), ...others] : [];
}

/** Finds the pages of a repository that has them at its root together with a Python server, as templates for Next.js do. */
function findPagesAtRoot(tree: Tree, input: PlanInput, { plan }: Recipe): AppPart | undefined {
  if (plan.strategy !== 'python' || !hasPageFramework(tree)) return undefined;
  const pages = tryPlan(tree, { ...input, build: { ...input.build, strategy: 'node' } });
  if (typeof pages === 'string') return undefined;
  const part = { ...toPart(tree, '.', pages), build: { strategy: 'node' as const } };
  const { development = [], server = [] } = part.calls ?? {};
  return [...development, ...server].some(({ target }) => findLocalPort(target) !== undefined) ? part : undefined;
}

/** A part that cannot be planned would be missing from the app. */
function isPart({ folder, isPlanned }: Candidate): boolean {
  return isPlanned !== true || /(?:^|[/_-])(?:front|back|server|api|web|client|app|ui|worker|service)/i.test(folder);
}

/** Finds how a folder is built: its Dockerfile can need the files of the whole repository, or files that are nowhere. */
function toParts(tree: Tree, input: PlanInput, folder: string, recipe: Recipe): AppPart[] {
  if (recipe.plan.strategy !== 'dockerfile') return [toPart(tree, folder, recipe)];
  const below = tree.getSubtree(folder);
  const stages = readStages(below.readFile('Dockerfile') ?? '');
  if (stages.every((stage) => hasSources(below, stage))) return [toPart(tree, folder, recipe)];
  const isOfFolder = stages.some(({ copies }) => copies.some((each) => posix.normalize(each).startsWith(folder)));
  if (isOfFolder && stages.every((stage) => hasSources(tree, stage)))
    return [{ ...toPart(tree, folder, recipe), build: { dockerfile: posix.join(folder, 'Dockerfile') } }];
  for (const { name } of plannedLanguages) {
    const planned = tryPlan(below, { ...input, path: folder, build: { ...input.build, strategy: name } });
    if (typeof planned !== 'string') return [{ ...toPart(tree, folder, planned), build: { strategy: name } }];
  }
  return [];
}

/** Of these alone come pages that a browser runs. */
const pageStrategies: ReadonlySet<string> = new Set(['node', 'deno', 'static', 'dockerfile']);

function toPart(tree: Tree, folder: string, { plan }: Recipe): AppPart {
  const below = tree.getSubtree(folder);
  const isAuthored = plan.strategy === 'dockerfile';
  const text = isAuthored ? (below.readFile('Dockerfile') ?? '') : '';
  const exposed = findExposedPort(text);
  return {
    folder,
    isAuthored,
    port: isAuthored ? exposed : plan.port === defaultPort ? undefined : plan.port,
    ...(pageStrategies.has(plan.strategy) && hasPageFramework(below) ? { calls: readPageCalls(below) } : {}),
    isScreen: ['Streamlit', 'Gradio', 'Dash', 'Chainlit', 'Panel', 'Reflex', 'NiceGUI'].includes(plan.framework ?? ''),
    links: listLinks(below),
  };
}

const samples = ['.env.example', '.env.sample', '.env.template', '.env.local.example', '.env.example.local', '.env'];
const ofServer = /API|BACKEND|SERVER|SERVICE|GATEWAY|PYTHON|FLASK|DJANGO/;

/** Lists BACKEND_URL=http://localhost:8000: the server of pages calls there, not their browser. */
function listLinks(tree: Tree): DeclaredVariable[] {
  const found = samples.flatMap((file) => [...parseEnv(tree.readFile(file, 64 * 1024) ?? '')]);
  const links = found.filter(
    ([name, value]) => !isPageVariable(name) && ofServer.test(name) && /^https?:/.test(value) && findLocalPort(value),
  );
  return [...new Map(links)].map(([name, value]) => ({ name, value }));
}

function listPackages(tree: Tree): AppPart[] {
  // Pages often call the API through a package that they share.
  const shared = readPageCalls(tree.getSubtree('packages'));
  return listWorkspaceApps(tree).map(({ folder, tree: below, app }) => ({
    folder,
    isAuthored: below.has('Dockerfile'),
    port: app.kind === 'server' ? app.port : undefined,
    ...(hasPageFramework(below) ? { calls: addShared(readPageCalls(below), shared) } : {}),
    isScreen: false,
    links: listLinks(below),
  }));
}

function addShared(own: PageCalls, shared: PageCalls): PageCalls {
  return {
    ...own,
    callsApi: own.callsApi || shared.callsApi,
    dropsBasePath: own.dropsBasePath || shared.dropsBasePath,
  };
}

// Drafts.

function createDrafts(tree: Tree, parts: readonly AppPart[], servers: readonly AppPart[]): PartDraft[] {
  const taken = new Set<string>();
  const drafts = parts.map((part): PartDraft => {
    const { folder, isAuthored, calls } = part;
    const isServer = servers.includes(part);
    const name = nameFolder(folder, isServer, taken);
    const below = tree.getSubtree(folder);
    const port = isServer ? choosePort(tree, part, parts, servers) : isAuthored ? part.port : undefined;
    const text = isAuthored ? (below.readFile('Dockerfile') ?? '') : '';
    return {
      ...{ name, folder, port, published: [], hosts: [name], env: [], args: [], dependsOn: [] },
      kind: 'web',
      ...(calls === undefined ? {} : { calls, isStatic: isBuiltToFiles(below) }),
      ...(isAuthored ? { buildArguments: new Set(listArguments(text)), canBePlanned: below.has('package.json') } : {}),
      isFixed: isAuthored && !/\bPORT\b/.test(text),
      component: omitUndefined({
        name,
        // A Dockerfile that is named needs the whole repository.
        path: folder === '.' || part.build?.dockerfile !== undefined ? undefined : folder,
        build: part.build,
      }),
    };
  });
  const isServer = (index: number): boolean => servers.some((server) => server === parts[index]);
  return drafts.map((draft, index) => ({
    ...draft,
    env: isServer(index)
      ? []
      : (parts[index]?.links ?? []).flatMap((link) =>
          setLink(
            link,
            drafts.filter((_, other) => isServer(other)),
          ),
        ),
  }));
}

/** Lets a variable lead to the server that listens at its port. */
function setLink({ name, value }: DeclaredVariable, servers: readonly PartDraft[]): DeclaredVariable[] {
  const port = findLocalPort(value);
  const server = servers.find((each) => each.port === port);
  return server === undefined
    ? []
    : [{ name, value: value.replace(/\/\/(?:localhost|127\.0\.0\.1|0\.0\.0\.0):/, `//${server.name}:`) }];
}

/** EXPOSE is only a note: a port that the pages name and that is in the code counts more. */
function choosePort(tree: Tree, part: AppPart, parts: readonly AppPart[], servers: readonly AppPart[]): number {
  const named = findNamedPort(tree, parts, servers);
  if (named === undefined || (part.port !== undefined && !part.isAuthored)) return part.port ?? defaultPort;
  const isInCode = (): boolean => {
    const below = tree.getSubtree(part.folder);
    const number = new RegExp(String.raw`\b${named}\b`);
    return below.entries.some(
      ({ kind, path }) => kind === 'file' && code.test(path) && number.test(below.readFile(path, 64 * 1024) ?? ''),
    );
  };
  return part.port === undefined || isInCode() ? named : part.port;
}

function nameFolder(folder: string, isServer: boolean, taken: Set<string>): string {
  const usual = toHostName(folder === '.' ? (isServer ? 'api' : 'web') : posix.basename(folder));
  const names = [usual, toHostName(folder.replaceAll('/', '-')), `${usual.slice(0, 27)}-2`, `${usual.slice(0, 27)}-3`];
  const name = names.find((each) => !taken.has(each) && each !== onlyComponent) ?? (isServer ? 'api' : 'web');
  taken.add(name);
  return name;
}

/** The port at which other parts reach the only server. */
function findNamedPort(tree: Tree, parts: readonly AppPart[], servers: readonly AppPart[]): number | undefined {
  if (servers.length !== 1) return undefined;
  const ports = parts.flatMap((part) => {
    if (servers.includes(part)) return [];
    const { development = [], server = [], variables = [], addresses = [] } = part.calls ?? {};
    return [
      ...[...development, ...server].map(({ target }) => findLocalPort(target)),
      ...variables.map(({ value = '' }) => findLocalPort(value)),
      ...addresses.map(({ port }) => port),
      ...part.links.map(({ value }) => findLocalPort(value)),
      ...(part.isScreen ? listLocalPorts(tree, part.folder) : []),
    ];
  });
  return ports.find((port) => port !== undefined);
}

/** Returns whether the code of a part names the address at which another one listens. */
function isNaming(tree: Tree, part: AppPart, parts: readonly AppPart[], port: number | undefined): boolean {
  const { server = [] } = part.calls ?? {};
  const isOnly = parts.filter(({ calls, isScreen }) => calls === undefined && !isScreen).length === 1;
  return (isOnly && server.length > 0) || (port !== undefined && listLocalPorts(tree, part.folder).includes(port));
}

const code = /\.(?:py|[cm]?[jt]sx?|vue|svelte|go|rs|java|kt|rb|php|cs|ya?ml|toml|json|env)$|(?:^|\/)\.env(?:\.\w+)*$/;

function listLocalPorts(tree: Tree, folder: string): number[] {
  const below = tree.getSubtree(folder);
  return below.entries
    .filter(
      ({ kind, path }) =>
        kind === 'file' && code.test(path) && !/(?:^|\/)(?:node_modules|tests?)\/|\.(?:test|spec)\.|lock/.test(path),
    )
    .slice(0, 300)
    .flatMap(({ path }) => [
      ...(below.readFile(path, 200 * 1024) ?? '').matchAll(/(?:localhost|127\.0\.0\.1|0\.0\.0\.0):([0-9]{2,5})\b/g),
    ])
    .map((match) => Number(match[1]));
}
