// Which versions of a package the author's files ask for, and whether any of them is new enough.
import semver from 'semver';
import { readField, readKeys, parseJson, parseToml, readText, readTexts } from '../../../manifest.ts';
import type { Tree } from '../../../tree.ts';
import { readConda } from './conda.ts';
import { normalise, requirementName } from './names.ts';

const lockBytes = 8 * 1024 * 1024;

/** As it is written in the file that names the packages; undefined when it names no version. */
export function askedVersions(tree: Tree, file: string, name: string): string | undefined {
  const range = read(tree, file, name)?.trim();
  return range === undefined || range === '' || range === '*' ? undefined : range;
}

function read(tree: Tree, file: string, name: string): string | undefined {
  switch (file) {
    case 'uv.lock':
    case 'poetry.lock':
      return locked(tree.text(file, lockBytes) ?? '', name);
    case 'Pipfile.lock':
      return ofTable(readField(parseJson(tree.text(file, lockBytes)), 'default'), name);
    case 'Pipfile':
      return ofTable(readField(parseToml(tree.text(file)), 'packages'), name);
    case 'pyproject.toml':
      return ofProject(parseToml(tree.text(file)), name);
    default:
      return ofLines(lines(tree, file), name);
  }
}

function locked(content: string, name: string): string | undefined {
  const found = [...content.matchAll(/^name = "([A-Za-z0-9._-]{1,100})"\r?\nversion = "([^"\n]{1,60})"$/gm)];
  return found.find(([, each = '']) => normalise(each) === name)?.[2];
}

function ofTable(table: unknown, name: string): string | undefined {
  const own = readKeys(table).find((each) => normalise(each) === name);
  return own === undefined ? undefined : (readText(table, own) ?? readText(table, own, 'version'));
}

function ofProject(parsed: unknown, name: string): string | undefined {
  return (
    ofLines(readTexts(parsed, 'project', 'dependencies'), name) ??
    ofTable(readField(parsed, 'tool', 'poetry', 'dependencies'), name)
  );
}

function lines(tree: Tree, file: string): readonly string[] {
  const conda = readConda(tree);
  if (conda?.file === file) return conda.requirements;
  return (tree.text(file) ?? '').split('\n').map((line) => line.trim());
}

function ofLines(requirements: readonly string[], name: string): string | undefined {
  const line = requirements.find((each) => requirementName(each)[0] === name);
  return /^[A-Za-z0-9._-]{1,100}[ \t]{0,9}(?:\[[^\]]{0,200}\])?[ \t]{0,9}\(?([^;#)]{0,200})/.exec(line ?? '')?.[1];
}

/** True when the range has no version from `first` on. One that cannot be read may have. */
export function isBelow(range: string, first: string): boolean {
  const converted = range
    .split('||')
    .map((alternative) => alternative.split(',').map(comparator).join(' '))
    .join(' || ');
  return semver.validRange(converted) !== null && !semver.intersects(converted, `>=${first}`);
}

/** A clause of PEP 440 or of Poetry as npm writes it. What follows the third number (post1, rc1) is left out. */
function comparator(clause: string): string {
  const match = /^(===?|!=|<=|>=|<|>|~=|\^|~)?\s{0,9}v?(\d{1,9}(?:\.(?:\d{1,9}|\*)){0,2})/.exec(clause.trim());
  if (match === null) return '';
  const [, operator = '==', version = ''] = match;
  return (writers[operator] ?? exact)(version, operator);
}

type Writer = (version: string, operator: string) => string;

const exact: Writer = (version) => (version.includes('*') ? version.replace('*', 'x') : whole(version));
const bound: Writer = (version, operator) => `${operator}${whole(version.replace(/\.\*$/, ''))}`;
const asIs: Writer = (version, operator) => `${operator}${version.replace(/\.\*$/, '')}`;

const writers: Readonly<Record<string, Writer>> = {
  '!=': () => '',
  '<': bound,
  '<=': bound,
  '>': bound,
  '>=': bound,
  '^': asIs,
  '~': asIs,
  // The last number may grow: ~=0.8 goes on until 1, which npm's own ~ does not.
  '~=': (version) =>
    version.split('.').length > 2
      ? `~${version}`
      : `>=${whole(version)} <${Number(version.split('.')[0] ?? '0') + 1}.0.0`,
};

/** Three numbers: 0.8 is 0.8.0 in Python, and any of 0.8 to npm. */
function whole(version: string): string {
  const [major = '0', minor = '0', patch = '0'] = version.split('.');
  return `${major}.${minor}.${patch}`;
}
