// Chooses the Python image that a project and its workflows request.
import { languages } from '../../../../crds/languages.ts';
import { parseToml, readField, readText } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { type PlanInput } from '../recipe.ts';
import { readConda } from './packages/conda.ts';
import type { PythonPackages } from './packages/find.ts';
import { findWheelLimit } from './packages/wheels.ts';
import { listPythonSources } from './start/sources.ts';

export interface PythonChoice {
  readonly version: string;
  readonly image: string;
  /** A sentence that names the file and the requested version; absent if there is no request. */
  readonly because?: string;
  /** The requested version, if it is not available. */
  readonly instead?: RequestedPython;
}

export interface RequestedPython {
  readonly file: string;
  readonly requestedVersion: string;
}

type Version = readonly [number, number];

/**
 * Returns the image to use, or the request that no image satisfies. A version that a file names decides; then a range,
 * the test workflows, the wheels of pinned packages and the day of the commit. Without any of these, it is the first of
 * the list.
 */
export function choosePython(
  tree: Tree,
  { missingImages = [] }: Pick<PlanInput, 'missingImages'> = {},
  packages?: Pick<PythonPackages, 'file' | 'names'>,
): PythonChoice | RequestedPython {
  const range = findRequestedRange(tree);
  const available = languages.python.images.filter((each) => !missingImages.includes(each.image));
  const fitting = available.filter(
    (each) => range === undefined || isWithinRange(parse(each.version), range.requestedVersion),
  );
  if (range !== undefined && fitting.length === 0) return range;
  const exact = findRequestedVersion(tree);
  if (exact !== undefined) return selectNearest(exact, fitting);
  const usual = chooseUsual(tree, fitting, packages);
  const tested = range === undefined ? findNewerTested(usual, tree) : undefined;
  if (tested !== undefined) {
    const { version, image } = selectNearest(tested, fitting);
    return { version, image, because: `${tested.file} tests with Python ${tested.requestedVersion} and no older one.` };
  }
  const because = [
    ...(range === undefined ? [] : [`${range.file} asks for Python ${range.requestedVersion}.`]),
    ...(usual.because === undefined ? [] : [usual.because]),
  ].join(' ');
  return { version: usual.version, image: usual.image, ...(because === '' ? {} : { because }) };
}

/** Days on which each minor version of Python 3 was released. */
const releases: readonly (readonly [minor: number, day: string])[] = [
  [8, '2019-10-14'],
  [9, '2020-10-05'],
  [10, '2021-10-04'],
  [11, '2022-10-24'],
  [12, '2023-10-02'],
  [13, '2024-10-07'],
  [14, '2025-10-07'],
];
/** By then, compiled packages have wheels for a new version, and authors have changed to it. */
const adoption = 540 * 24 * 3600 * 1000;

/** Chooses what an author would have used on the day of the commit, unless a pinned package has no wheel for it. */
function chooseUsual(
  tree: Tree,
  fitting: readonly PythonChoice[],
  packages: Pick<PythonPackages, 'file' | 'names'> | undefined,
): PythonChoice {
  const [first = languages.python.images[0]] = fitting;
  const code = readCode(tree);
  // Build tools often give all files of a source distribution one constant day.
  const day = tree.registry === undefined ? tree.date : undefined;
  const onDay = day === undefined ? parse(first.version)[1] : findMinorOnDay(day);
  const minor = Math.min(Math.max(onDay, code.oldest), code.newest);
  const limit = packages === undefined ? undefined : findWheelLimit(tree, packages.file, packages.names);
  if (limit !== undefined && limit.newestMinor < minor)
    return {
      ...selectUpTo(limit.newestMinor, code.oldest, fitting),
      because: `${limit.name} ${limit.range} has wheels for Python 3.${limit.newestMinor} and no newer one.`,
    };
  const choice = selectUpTo(minor, code.oldest, fitting);
  const isExpected = choice.version === first.version || compare(parse(choice.version), [3, minor]) !== 0;
  return isExpected ? choice : { ...choice, because: explainMinor(minor, code, day) };
}

