// Reads moorage.yaml and merges it with the HostedApp's settings; rejects services that this installation does not offer.
import { posix } from 'node:path';
import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
} from 'yaml';
import type { z } from 'zod';
import { manifestFile, type ReportedSettings, appManifest, type AppManifest } from '../../crds/app-manifest.ts';
import { resolveSpec } from '../../crds/effective-settings.ts';
import { addSubdomain } from '../../crds/names.ts';
import { type Finding, author, build, listing, models, run, source, spec } from '../../crds/hosted-app.ts';
import { mcp } from '../../crds/values.ts';
import { checkOneProcess, checkSubdomains, checkTaskCalls, resolveComponents } from './components.ts';
import { type PipelineInput, toResolvableApp } from './contract.ts';
import { mergePlatforms } from './plan/platforms/settings.ts';
import type { Rule } from './review/review.ts';
import { findExcess } from './settings-report.ts';
import type { Tree } from './tree.ts';
import { keepHead, toOneLine } from './text.ts';

export interface MergedInput {
  readonly input: PipelineInput;
  /** Settings from moorage.yaml and, below them, from files for other platforms; reported to the operator. */
  readonly settings: ReportedSettings | undefined;
  /** Findings about files for other platforms, and about services that this installation does not offer. */
  readonly findings: readonly Finding[];
}

/** Builds the input of a stage for this tree. A rejected file changes nothing. */
export function mergeManifest(baseInput: PipelineInput, tree: Tree): MergedInput {
  const { settings: ownSettings } = readManifest(tree);
  const { settings, findings: platformFindings } = mergePlatforms(tree, ownSettings, baseInput);
  const excess = settings === undefined ? undefined : findExcess(settings);
  const findings = [
    ...platformFindings,
    ...checkOfferedServices(baseInput, settings),
    ...checkOneProcess(baseInput, settings),
    ...(baseInput.components === undefined ? [...checkTaskCalls(settings), ...checkSubdomains(settings)] : []),
    ...(excess === undefined ? [] : [excess]),
  ];
  if (settings === undefined) return { input: fillBuilds(baseInput), settings, findings };
  const resolved = resolveSpec(toResolvableApp(baseInput), settings);
  const { source, build, run } = resolved;
  const path = posix.normalize(source.path).replace(/(?!^)\/$/, '');
  const { strategy, dockerfile, target } = build;
  const input = {
    ...baseInput,
    path,
    build: {
      strategy,
      dockerfile,
      ...(target === undefined ? {} : { target }),
      args: build.args,
      env: build.env,
    },
    ...(run.port === undefined ? {} : { port: run.port }),
    mcp: resolved.mcp,
    hasCommand:
      baseInput.hasCommand || (!baseInput.pinned.includes('run.command') && (settings.run?.command ?? []).length > 0),
  };
  const components = resolveComponents(baseInput, settings);
  return {
    input: fillBuilds({ ...input, ...(components.length === 0 ? {} : { components: [...components] }) }),
    settings,
    findings,
  };
}

/** Puts the address of the app into the variables that it and each of its components is built with. */
function fillBuilds(input: PipelineInput): PipelineInput {
  const fill = (build: PipelineInput['build']): PipelineInput['build'] => ({
    ...build,
    args: fillAddress(build.args, input.url),
    env: fillAddress(build.env, input.url),
  });
  return {
    ...input,
    build: fill(input.build),
    ...(input.components === undefined
      ? {}
      : { components: input.components.map((each) => ({ ...each, build: fill(each.build) })) }),
  };
}

