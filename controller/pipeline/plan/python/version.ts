// Chooses among the Python images by what a project asks for.
import { field, parseToml, text } from '../../manifest.ts';
import type { Tree } from '../../tree.ts';
import { images } from '../recipe.ts';

export interface PythonChoice {
  readonly version: string;
  readonly image: string;
  /** Which file asked for what, as a sentence; absent when nothing did. */
  readonly because?: string;
}

export interface NoPython {
  readonly file: string;
  readonly asked: string;
}

type Version = readonly [number, number];

/**
 * The image to use, or what was asked for in vain. The oldest image that fits is taken: most pinned packages have
 * wheels for it.
 */
export function choosePython(tree: Tree): PythonChoice | NoPython {
  const range = askedRange(tree);
  const fitting = images.python.filter((each) => range === undefined || satisfies(parse(each.version), range.asked));
  if (range !== undefined && fitting.length === 0) return range;
  const exact = askedVersion(tree);
  if (exact !== undefined) return nearest(exact, fitting);
  const [choice = images.python[0]] = fitting;
  return range === undefined ? choice : { ...choice, because: `${range.file} asks for Python ${range.asked}.` };
}

function nearest(asked: NoPython, fitting: readonly PythonChoice[]): PythonChoice {
  const wanted = parse(asked.asked);
  const [first = images.python[0]] = fitting;
  const choice = fitting.find((each) => compare(parse(each.version), wanted) >= 0) ?? fitting.at(-1) ?? first;
  const same = compare(parse(choice.version), wanted) === 0;
  return {
    ...choice,
    because: `${asked.file} asks for Python ${asked.asked}${same ? '' : `, and ${choice.version} is the nearest there is`}.`,
  };
}

/** A single version: .python-version or runtime.txt. */
function askedVersion(tree: Tree): NoPython | undefined {
  for (const file of ['.python-version', 'runtime.txt']) {
    const asked = /^\s*(?:c?python-)?(3\.\d{1,3})/m.exec(tree.text(file, 1000) ?? '')?.[1];
    if (asked !== undefined) return { file, asked };
  }
  return undefined;
}

function askedRange(tree: Tree): NoPython | undefined {
  const project = parseToml(tree.text('pyproject.toml'));
  const asked =
    text(project, 'project', 'requires-python') ??
    text(project, 'tool', 'poetry', 'dependencies', 'python') ??
    text(field(project, 'tool', 'poetry', 'dependencies', 'python'), 'version');
  return asked === undefined || asked.length > 100 ? undefined : { file: 'pyproject.toml', asked };
}

function parse(version: string): Version {
  const [major = '3', minor = '0'] = version.split('.');
  return [Number(major), Number(minor)];
}

function compare(one: Version, other: Version): number {
  return one[0] - other[0] || one[1] - other[1];
}

/** Does major.minor satisfy a PEP 440 or Poetry range? Patch levels are not looked at: images carry the newest. */
export function satisfies(version: Version, range: string): boolean {
  return range
    .split('||')
    .some((alternative) => alternative.split(',').every((clause) => holds(version, clause.trim())));
}

function holds(version: Version, clause: string): boolean {
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
  return (judges[operator] ?? same)(difference, detail);
}

interface Detail {
  readonly sameMajor: boolean;
  readonly minorGiven: boolean;
  readonly patch: string | undefined;
  readonly wild: boolean;
}

type Judge = (difference: number, detail: Detail) => boolean;

const same: Judge = (difference) => difference === 0;

/**
 * What an operator makes of the difference to the version that it names. A patch level named leaves the minor version
 * half in.
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
