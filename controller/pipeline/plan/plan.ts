// Chooses how to build the image: with the author's Dockerfile, or else a plan for the language of the files.
import { posix } from 'node:path';
import type { Finding } from '../../../crds/hosted-app.ts';
import {
  type Language,
  type LanguageName,
  languages,
  plannedLanguages,
  unplannedLanguages,
} from '../../../crds/languages.ts';
import { Rejected } from '../contract.ts';
import { keepHead, toOneLine } from '../text.ts';
import type { Tree } from '../tree.ts';
import { findUnstartedPackage } from './common/published.ts';
import { deno } from './deno/deno.ts';
import { describeDevelopment, isAuthoredDockerfile } from './dockerfile/text.ts';
import { dotnet } from './dotnet/dotnet.ts';
import { elixir } from './elixir/elixir.ts';
import { go } from './go/go.ts';
import { java } from './java/java.ts';
import { node } from './node/node.ts';
import { php } from './php/php.ts';
import { python } from './python/python.ts';
import { addMcpServer, extendDockerfile, shouldBridge } from './mcp/bridge.ts';
import { findDockerServer } from './mcp/docker.ts';
import { findMcpServer, type McpServer } from './mcp/find.ts';
import type { McpProgram } from './mcp/transports.ts';
import type { KnownStart, Planner, PlanInput, Recipe } from './recipe.ts';
import { ruby } from './ruby/ruby.ts';
import { rust } from './rust/rust.ts';
import { staticSite } from './static/static.ts';

/** The code of every language of the list: without it, this does not compile. */
export const planners: Readonly<Record<LanguageName, Planner>> = {
  python,
  node,
  go,
  deno,
  rust,
  java,
  php,
  ruby,
  dotnet,
  elixir,
  static: staticSite,
};

/** In the order in which their planners read the files: those whose best plan wins come first. */
const planningOrder = plannedLanguages.toSorted(
  (one, other) => (one.frameworkRank ?? one.rank) - (other.frameworkRank ?? other.rank),
);