/** Replaces ${{app.url}}, ${{app.host}} and those of subdomains in variables of a build, such as those of pages. */
export function fillAddress<Variable extends { readonly value: string }>(
  variables: readonly Variable[],
  url: string | undefined,
): Variable[] {
  if (url === undefined) return [...variables];
  const { host, hostname, origin } = new URL(url);
  // In an address, such as that of a WebSocket, the host name has the port.
  const fill = (_whole: string, before: string, subdomain: string | undefined, field: string): string =>
    `${before}${addSubdomain(field === 'url' ? origin : before === '' ? hostname : host, subdomain)}`;
  return variables.map((variable) => ({
    ...variable,
    value: variable.value.replaceAll(
      /((?:wss?|https?):\/\/|)\$\{\{ {0,3}app\.(?:([a-z][-a-z0-9]{0,14})\.)?(url|host) {0,3}\}\}/g,
      fill,
    ),
  }));
}

/** Describes in the log which settings came from the file. */
export function describeManifest(settings: ReportedSettings | undefined): string[] {
  if (settings === undefined) return [];
  const { platform, ...values } = settings;
  const file = platform === undefined ? manifestFile : `${manifestFile} and of ${platform.file}`;
  return [`settings of ${file}: ${JSON.stringify(values)}`];
}

/** Rule: moorage.yaml, if present, contains only settings that authors may set. */
export const manifestRule: Rule = {
  name: 'settings',
  check: ({ tree }) => readManifest(tree).findings,
};

/** Reports services that are not offered, from the HostedApp or else from the repository. */
function checkOfferedServices(
  { services, offered, pinned }: Pick<PipelineInput, 'services' | 'offered' | 'pinned'>,
  settings: ReportedSettings | undefined,
): Finding[] {
  if (offered === undefined) return [];
  const isSet = services.length > 0 || pinned.includes('services');
  const needed = isSet ? services : (settings?.services ?? []);
  const where = isSet ? {} : { file: nameSettingsFile(settings) };
  const types = [...new Set(offered.types.map((type) => type.split('-')[0] ?? type))].sort();
  const missing = needed.filter(({ type }) => !types.includes(type));
  if (missing.length > 0) return [{ ...where, ...toUnavailable(missing, types) }];
  if (needed.length <= offered.count) return [];
  return [
    {
      rule: 'services/too-many',
      severity: 'error',
      ...where,
      message: `The app needs ${needed.length} services; this installation runs at most ${offered.count} for an app.`,
      fix: 'Set services in moorage.yaml to those that the app cannot do without.',
    },
  ];
}

function nameSettingsFile(settings: ReportedSettings | undefined): string {
  const { platform } = settings ?? {};
  return platform?.fields.includes('services') === true ? platform.file : manifestFile;
}

function toUnavailable(missing: readonly { name: string; type: string }[], types: readonly string[]): Finding {
  const offered = types.length === 0 ? 'are none' : `is: ${types.join(', ')}`;
  return {
    rule: 'services/unavailable',
    severity: 'error',
    message: `The app needs ${missing.map(({ name, type }) => `${name} (${type})`).join(', ')}, for which this installation has no image.`,
    fix: `Set services in moorage.yaml to those that the app cannot do without; here there ${offered}. Or ask the operator of this installation to set services.images.`,
  };
}

// The file is read with size limits and without aliases, and every problem names its field and line.

/** Settings from the file; none if any finding is an error. */
interface ManifestResult {
  readonly settings?: AppManifest;
  readonly findings: readonly Finding[];
}

const maximumBytes = 16 * 1024;
const deepest = 12;

/** Reads the file at the repository's root. */
export function readManifest(tree: Tree): ManifestResult {
  const entry = tree.getEntry(manifestFile);
  if (entry === undefined) return { findings: findMisnamed(tree) };
  if (entry.kind !== 'file')
    return rejectFile('This is not a regular file.', 'Commit the file itself at this path, not a link or a folder.');
  if (entry.bytes > maximumBytes)
    return rejectFile(
      'This file is larger than 16 KiB.',
      'Keep only settings for this platform in it; put what the app itself reads into other files.',
    );
  const lines = new LineCounter();
  const document = parseSettings(tree.readFile(manifestFile, maximumBytes) ?? '', lines);
  return document instanceof Error ? rejectYaml(document.message) : validateSettings(document, lines);
}

