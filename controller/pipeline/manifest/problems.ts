// Says what is wrong in moorage.yaml: the field, its line, and what to write instead.
import { isMap, isNode, isScalar, isSeq, type Document, type LineCounter } from 'yaml';
import type { z } from 'zod';
import { appManifest, manifestFile } from '../../../crds/app-manifest.ts';
import { author, build, listing, models, run, source, spec, type Finding } from '../../../crds/hosted-app.ts';
import { head, oneLine } from '../text.ts';

const maximumProblems = 10;
type Path = readonly PropertyKey[];
type Issue = z.core.$ZodIssue;

/** The findings of a file that is YAML, but not good settings. */
export function problemsOf(error: z.ZodError, document: Document.Parsed, lines: LineCounter): Finding[] {
  return error.issues
    .flatMap(split)
    .slice(0, maximumProblems)
    .map(({ path, message, fix }) => ({
      rule: 'settings/invalid',
      severity: 'error',
      file: manifestFile,
      line: lineOf(document, lines, path),
      message: head(oneLine(message), 400),
      fix: head(oneLine(fix), 590),
    }));
}

interface SettingProblem {
  readonly path: Path;
  readonly message: string;
  readonly fix: string;
}

function split(issue: Issue): SettingProblem[] {
  const field = nameOf(issue.path);
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownField([...issue.path, key]));
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

/** A field that an author cannot set: because there is none, or because it is not his to set. */
function unknownField(path: Path): SettingProblem {
  const field = nameOf(path);
  const above = path.slice(0, -1);
  const known = ofInstallation.has(field);
  const offered = fieldsAt(above);
  const where = above.length === 0 ? 'at the top' : `in ${nameOf(above)}`;
  const choice = offered.length === 0 ? '' : ` There are ${where}: ${offered.join(', ')}.`;
  return known
    ? {
        path,
        message: `${field} cannot be set in ${manifestFile}.`,
        fix: `Remove ${field}: only the operator of this installation can set it.${field === 'run.secrets' ? ' Never commit a secret.' : ''}`,
      }
    : { path, message: `Unknown setting ${field}.`, fix: `Remove ${field}, or correct its name.${choice}` };
}

/** Fields of HostedApp. Those that appManifest takes never come here. */
const ofInstallation: ReadonlySet<string> = new Set([
  ...Object.keys(spec.shape),
  ...Object.entries({ source, build, run, listing, author, models }).flatMap(([section, schema]) =>
    Object.keys(schema.shape).map((name) => `${section}.${name}`),
  ),
]);

function fieldsAt(path: Path): string[] {
  let schema: unknown = appManifest;
  for (const name of path) schema = unwrapped((shapeOf(schema) ?? {})[String(name)]);
  return Object.keys(shapeOf(schema) ?? {});
}

function unwrapped(schema: unknown): unknown {
  return typeof schema === 'object' && schema !== null && 'unwrap' in schema
    ? (schema as { unwrap: () => unknown }).unwrap()
    : schema;
}

function shapeOf(schema: unknown): Record<string, unknown> | undefined {
  return typeof schema === 'object' && schema !== null && 'shape' in schema
    ? (schema.shape as Record<string, unknown>)
    : undefined;
}

/** run.env[0].value */
function nameOf(path: Path): string {
  if (path.length === 0) return 'the file';
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index === 0 ? '' : '.'}${String(part)}`))
    .join('');
}

/** The line of the deepest part of `path` that the file has. */
function lineOf(document: Document.Parsed, lines: LineCounter, path: Path): number {
  let position: Position = { node: document.contents, at: document.contents?.range[0] ?? 0 };
  for (const part of path) {
    const next = below(position.node, part);
    if (next === undefined) break;
    position = { node: next.node, at: next.at ?? position.at };
  }
  return lines.linePos(position.at ?? 0).line;
}

interface Position {
  readonly node: unknown;
  readonly at: number | undefined;
}

/** A field of a section begins at its name, an item of a list at itself. */
function below(node: unknown, part: PropertyKey): Position | undefined {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
    return pair === undefined ? undefined : { node: pair.value, at: startOf(pair.key) };
  }
  return isSeq(node) && typeof part === 'number'
    ? { node: node.items[part], at: startOf(node.items[part]) }
    : undefined;
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined;
}