/** Selects the newest version up to a limit that the code runs on, or else the nearest. */
function selectUpTo(minor: number, oldest: number, fitting: readonly PythonChoice[]): PythonChoice {
  const sorted = fitting.toSorted((one, other) => compare(parse(one.version), parse(other.version)));
  const able = sorted.filter((each) => compare(parse(each.version), [3, oldest]) >= 0);
  const pool = able.length > 0 ? able : sorted;
  const choice = pool.findLast((each) => compare(parse(each.version), [3, minor]) <= 0) ?? pool[0];
  return choice ?? languages.python.images[0];
}

function explainMinor(minor: number, { oldest, newest }: VersionLimits, date: Date | undefined): string {
  if (minor === oldest) return `Its code needs Python 3.${oldest} or newer.`;
  if (minor === newest || date === undefined)
    return `Its code imports modules that Python has no longer after 3.${minor}.`;
  return `Python 3.${minor} was usual when it was committed (${date.toISOString().slice(0, 7)}).`;
}

function findMinorOnDay(date: Date): number {
  const adopted = releases.filter(([, day]) => Date.parse(day) + adoption <= date.getTime());
  return adopted.at(-1)?.[0] ?? firstMinor;
}

interface VersionLimits {
  readonly oldest: number;
  readonly newest: number;
}

const firstMinor = 8;
const maximumSources = 25;

/** Reads which versions run the likeliest sources. */
function readCode(tree: Tree): VersionLimits {
  const modules = listPythonSources(tree)
    .slice(0, maximumSources)
    .map(({ module }) => module);
  return {
    oldest: Math.max(0, ...modules.map(({ oldestMinor }) => oldestMinor)),
    newest: Math.min(Number.POSITIVE_INFINITY, ...modules.map(({ newestMinor }) => newestMinor)),
  };
}

/**
 * Returns the lowest Python version in the project's test workflows, if each of them only uses versions above the
 * default.
 */
function findNewerTested(usual: PythonChoice, tree: Tree): RequestedPython | undefined {
  const tested = listTestedPythons(tree).toSorted((one, other) => compare(parse(one.lowest), parse(other.lowest)));
  const [first] = tested;
  if (first === undefined || compare(parse(first.lowest), parse(usual.version)) <= 0) return undefined;
  return { file: first.file, requestedVersion: first.lowest };
}

/** Selects that version, or else the next higher one, or else the newest. */
function selectNearest(request: RequestedPython, fitting: readonly PythonChoice[]): PythonChoice {
  const wantedVersion = parse(request.requestedVersion);
  const sorted = fitting.toSorted((one, other) => compare(parse(one.version), parse(other.version)));
  const [first = languages.python.images[0]] = sorted;
  const choice = sorted.find((each) => compare(parse(each.version), wantedVersion) >= 0) ?? sorted.at(-1) ?? first;
  const same = compare(parse(choice.version), wantedVersion) === 0;
  return {
    ...choice,
    because: `${request.file} asks for Python ${request.requestedVersion}${same ? '' : `, and ${choice.version} is the nearest there is`}.`,
    ...(same ? {} : { instead: request }),
  };
}

/** Reads a single version from the files that can name one; the first file wins. */
function findRequestedVersion(tree: Tree): RequestedPython | undefined {
  const pipfile = parseToml(tree.readFile('Pipfile'));
  const conda = readConda(tree);
  const candidates: readonly (readonly [file: string, version: string | undefined])[] = [
    ['.python-version', readPlainVersion(tree, '.python-version')],
    ['runtime.txt', readPlainVersion(tree, 'runtime.txt')],
    ['.tool-versions', /^python[ \t]{1,9}(\d\S{0,20})/m.exec(tree.readFile('.tool-versions', 4096) ?? '')?.[1]],
    [
      'Pipfile',
      readText(pipfile, 'requires', 'python_version') ?? readText(pipfile, 'requires', 'python_full_version'),
    ],
    [conda?.file ?? '', conda?.python],
  ];
  return candidates.flatMap(([file, version]) => {
    const requestedVersion = /3\.\d{1,3}/.exec(version ?? '')?.[0];
    return requestedVersion === undefined ? [] : [{ file, requestedVersion }];
  })[0];
}

function readPlainVersion(tree: Tree, file: string): string | undefined {
  return /^\s{0,20}(?:c?python-)?(3\.\d{1,3})/m.exec(tree.readFile(file, 1000) ?? '')?.[1];
}

