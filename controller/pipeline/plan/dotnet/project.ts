// Reads the projects of a .NET repository: the kind, target frameworks and references of each.
import { posix } from 'node:path';
import type { Tree } from '../../tree.ts';

export type ProjectKind =
  'web' | 'wasm' | 'host' | 'test' | 'console' | 'desktop' | 'function' | 'framework' | 'library';

export interface DotnetProject {
  readonly path: string;
  readonly folder: string;
  /** File name without its extension. */
  readonly name: string;
  readonly kind: ProjectKind;
  readonly text: string;
  /** Target frameworks as written (`net8.0`): its own, or those of Directory.Build.props. */
  readonly targets: readonly string[];
  /** Assembly name; undefined if only MSBuild can compute it. */
  readonly assembly: string | undefined;
  readonly packages: ReadonlySet<string>;
  /** Paths of the projects that it references. */
  readonly references: readonly string[];
}

const projectFile = /\.(?:cs|fs|vb)proj$/;
const maximumProjects = 300;
const projectBytes = 256 * 1024;
const shared = ['Directory.Build.props', 'Directory.Packages.props', 'Directory.Build.targets'];

const marker = /^[^/]{1,100}\.(?:csproj|fsproj|vbproj|slnx?)$/;
/** Files that mark the tree, or a folder in it, as an app in another language. */
const foreign =
  /^(?:(?:[^/]+\/){0,2}(?:package\.json|requirements\.txt|pyproject\.toml|Pipfile|setup\.py|go\.mod|Cargo\.toml|pom\.xml|build\.gradle(?:\.kts)?|composer\.json|Gemfile|mix\.exs|deno\.jsonc?)|[^/]+\.(?:py|html?|php|[cm]?[jt]s|rb))$/;

/** Returns whether there is a solution or project at the root. */
export function isMarked(tree: Tree): boolean {
  return tree.entries.some(({ kind, path }) => kind === 'file' && marker.test(path));
}

/** Returns whether there is one at the root; or projects below it, and nothing in another language. */
export function isDotnet(tree: Tree): boolean {
  return isMarked(tree) || !tree.entries.some(({ kind, path }) => kind === 'file' && foreign.test(path));
}

export function readProjects(tree: Tree): DotnetProject[] {
  return tree.entries
    .filter(({ kind, path }) => kind === 'file' && projectFile.test(path) && !/(?:^|\/)\.[^/]+\//.test(path))
    .slice(0, maximumProjects)
    .map(({ path }) => readProject(tree, path));
}

function readProject(tree: Tree, path: string): DotnetProject {
  const text = removeComments(tree.readFile(path, projectBytes) ?? '');
  const folder = posix.dirname(path);
  const texts = [text, ...readSharedTexts(tree, folder)];
  const name = posix.basename(path).replace(projectFile, '');
  const packages = new Set(
    [...text.matchAll(/<PackageReference\s[^>]{0,200}?\bInclude\s?=\s?"([^"]{1,200})"/g)].map(
      ([, found = '']) => found,
    ),
  );
  const references = [...text.matchAll(/<ProjectReference\s[^>]{0,400}?\bInclude\s?=\s?"([^"]{1,400})"/g)].map(
    ([, found = '']) => posix.normalize(posix.join(folder, found.replaceAll('\\', '/'))),
  );
  return {
    path,
    folder,
    name,
    text,
    kind: classifyProject({ text, path, name, packages }),
    targets: listTargets(texts),
    assembly: resolveAssembly(texts, name),
    packages,
    references,
  };
}

/** Lists the properties files that apply to every project below them, nearest first. */
function readSharedTexts(tree: Tree, folder: string): string[] {
  const folders =
    folder === '.'
      ? ['.']
      : [...folder.split('/').map((_, index, all) => all.slice(0, all.length - index).join('/')), '.'];
  return shared.flatMap((name) => {
    const found = folders.map((each) => posix.join(each, name)).find((each) => tree.has(each));
    return found === undefined ? [] : [removeComments(tree.readFile(found, projectBytes) ?? '')];
  });
}

/** Reads a property, and expands the known properties in it. */
function readProperty(texts: readonly string[], name: string, depth = 0): string | undefined {
  const pattern = new RegExp(`<${name}(?:\\s[^>]{0,300})?>\\s{0,20}([^<]{1,300}?)\\s{0,20}</${name}>`);
  const found = texts
    .map((text) => pattern.exec(text)?.[1])
    .find((value) => value !== undefined && !value.includes(`$(${name})`));
  return depth > 2
    ? found
    : found?.replace(/\$\((\w{1,80})\)/g, (whole, inner: string) => readProperty(texts, inner, depth + 1) ?? whole);
}

