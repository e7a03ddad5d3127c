// Defines the result of planning a tree, and renders the parts that all generated Dockerfiles share.
import type { Finding, Plan } from '../../../crds/hosted-app.ts';
import type { PipelineInput } from '../contract.ts';
import type { Tree } from '../tree.ts';
import type { Declaration } from './platforms/declaration.ts';

export type PlanInput = Pick<PipelineInput, 'build' | 'port' | 'hasCommand' | 'path'> &
  Partial<Pick<PipelineInput, 'missingImages'>>;

export interface Recipe {
  readonly plan: Plan;
  /** Text of the Dockerfile; absent if the author's own is used. */
  readonly dockerfile?: string;
  /** Patterns to exclude from the build context. The author's .dockerignore has no effect. */
  readonly ignore?: readonly string[];
  /** It only serves files and runs none of the author's programs. */
  readonly filesOnly?: boolean;
  /** It serves an API without pages: pages in another folder are the other half of the app. */
  readonly callsOnly?: boolean;
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
