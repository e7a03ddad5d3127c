// Defines the result of planning a tree, and renders the parts that all generated Dockerfiles share.
import type { Finding, Plan } from '../../../crds/hosted-app.ts';
import type { PipelineInput } from '../contract.ts';
import type { Tree } from '../tree.ts';
import type { Declaration } from './platforms/declaration.ts';

export type PlanInput = Pick<PipelineInput, 'build' | 'port' | 'hasCommand' | 'path'> &
  Partial<Pick<PipelineInput, 'missingImages' | 'commit' | 'mcp'>> & {
    /** Folder of the package of a workspace that is planned, where the tree is that of the whole workspace. */
    readonly package?: string | undefined;
    /** Nobody set the port: it keeps clear of those of other components. */
    readonly hasMoved?: true | undefined;
    /** Start of the MCP server that was found, which takes precedence over what a language finds itself. */
    readonly start?: KnownStart | undefined;
  };

/** A start command that is known before the files of a language are read. */
export interface KnownStart {
  /** Shell command, with $PORT not yet expanded. */
  readonly command: string;
  readonly because: string;
  readonly certainty: Certainty;
  readonly port?: number | undefined;
  /** Python: the command belongs to the project, which must be installed first. */
  readonly ofProject?: true | undefined;
  /** Python: packages that it needs and the author may not have listed. */
  readonly needs?: readonly string[] | undefined;
  /** Go: folder of its package main. Node: that of its package in a workspace. */
  readonly folder?: string | undefined;
}

/** How sure a plan is; see the field `certainty` of a plan. */
export type Certainty = NonNullable<Plan['certainty']>;

export interface Recipe {
  readonly plan: Plan;
  /** Text of the Dockerfile; absent if the author's own is used. */
  readonly dockerfile?: string;
  /** That text is the author's own, and lines after it. */
  readonly extendsAuthored?: true;
  /** It copies the bridge of MCP servers from a build context. */
  readonly usesBridge?: true;
  /** Patterns to exclude from the build context. The author's .dockerignore has no effect. */
  readonly ignore?: readonly string[];
  /** It only serves files and runs none of the author's programs. */
  readonly filesOnly?: boolean;
  /** It serves an API without pages: pages in another folder are the other half of the app. */
  readonly callsOnly?: boolean;
  /** The code listens on the port of the plan, whatever $PORT says. */
  readonly hasFixedPort?: boolean;
  /** Folders with their own manifest that this plan builds too. */
  readonly builds?: readonly string[];
  /** Warnings about this plan. */
  readonly findings: readonly Finding[];
}

/** The files are in this language, but something is missing. */
export interface Problem {
  readonly problem: Finding;
}

/** The code of one language; its facts are in crds/languages.ts. */
export interface Planner {
  /** Plans a tree, reports what is missing, or returns undefined if it does not recognize the tree. */
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined;
  /** Settings that the packages of the app imply, such as a database. Any file that sets the same takes precedence. */
  declareSettings?(tree: Tree): Declaration | undefined;
}

/** Port of a planned app, unless otherwise specified. */
export const defaultPort = 8080;

/** Marks a plan whose code has a literal port. A port that the author has set says that the code can listen there. */
export function markFixedPort({ port }: PlanInput, literal: number | undefined): Pick<Recipe, 'hasFixedPort'> {
  return port === undefined && literal !== undefined ? { hasFixedPort: true } : {};
}

/**
 * Annotates a step in the Dockerfile with its purpose and the file that caused it. A failed build is explained to its
 * author with this.
 */
export function renderStep(file: string, what: string, ...lines: readonly string[]): string[] {
  return [`# step: ${toSingleLine(file)} | ${toSingleLine(what)}`, ...lines];
}

/** Declares the author's build arguments. Their values are passed by buildctl and never written to a file. */
export function renderArguments(input: PlanInput, defaults: Readonly<Record<string, string>> = {}): string[] {
  const names = new Set([...input.build.args, ...input.build.env].map((each) => each.name));
  const declarations = [...names].filter((name) => !(name in defaults)).map((name) => `ARG ${name}`);
  return [...Object.entries(defaults).map(([name, value]) => `ARG ${name}=${value}`), ...declarations];
}

/** Starts a command through a shell, so that $PORT is expanded at start; the app then replaces the shell. */
export function renderShellCommand(command: string): string {
  return `CMD ${JSON.stringify(['sh', '-c', command])}`;
}

/** Quotes text as one shell word. */
export function quoteShellWord(text: string): string {
  return /^[A-Za-z0-9_./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** Renders an instruction with a JSON list, in which paths may contain spaces. */
export function renderCopy(sources: readonly string[], target: string, ...flags: readonly string[]): string {
  return ['COPY', ...flags, JSON.stringify([...sources.map(escapeCopyPath), target])].join(' ');
}

/**
 * Renders a COPY into the last stage as a layer of its own, which BuildKit adds without unpacking those below it. A
 * WORKDIR or RUN after it would unpack them all, so it comes after those. An owner must be a number.
 */
export function renderLinkedCopy(sources: readonly string[], target: string, ...flags: readonly string[]): string {
  return renderCopy(sources, target, '--link', ...flags);
}

/** Rejects a program that opens windows. `hint` is what its author can do if it has a page, too. */
export function createDesktopProblem(
  evidence: string,
  { file, hint }: { readonly file?: string; readonly hint?: string } = {},
): Problem {
  return {
    problem: {
      rule: 'plan/desktop-app',
      severity: 'error',
      ...(file === undefined ? {} : { file }),
      message: `This is a desktop app (${evidence}): it opens a window on its own machine and answers no HTTP.`,
      fix: `Only apps that answer HTTP are hosted.${hint === undefined ? '' : ` ${hint}`}`,
    },
  };
}

/** Escapes a path so that COPY does not treat it as a pattern. */
function escapeCopyPath(path: string): string {
  return path.replace(/[[*?\\]/g, (sign) => (sign === '[' ? '[[]' : `\\${sign}`)).replaceAll('$', String.raw`\$`);
}

/** Renders a Dockerfile: its reason as a comment, then the lines. */
export function renderDockerfile(reason: string, lines: readonly string[]): string {
  return [`# Planned by Moorage. ${toSingleLine(reason)}`, ...lines, ''].join('\n');
}

function toSingleLine(text: string): string {
  return text.replace(/\s+/g, ' ');
}

/**
 * Chooses how sure the plan of a compiled program is.
 *
 * @param web start command that a file declares @param program one of several in the repository
 */
export function chooseProgramCertainty(
  { start }: PlanInput,
  web: string | undefined,
  { others }: { readonly others: readonly string[] },
): Certainty {
  if (start !== undefined) return start.certainty;
  if (web !== undefined) return 'certain';
  return others.length === 0 ? 'likely' : 'guessed';
}
