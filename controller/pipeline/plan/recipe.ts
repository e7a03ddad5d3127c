// Defines the result of planning a tree, and renders the parts that all generated Dockerfiles share.
import type { Finding, Plan } from '../../../crds/hosted-app.ts';
import type { PipelineInput } from '../contract.ts';
import type { Tree } from '../tree.ts';

export type PlanInput = Pick<PipelineInput, 'build' | 'port' | 'hasCommand' | 'path'> &
  Partial<Pick<PipelineInput, 'missingImages'>>;

export interface Recipe {
  readonly plan: Plan;
  /** Text of the Dockerfile; absent if the author's own is used. */
  readonly dockerfile?: string;
  /** Patterns to exclude from the build context, in addition to the author's. */
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

/** A language planner: plans a tree, reports what is missing, or does not recognize it. */
export interface Language {
  readonly name: Exclude<Plan['strategy'], 'dockerfile'>;
  plan(tree: Tree, input: PlanInput): Recipe | Problem | undefined;
}

/** Port of a planned app, unless otherwise specified. */
export const defaultPort = 8080;

/** Used if a project does not request a Node version. */
export const defaultNode = 'node:24-bookworm-slim';

/** Base images from Docker Hub and, for .NET, from Microsoft's registry. */
export const images = {
  /** Oldest first. */
  node: [
    { major: 16, image: 'node:16-bookworm-slim' },
    { major: 18, image: 'node:18-bookworm-slim' },
    { major: 20, image: 'node:20-bookworm-slim' },
    { major: 22, image: 'node:22-bookworm-slim' },
    { major: 24, image: defaultNode },
  ],
  nginx: 'nginx:stable-bookworm',
  /** The first match is used. */
  python: [
    { version: '3.11', image: 'python:3.11-slim-bookworm' },
    { version: '3.13', image: 'python:3.13-slim-trixie' },
    { version: '3.12', image: 'python:3.12-slim' },
    { version: '3.10', image: 'python:3.10-slim' },
    { version: '3.14', image: 'python:3.14-slim' },
    { version: '3.9', image: 'python:3.9-slim' },
    { version: '3.8', image: 'python:3.8-slim' },
  ],
  golang: 'golang:1.26-bookworm',
  debian: 'debian:bookworm-slim',
  rust: 'rust:1-bookworm',
  deno: 'denoland/deno:debian',
  php: 'php:8.2-cli',
  /** Oldest first. The slim ones have no compiler. */
  ruby: [
    { version: '3.1', build: 'ruby:3.1-bookworm', run: 'ruby:3.1-slim-bookworm' },
    { version: '3.3', build: 'ruby:3.3-trixie', run: 'ruby:3.3-slim-trixie' },
  ],
  java: [
    { version: 17, build: 'maven:3-eclipse-temurin-17', run: 'eclipse-temurin:17-jre' },
    { version: 21, build: 'maven:3-eclipse-temurin-21', run: 'eclipse-temurin:21-jre' },
    { version: 25, build: 'maven:3-eclipse-temurin-25', run: 'eclipse-temurin:25-jre' },
  ],
  /** Oldest first, as for Java. */
  dotnet: [
    { version: 8, build: 'mcr.microsoft.com/dotnet/sdk:8.0', run: 'mcr.microsoft.com/dotnet/aspnet:8.0' },
    { version: 10, build: 'mcr.microsoft.com/dotnet/sdk:10.0', run: 'mcr.microsoft.com/dotnet/aspnet:10.0' },
  ],
  elixir: [
    { version: '1.14', build: 'elixir:1.14', run: 'elixir:1.14-slim' },
    { version: '1.18', build: 'elixir:1.18', run: 'elixir:1.18-slim' },
  ],
} as const;

/** All of them. An installation without Docker Hub configures which ones it lacks. */
export const baseImages: readonly string[] = [
  ...images.node.map(({ image }) => image),
  ...images.python.map(({ image }) => image),
  ...images.java.flatMap(({ build, run }) => [build, run]),
  ...images.ruby.flatMap(({ build, run }) => [build, run]),
  ...images.dotnet.flatMap(({ build, run }) => [build, run]),
  ...images.elixir.flatMap(({ build, run }) => [build, run]),
  ...[images.nginx, images.golang, images.debian, images.rust, images.deno, images.php],
];

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
  const given = [...names].filter((name) => !(name in defaults)).map((name) => `ARG ${name}`);
  return [...Object.entries(defaults).map(([name, value]) => `ARG ${name}=${value}`), ...given];
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