function validateSettings(document: Document.Parsed, lines: LineCounter): ManifestResult {
  const [wrong] = [...document.errors, ...document.warnings];
  if (wrong !== undefined) return rejectYaml(wrong.message.split('\n')[0] ?? '', lines.linePos(wrong.pos[0]).line);
  const odd = findOddNode(document);
  if (odd !== undefined) return rejectFile(odd.what, odd.fix, lines.linePos(odd.at).line);
  const value: unknown = document.toJS({ maxAliasCount: 0 });
  const read = appManifest.safeParse(value ?? {});
  if (!read.success) return { findings: toFindings(read.error, document, lines) };
  const excess = findExcess(read.data);
  if (excess !== undefined) return { findings: [excess] };
  return { settings: read.data, findings: [] };
}

/** Parses as much YAML as possible. Text nested too deeply for the parser is rejected too. */
function parseSettings(text: string, lines: LineCounter): Document.Parsed | Error {
  try {
    return parseDocument(text.replace(/^\ufeff/, ''), {
      lineCounter: lines,
      prettyErrors: false,
      uniqueKeys: true,
      version: '1.2',
      schema: 'core',
      merge: false,
    });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function findOddNode(document: Document.Parsed): { what: string; fix: string; at: number } | undefined {
  let odd: { what: string; fix: string; at: number } | undefined;
  visit(document, (_key, node, path) => {
    const at = isNode(node) ? (node.range?.[0] ?? 0) : 0;
    if (isAlias(node) || ((isScalar(node) || isCollection(node)) && node.anchor !== undefined))
      odd = { what: 'Anchors and aliases (& and *) are not supported.', fix: 'Write the value where it is used.', at };
    else if (path.length > 2 * deepest)
      odd = { what: 'This is nested too deeply.', fix: 'Settings are at most four levels deep; see the README.', at };
    return odd === undefined ? undefined : visit.BREAK;
  });
  return odd;
}

function findMisnamed(tree: Tree): Finding[] {
  const file = ['moorage.yml', '.moorage.yaml', '.moorage.yml'].find((name) => tree.has(name));
  if (file === undefined) return [];
  return [
    {
      rule: 'settings/name',
      severity: 'warning',
      file,
      message: 'This file is ignored.',
      fix: `Rename it to ${manifestFile} if it contains settings for this platform.`,
    },
  ];
}

function rejectYaml(message: string, line?: number): ManifestResult {
  return rejectFile(
    `This is not valid YAML: ${keepHead(toOneLine(message), 300)}.`.replace(/\.\.$/, '.'),
    'Correct the syntax: each setting is a line like "port: 8000" under its section ("run:"), indented by two spaces.',
    line,
  );
}

function rejectFile(message: string, fix: string, line?: number): ManifestResult {
  return {
    findings: [
      {
        rule: 'settings/invalid',
        severity: 'error',
        file: manifestFile,
        message,
        fix,
        ...(line === undefined ? {} : { line }),
      },
    ],
  };
}

const maximumProblems = 10;
type Path = readonly PropertyKey[];
type Issue = z.core.$ZodIssue;

/** Converts validation errors of a YAML file to findings. */
function toFindings(error: z.ZodError, document: Document.Parsed, lines: LineCounter): Finding[] {
  return error.issues
    .flatMap(toProblems)
    .slice(0, maximumProblems)
    .map(({ path, message, fix }) => ({
      rule: 'settings/invalid',
      severity: 'error',
      file: manifestFile,
      line: findLine(document, lines, path),
      message: keepHead(toOneLine(message), 400),
      fix: keepHead(toOneLine(fix), 590),
    }));
}

interface SettingProblem {
  readonly path: Path;
  readonly message: string;
  readonly fix: string;
}

function toProblems(issue: Issue): SettingProblem[] {
  const field = formatField(issue.path);
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => toUnknownField([...issue.path, key]));
  const expected =
    issue.code === 'invalid_type'
      ? `${field} must be ${kinds[issue.expected] ?? issue.expected}`
      : `${field}: ${issue.message}`;
  const hint =
    issue.code === 'invalid_type' && issue.expected === 'string'
      ? ' Put a number or true and false in quotes where text is wanted, like "1".'
      : '';
  return [
    {
      path: issue.path,
      message: `${expected}.`.replace(/\.\.$/, '.'),
      fix: `Correct ${field} in ${manifestFile}.${hint}`,
    },
  ];
}

const kinds: Readonly<Record<string, string>> = {
  string: 'text',
  int: 'a whole number',
  number: 'a number',
  array: 'a list',
  object: 'a section with fields of its own',
};

/** Reports a field that authors cannot set, because it does not exist or belongs to the operator. */
function toUnknownField(path: Path): SettingProblem {
  const field = formatField(path);
  const above = path.slice(0, -1);
  const known = installationFields.has(field);
  const offered = listFields(above);
  const where = above.length === 0 ? 'at the top' : `in ${formatField(above)}`;
  const choice = offered.length === 0 ? '' : ` There are ${where}: ${offered.join(', ')}.`;
  return known
    ? {
        path,
        message: `${field} cannot be set in ${manifestFile}.`,
        fix:
          field === 'run.secrets'
            ? 'Remove run.secrets. Never commit a secret: set it with PUT /api/apps/{slug}/secrets/NAME.'
            : `Remove ${field}: only the operator of this installation can set it.`,
      }
    : { path, message: `Unknown setting ${field}.`, fix: `Remove ${field}, or correct its name.${choice}` };
}

/** Other fields of HostedApp. Fields that appManifest accepts are handled earlier. */
const installationFields: ReadonlySet<string> = new Set([
  ...Object.keys(spec.shape),
  ...Object.entries({ source, build, run, mcp, listing, author, models }).flatMap(([section, schema]) =>
    Object.keys(schema.shape).map((name) => `${section}.${name}`),
  ),
]);

function listFields(path: Path): string[] {
  let schema: unknown = appManifest;
  for (const name of path) schema = unwrap((readShape(schema) ?? {})[String(name)]);
  return Object.keys(readShape(schema) ?? {});
}

function unwrap(schema: unknown): unknown {
  return typeof schema === 'object' && schema !== null && 'unwrap' in schema
    ? (schema as { unwrap: () => unknown }).unwrap()
    : schema;
}

function readShape(schema: unknown): Record<string, unknown> | undefined {
  return typeof schema === 'object' && schema !== null && 'shape' in schema
    ? (schema.shape as Record<string, unknown>)
    : undefined;
}

/** Formats a field path, such as run.env[0].value. */
function formatField(path: Path): string {
  if (path.length === 0) return 'the file';
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${String(part)}`))
    .join('');
}

/** Finds the line of the deepest part of `path` that exists in the file. */
function findLine(document: Document.Parsed, lines: LineCounter, path: Path): number {
  let position: NodePosition = { node: document.contents, at: document.contents?.range[0] ?? 0 };
  for (const part of path) {
    const next = findBelow(position.node, part);
    if (next === undefined) break;
    position = { node: next.node, at: next.at ?? position.at };
  }
  return lines.linePos(position.at ?? 0).line;
}

interface NodePosition {
  readonly node: unknown;
  readonly at: number | undefined;
}

/** Finds a part: a section's field starts at its name, a list item at its value. */
function findBelow(node: unknown, part: PropertyKey): NodePosition | undefined {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
    return pair === undefined ? undefined : { node: pair.value, at: readStart(pair.key) };
  }
  return isSeq(node) && typeof part === 'number'
    ? { node: node.items[part], at: readStart(node.items[part]) }
    : undefined;
}

function readStart(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