function findRequestedRange(tree: Tree): RequestedPython | undefined {
  const project = parseToml(tree.readFile('pyproject.toml'));
  const requestedVersion =
    readText(project, 'project', 'requires-python') ??
    readText(project, 'tool', 'poetry', 'dependencies', 'python') ??
    readText(readField(project, 'tool', 'poetry', 'dependencies', 'python'), 'version');
  if (requestedVersion !== undefined)
    return requestedVersion.length > 100 ? undefined : { file: 'pyproject.toml', requestedVersion };
  for (const file of ['setup.cfg', 'setup.py']) {
    const required = /^\s{0,20}python_requires\s{0,9}=\s{0,9}["']?([^"'\n#]{1,100})/m.exec(
      tree.readFile(file) ?? '',
    )?.[1];
    if (required !== undefined) return { file, requestedVersion: required.trim() };
  }
  return undefined;
}

function parse(version: string): Version {
  const [major = '3', minor = '0'] = version.split('.');
  return [Number(major), Number(minor)];
}

function compare(one: Version, other: Version): number {
  return one[0] - other[0] || one[1] - other[1];
}

/** Checks major.minor against a PEP 440 or Poetry range. Ignores patch versions, because images have the newest. */
export function isWithinRange(version: Version, range: string): boolean {
  return range
    .split('||')
    .some((alternative) => alternative.split(',').every((clause) => isWithinClause(version, clause.trim())));
}

function isWithinClause(version: Version, clause: string): boolean {
  const match = /^(===?|!=|<=|>=|<|>|~=|~|\^)?\s*v?(\d+)(?:\.(\d+))?(?:\.(\d+))?/.exec(clause);
  if (match === null) return true;
  const [, operator = '==', major, minor, patch] = match;
  const difference =
    minor === undefined ? version[0] - Number(major) : compare(version, [Number(major), Number(minor)]);
  const detail: Detail = {
    sameMajor: version[0] === Number(major),
    patch,
    minorGiven: minor !== undefined,
    wild: clause.includes('*'),
  };
  return (judges[operator] ?? isSame)(difference, detail);
}

interface Detail {
  readonly sameMajor: boolean;
  readonly minorGiven: boolean;
  readonly patch: string | undefined;
  readonly wild: boolean;
}

type Judge = (difference: number, detail: Detail) => boolean;

const isSame: Judge = (difference) => difference === 0;

/**
 * Evaluates each operator for the difference to its version. If the range names a patch version, part of that minor
 * version still matches.
 */
const judges: Readonly<Record<string, Judge>> = {
  '>=': (difference) => difference >= 0,
  '>': (difference, { patch }) => (patch === undefined ? difference > 0 : difference >= 0),
  '<=': (difference) => difference <= 0,
  '<': (difference, { patch }) => (patch === undefined || patch === '0' ? difference < 0 : difference <= 0),
  '!=': (difference, { patch, wild }) => difference !== 0 || (patch !== undefined && !wild),
  '~=': (difference, { patch, sameMajor }) => (patch === undefined ? sameMajor && difference >= 0 : difference === 0),
  '^': (difference, { sameMajor }) => sameMajor && difference >= 0,
  '~': (difference, { minorGiven, sameMajor }) => (minorGiven ? difference === 0 : sameMajor),
};

const workflow = /^\.github\/workflows\/[^/]{1,100}\.ya?ml$/;
const maximumFiles = 10;
const fileBytes = 64 * 1024;

/**
 * Lists the lowest version of each workflow that names any, such as "3.12". A matrix is a list on one line, or one item
 * per line.
 */
function listTestedPythons(tree: Tree): readonly { readonly file: string; readonly lowest: string }[] {
  return tree.entries
    .filter(({ kind, path }) => kind === 'file' && workflow.test(path))
    .slice(0, maximumFiles)
    .flatMap(({ path }) => {
      const minors = parseNamedMinors(tree.readFile(path, fileBytes) ?? '');
      return minors.length === 0 ? [] : [{ file: path, lowest: `3.${Math.min(...minors)}` }];
    });
}

function parseNamedMinors(text: string): number[] {
  const values = text.matchAll(
    /^[ \t-]{0,60}python(?:-version|_version)?:[ \t]{0,9}([^\n]{0,300}(?:\n[ \t]{1,60}- [^\n:]{1,40})*)/gm,
  );
  return [...values].flatMap(([, value = '']) =>
    [...value.matchAll(/\b3\.(\d{1,2})\b/g)].map(([, minor]) => Number(minor)),
  );
}