const understood = [
  'a Dockerfile',
  ...plannedLanguages.map(({ title, foundBy }) => `${title} (${foundBy.replaceAll('`', '')})`),
].join('; ');

/**
 * Plans a tree (that of source.path). @throws Rejected, rule plan/unknown if no language matches, or with what is
 * missing
 */
export function makePlan(tree: Tree, input: PlanInput): Recipe {
  const { strategy } = input.build;
  if (tree.registry === undefined || strategy !== 'auto') return limitReason(choose(tree, input));
  // A Dockerfile in a package builds the repository that it comes from.
  const build = { ...input.build, strategy: tree.registry === 'npm' ? 'node' : 'python' } as const;
  return limitReason(choose(tree, { ...input, build }));
}

function choose(tree: Tree, input: PlanInput): Recipe {
  if (!isAuthoredDockerfile(tree, input.build)) return planServer(tree, input) ?? planLanguage(tree, input);
  const { dockerfile, strategy, target } = input.build;
  const served = extendForServer(tree, input);
  if (served !== undefined) return served;
  const development =
    strategy === 'auto' && target === undefined && !input.hasCommand
      ? describeDevelopment(tree, tree.readFile(dockerfile, dockerfileBytes) ?? '')
      : undefined;
  if (development === undefined) return toAuthoredRecipe(input);
  const what = `${dockerfile} ${development.what}`;
  return planInstead(tree, input, what) ?? toDoubtfulRecipe(input, what, development.isIdle);
}

const dockerfileBytes = 512 * 1024;

/** Plans an MCP server; undefined if the repository is none. @throws Rejected if it is unclear how it starts */
function planServer(tree: Tree, input: PlanInput): Recipe | undefined {
  const found = findMcpServer(tree, input);
  if (found === undefined) return undefined;
  if (found.kind === 'refused') throw new Rejected([found.problem]);
  if (found.kind === 'aside') return mentionServer(planLanguage(tree, input), found.program);
  const { server } = found;
  // run.command replaces what the image starts, and the bridge with it.
  if (input.hasCommand) return warnAboutCommand(planLanguage(tree, input), server);
  const { program, command, certainty } = server;
  const start: KnownStart = {
    command,
    because: `Its start command is ${command.replace(/^exec /, '')}.`,
    certainty,
    port: shouldBridge(server, input) ? undefined : server.listening.port,
    ofProject: program?.ofProject,
    needs: program?.needs,
    folder: program?.folder,
  };
  const strategy = program?.language ?? input.build.strategy;
  return addMcpServer(planLanguage(tree, { ...input, start, build: { ...input.build, strategy } }), server, input);
}

function mentionServer(recipe: Recipe, { file }: McpProgram): Recipe {
  const otherwise = `${file} is an MCP server next to it: set mcp: { transport: stdio } in moorage.yaml to host that.`;
  return recipe.plan.otherwise === undefined ? { ...recipe, plan: { ...recipe.plan, otherwise } } : recipe;
}

function warnAboutCommand(recipe: Recipe, server: McpServer): Recipe {
  if (!shouldBridge(server, {})) return recipe;
  const warning: Finding = {
    rule: 'plan/mcp-command',
    severity: 'warning',
    file: 'moorage.yaml',
    message: `run.command replaces the bridge that would serve this MCP server over ${server.transport} at /mcp.`,
    fix: 'If the command starts a server over stdio or SSE, move it to mcp.command in moorage.yaml.',
  };
  return { ...recipe, findings: [...recipe.findings, warning] };
}

/** Extends an author's Dockerfile that starts an MCP server; undefined if it starts none. */
function extendForServer(tree: Tree, input: PlanInput): Recipe | undefined {
  const text = tree.readFile(input.build.dockerfile, dockerfileBytes);
  if (text === undefined || input.hasCommand) return undefined;
  const found = findDockerServer(tree, input, text);
  return found === undefined ? undefined : extendDockerfile(text, found.server, found.start, input);
}

function toAuthoredRecipe({ build: { strategy, dockerfile }, port }: PlanInput): Recipe {
  const reason =
    strategy === 'dockerfile'
      ? `build.strategy asks for ${dockerfile}.`
      : `The repository has a ${dockerfile}, which is built as is.`;
  return {
    plan: { strategy: 'dockerfile', reason, ...(port === undefined ? {} : { port }), certainty: 'certain' },
    findings: [],
  };
}

/** Plans the other files, if they show how the app is served; undefined if they leave that to a guess. */
function planInstead(tree: Tree, input: PlanInput, what: string): Recipe | undefined {
  try {
    const recipe = planServer(tree, input) ?? planLanguage(tree, input);
    if (recipe.plan.certainty === 'guessed') return undefined;
    const reason = `${what}, so the other files are planned. ${recipe.plan.reason}`;
    const otherwise = `The Dockerfile can be built all the same: set build.strategy: dockerfile in moorage.yaml.`;
    return { ...recipe, plan: { ...recipe.plan, reason, certainty: 'likely', otherwise } };
  } catch (error) {
    if (error instanceof Rejected) return undefined;
    throw error;
  }
}

function toDoubtfulRecipe(input: PlanInput, what: string, isIdle: boolean): Recipe {
  const { plan } = toAuthoredRecipe(input);
  return {
    plan: { ...plan, certainty: 'guessed' },
    findings: [
      {
        rule: 'dockerfile/development',
        severity: 'warning',
        file: input.build.dockerfile,
        message: `${what}. ${isIdle ? 'The app will not answer.' : 'It is slow, takes much memory, and may answer no other host name than localhost.'}`,
        fix: 'Make its last stage start the server for visitors on 0.0.0.0 and $PORT, name a stage that does with build.target in moorage.yaml, or set run.command there.',
      },
    ],
  };
}

function planLanguage(tree: Tree, input: PlanInput): Recipe {
  const unstarted = findUnstartedPackage(tree, input);
  if (unstarted !== undefined) throw new Rejected([unstarted]);
  const isAuto = input.build.strategy === 'auto';
  const { recipes, problems } = collectAnswers(tree, input);
  const markers = isAuto ? findMarkers(tree) : [];
  // Pages next to a server that cannot be planned are only half of an app.
  const isHalf =
    isAuto &&
    (markers.some((each) => !isSiteBuiltFrom(each, recipes)) || problems.some(({ language }) => language !== 'static'));
  const wholeRecipes = recipes.filter((recipe) => !isHalf || recipe.filesOnly !== true);
  const best = wholeRecipes.toSorted((one, other) => rankRecipe(one) - rankRecipe(other))[0];
  if (best !== undefined) return mentionOther(best, recipes);
  throw new Rejected([
    rejectUnplanned(markers, recipes) ?? addHint(tree, input, problems[0]?.problem) ?? rejectUnknown(tree, input),
  ]);
}

/** Returns whether this language generates the files, so that they are the whole app. */
function isSiteBuiltFrom({ name }: FoundMarker, recipes: readonly Recipe[]): boolean {
  return recipes.some(({ filesOnly, plan }) => filesOnly === true && plan.strategy === name);
}

interface Answers {
  readonly recipes: readonly Recipe[];
  readonly problems: readonly { readonly language: LanguageName; readonly problem: Finding }[];
}

/** Tries every language that the author's settings allow. */
function collectAnswers(tree: Tree, input: PlanInput): Answers {
  const { strategy } = input.build;
  const candidates = planningOrder.filter(({ name }) => strategy === 'auto' || name === strategy);
  const answers = candidates.map(({ name }) => ({ language: name, answer: planners[name].plan(tree, input) }));
  return {
    recipes: answers.flatMap(({ answer }) => (answer !== undefined && 'plan' in answer ? [answer] : [])),
    problems: answers.flatMap(({ language, answer }) =>
      answer !== undefined && 'problem' in answer ? [{ language, problem: answer.problem }] : [],
    ),
  };
}

function addHint(tree: Tree, { path }: PlanInput, problem: Finding | undefined): Finding | undefined {
  return problem === undefined ? undefined : { ...problem, fix: `${problem.fix}${suggestFolders(tree, path)}` };
}

/** Ranks a plan by its language. One that only serves files comes after those that start a program. */
function rankRecipe({ plan: { strategy, framework }, filesOnly }: Recipe): number {
  // No planner returns one.
  if (strategy === 'dockerfile') return 0;
  const { rank, frameworkRank = rank }: Language = languages[strategy];
  return filesOnly === true ? Math.max(rank, 4) : framework === undefined ? rank : frameworkRank;
}

/** Rejects a language that Moorage recognizes but does not plan. */
function rejectUnplanned(markers: readonly FoundMarker[], recipes: readonly Recipe[]): Finding | undefined {
  const marker = markers.find(({ name }) => name === undefined);
  if (marker === undefined) return undefined;
  const files = recipes.find((recipe) => recipe.filesOnly === true)?.plan.strategy;
  return {
    rule: 'plan/unknown',
    severity: 'error',
    file: marker.file,
    message: `${marker.file} makes this ${chooseArticle(marker.title)} ${marker.title} app, which Moorage cannot plan yet.`,
    fix: `Add a Dockerfile at the top level that builds it and starts it on 0.0.0.0 and $PORT.${files === undefined ? '' : ` If its files alone are to be served, set build.strategy: ${files} in moorage.yaml.`}`,
  };
}

function mentionOther(best: Recipe, recipes: readonly Recipe[]): Recipe {
  const other = recipes.find((each) => each !== best && each.plan.strategy !== 'static');
  if (other === undefined || other.plan.strategy === best.plan.strategy) return best;
  const reason = `${best.plan.reason} It could also be built as ${other.plan.strategy}: set build.strategy in moorage.yaml to choose that.`;
  return { ...best, plan: { ...best.plan, reason } };
}

function rejectUnknown(tree: Tree, input: PlanInput): Finding {
  const place = input.path === '.' ? 'the repository' : `folder ${input.path}`;
  const subject = input.build.strategy === 'auto' ? 'Nothing' : `Nothing for build.strategy ${input.build.strategy}`;
  return {
    rule: 'plan/unknown',
    severity: 'error',
    message: `${subject} that can be built was found at the top level of ${place}.${describeOrchestration(tree)}`,
    fix: `Add one of: ${understood}.${suggestFolders(tree, input.path)}`,
  };
}

/** Files that deploy an app elsewhere, and say too little about how it is built here. */
const orchestrations: readonly (readonly [string, RegExp, RegExp?])[] = [
  ['a Helm chart', /(?:^|\/)Chart\.ya?ml$/],
  ['an Aspire host', /AppHost[^/]{0,60}\.csproj$|(?:^|\/)apphost\.(?:cs|ts|py)$/i],
  ['Kubernetes manifests', /\.ya?ml$/, /^kind:[ \t]{1,9}["']?(?:Deployment|StatefulSet|Pod|Knative)\b/m],
  ['a dev container', /(?:^|\/)\.?devcontainer\.json$/],
];

function describeOrchestration(tree: Tree): string {
  const files = tree.entries.filter(({ kind, path }) => kind === 'file' && path.split('/').length <= 5);
  const found = orchestrations.flatMap(([what, name, content]) => {
    const named = files.filter(({ path }) => name.test(path)).slice(0, 100);
    const file = named.find(({ path }) => content === undefined || content.test(tree.readFile(path, 64 * 1024) ?? ''));
    return file === undefined ? [] : [`${what} (${file.path})`];
  });
  return found.length === 0
    ? ''
    : ` It has ${found.join(' and ')}, which Moorage does not read: an app is started from a Dockerfile, a compose file, a Procfile or its code.`;
}

function suggestFolders(tree: Tree, path: string): string {
  const folders = listAppFolders(tree).map((folder) => posix.join(path, folder));
  return folders.length === 0
    ? ''
    : ` There is something to build in ${folders.slice(0, 5).join(', ')}${folders.length > 5 ? ', …' : ''}: put source.path with that folder in moorage.yaml.`;
}

/** The status and a termination message have little room. */
function limitReason(recipe: Recipe): Recipe {
  const { reason, otherwise } = recipe.plan;
  return {
    ...recipe,
    plan: { ...recipe.plan, reason: keepHead(toOneLine(reason), 390), ...limitOtherwise(otherwise) },
  };
}

/** Shortens the other reading of a plan to the contract's limit. */
export function limitOtherwise(otherwise: string | undefined): { otherwise?: string } {
  return otherwise === undefined ? {} : { otherwise: keepHead(toOneLine(otherwise), 290) };
}

function chooseArticle(language: string): string {
  return language === 'R' || /^[AEIO]/.test(language) ? 'an' : 'a';
}

/** A file that identifies the language of a server. */
export interface FoundMarker {
  /** Of the language. */
  readonly title: string;
  readonly file: string;
  /** Absent if no planner plans the language. */
  readonly name?: LanguageName;
}

/** Those that other files can refute come last among the planned ones. */
const serverMarkers = [
  ...planningOrder
    .filter(({ isServer }) => isServer)
    .toSorted((one, other) => Number(one.markerUnless !== undefined) - Number(other.markerUnless !== undefined)),
  ...unplannedLanguages.map((each) => ({ ...each, name: undefined, markerUnless: undefined })),
];

/** The markers of servers at the top of a tree, one per language, whether Moorage plans it or not. */
export function findMarkers(tree: Tree): FoundMarker[] {
  const top = tree.entries.filter((each) => each.kind === 'file' && !each.path.includes('/'));
  return serverMarkers.flatMap(({ title, name, marker, markerUnless }) => {
    const file = top.find((each) => marker?.test(each.path) === true)?.path;
    if (file === undefined || (markerUnless !== undefined && tree.has(markerUnless))) return [];
    return [{ title, file, ...(name === undefined ? {} : { name }) }];
  });
}

/** Whether a file of this name marks its folder as an app of some language. */
function isMarker(name: string): boolean {
  return [...plannedLanguages, ...unplannedLanguages].some(({ marker }) => marker?.test(name) === true);
}

/** Folders next to an app that are not apps themselves. */
const aside =
  /(?:^|\/)(?:tests?|e2e|docs?|documentation|website|examples?|samples?|templates?|fixtures?|playgrounds?|scripts?|tools|benchmarks?|infra|(?:cloud-)?deploy(?:ment)?s?|db|database|postgres(?:ql)?|mysql|mongo(?:db)?|redis|nginx|traefik|caddy|docker|dockerfiles?|containers?|packaging|k8s|kubernetes|helm|storybook|landing(?:-page)?|(?:chrome-|browser-|vscode-)?extensions?|mobile|android|ios|desktop|electron|src-tauri|sdks?|cli|node_modules|vendor|third[_-]party|\.[^/]+)(?:\/|$)/i;

/** Folders for trying things out, by a word of their name. They are the app only if there is no other. */
const trial =
  /(?:^|\/)(?:[\w.]{1,60}[-_])?(?:__tests?__|tests?|testing|testdata|specs?|e2e|mocks?|fixtures?|examples?|samples?|demos?|tutorials?|benchmarks?|bench|playground|sandbox|legacy|archived?|old|deprecated)(?:[-_][\w.-]{1,60})?(?:\/|$)/i;

/** Lists folders with their own manifest, at most two levels deep and not nested. */
export function listAppFolders(tree: Tree): string[] {
  const found = tree.entries.flatMap((each) => {
    const folder = posix.dirname(each.path);
    const name = posix.basename(each.path);
    const isKnown = name === 'Dockerfile' || isMarker(name);
    return each.kind === 'file' && isKnown && folder !== '.' && folder.split('/').length <= 2 ? [folder] : [];
  });
  const folders = [...new Set(found)].filter((folder) => !aside.test(folder));
  const serious = folders.filter((folder) => !trial.test(folder));
  const listed = serious.length > 0 ? serious : folders;
  return listed.filter((folder) => !listed.some((other) => folder.startsWith(`${other}/`)));
}
