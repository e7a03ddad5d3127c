// Reads the versions of a package that the author's files request, and whether any of them is new enough.
import semver from 'semver';
import { readField, readKeys, parseJson, parseToml, readText, readTexts } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import { readConda } from './conda.ts';
import { normalizePackageName, parseRequirementName } from './names.ts';

const lockBytes = 8 * 1024 * 1024;

/** The range as written in the file that names the packages; undefined if it gives no version. */
export function readRequestedRange(tree: Tree, file: string, name: string): string | undefined {
  const range = readVersion(tree, file, name)?.trim();
  return range === undefined || range === '' || range === '*' ? undefined : range;
}

function readVersion(tree: Tree, file: string, name: string): string | undefined {
  switch (file) {
    case 'uv.lock':
    case 'poetry.lock':
      return findLockedVersion(tree.readFile(file, lockBytes) ?? '', name);
    case 'Pipfile.lock':
      return readFromTable(readField(parseJson(tree.readFile(file, lockBytes)), 'default'), name);
    case 'Pipfile':
      return readFromTable(readField(parseToml(tree.readFile(file)), 'packages'), name);
    case 'pyproject.toml':
      return readFromProject(parseToml(tree.readFile(file)), name);
    default:
      return readFromLines(readLines(tree, file), name);
  }
}

function findLockedVersion(content: string, name: string): string | undefined {
  const found = [...content.matchAll(/^name = "([A-Za-z0-9._-]{1,100})"\r?\nversion = "([^"\n]{1,60})"$/gm)];
  return found.find(([, each = '']) => normalizePackageName(each) === name)?.[2];
}

function readFromTable(table: unknown, name: string): string | undefined {
  const key = readKeys(table).find((each) => normalizePackageName(each) === name);
  return key === undefined ? undefined : (readText(table, key) ?? readText(table, key, 'version'));
}

function readFromProject(parsed: unknown, name: string): string | undefined {
  return (
    readFromLines(readTexts(parsed, 'project', 'dependencies'), name) ??
    readFromTable(readField(parsed, 'tool', 'poetry', 'dependencies'), name)
  );
}

function readLines(tree: Tree, file: string): readonly string[] {
  const conda = readConda(tree);
  if (conda?.file === file) return conda.requirements;
  return (tree.readFile(file) ?? '').split('\n').map((line) => line.trim());
}

function readFromLines(requirements: readonly string[], name: string): string | undefined {
  const line = requirements.find((each) => parseRequirementName(each)[0] === name);
  return /^[A-Za-z0-9._-]{1,100}[ \t]{0,9}(?:\[[^\]]{0,200}\])?[ \t]{0,9}\(?([^;#)]{0,200})/.exec(line ?? '')?.[1];
}

/** Returns true if the range has no version from `first` on; false if it cannot be parsed. */
export function isBelow(range: string, first: string): boolean {
  const converted = range
    .split('||')
    .map((alternative) => alternative.split(',').map(toNpmComparator).join(' '))
    .join(' || ');
  return semver.validRange(converted) !== null && !semver.intersects(converted, `>=${first}`);
}

/** Converts a PEP 440 or Poetry clause to npm syntax. Drops everything after the third number (post1, rc1). */
function toNpmComparator(clause: string): string {
  const match = /^(===?|!=|<=|>=|<|>|~=|\^|~)?\s{0,9}v?(\d{1,9}(?:\.(?:\d{1,9}|\*)){0,2})/.exec(clause.trim());
  if (match === null) return '';
  const [, operator = '==', version = ''] = match;
  return (writers[operator] ?? formatExact)(version, operator);
}

type Writer = (version: string, operator: string) => string;

const formatExact: Writer = (version) =>
  version.includes('*') ? version.replace('*', 'x') : formatThreeNumbers(version);
const formatBound: Writer = (version, operator) => `${operator}${formatThreeNumbers(version.replace(/\.\*$/, ''))}`;
const formatAsIs: Writer = (version, operator) => `${operator}${version.replace(/\.\*$/, '')}`;

const writers: Readonly<Record<string, Writer>> = {
  '!=': () => '',
  '<': formatBound,
  '<=': formatBound,
  '>': formatBound,
  '>=': formatBound,
  '^': formatAsIs,
  '~': formatAsIs,
  // The last number may increase: ~=0.8 allows everything below 1, which npm's ~ does not.
  '~=': (version) =>
    version.split('.').length > 2
      ? `~${version}`
      : `>=${formatThreeNumbers(version)} <${Number(version.split('.')[0] ?? '0') + 1}.0.0`,
};

/** Formats three numbers: Python reads 0.8 as 0.8.0, npm as any 0.8 version. */
function formatThreeNumbers(version: string): string {
  const [major = '0', minor = '0', patch = '0'] = version.split('.');
  return `${major}.${minor}.${patch}`;
}