function listTargets(texts: readonly string[]): string[] {
  const found =
    readProperty(texts, 'TargetFrameworks') ??
    readProperty(texts, 'TargetFramework') ??
    readProperty(texts, 'TargetFrameworkVersion') ??
    '';
  return found
    .split(';')
    .map((each) => each.trim().toLowerCase())
    .filter((each) => each !== '');
}

function resolveAssembly(texts: readonly string[], name: string): string | undefined {
  const found = (readProperty(texts, 'AssemblyName') ?? name).replaceAll('$(MSBuildProjectName)', name);
  return /^[\w.+-]{1,200}$/.test(found) ? found : undefined;
}

type ProjectManifest = Pick<DotnetProject, 'text' | 'path' | 'name' | 'packages'>;

/** Checked in order: a test project is a test first, whatever else it is. */
const kinds: readonly (readonly [ProjectKind, (project: ProjectManifest) => boolean])[] = [
  ['test', isTest],
  ['host', ({ text }) => /Aspire\.AppHost\.Sdk|<IsAspireHost>\s*true/i.test(text)],
  ['framework', ({ text }) => !hasSdk(text, '') || /<TargetFrameworkVersion>/.test(text)],
  ['function', ({ text }) => /<AzureFunctionsVersion>|AWSProjectType>\s*Lambda/.test(text)],
  ['wasm', ({ text }) => hasSdk(text, 'Microsoft.NET.Sdk.BlazorWebAssembly')],
  [
    'desktop',
    ({ text }) =>
      /<Use(?:WPF|WindowsForms|Maui|WinUI)>\s*true|Include="Avalonia(?:\.Desktop)?"|net\d+\.\d-(?:android|ios|windows)/i.test(
        text,
      ),
  ],
  [
    'library',
    ({ text }) => /<OutputType>\s*Library|<IsPackable>\s*true/i.test(text) && !hasSdk(text, 'Microsoft.NET.Sdk.Web'),
  ],
  ['library', ({ text }) => /<OutputType>\s*Library/i.test(text)],
  ['web', ({ text }) => hasSdk(text, 'Microsoft.NET.Sdk.Web')],
  ['web', ({ text }) => isProgram(text) && /<FrameworkReference\s[^>]{0,100}Microsoft\.AspNetCore\.App/.test(text)],
  [
    'web',
    ({ text, packages }) =>
      isProgram(text) &&
      ['Saturn', 'Giraffe', 'Suave', 'Falco', 'EmbedIO', 'NetCoreServer'].some((each) => packages.has(each)),
  ],
  ['console', ({ text }) => isProgram(text) || hasSdk(text, 'Microsoft.NET.Sdk.Worker')],
];

function classifyProject(project: ProjectManifest): ProjectKind {
  return kinds.find(([, is]) => is(project))?.[0] ?? 'library';
}

function isTest({ text, path, name, packages }: ProjectManifest): boolean {
  return (
    /<IsTestProject>\s*true/i.test(text) ||
    packages.has('Microsoft.NET.Test.Sdk') ||
    hasSdk(text, 'MSTest.Sdk') ||
    (/(?:^|[._-])(?:\w{0,20}Tests?|Specs?|Benchmarks?|Fuzz)$/i.test(name) && !/^(?:latest|contest)$/i.test(name)) ||
    /(?:^|\/)(?:tests?|test-?projects|fuzz|benchmarks?)\//i.test(path)
  );
}

/** Matches `<Project Sdk="NAME">`, `<Sdk Name="NAME">` or an import of it; an empty name matches any SDK. */
function hasSdk(text: string, name: string): boolean {
  return new RegExp(
    String.raw`\bSdk\s?=\s?"${name.replaceAll('.', String.raw`\.`)}${name === '' ? '' : '(?:"|/)'}|<Sdk\s[^>]{0,60}Name\s?=\s?"${name.replaceAll('.', String.raw`\.`)}`,
  ).test(text);
}

function isProgram(text: string): boolean {
  return /<OutputType>\s*(?:Exe|WinExe)/i.test(text);
}

function removeComments(text: string): string {
  return text.replace(/<!--[\s\S]{0,20000}?-->/g, '');
}
