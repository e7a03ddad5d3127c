// Chooses the Ruby image that a project requests.
import type { Finding } from '../../../../crds/hosted-app.ts';
import { languages } from '../../../../crds/languages.ts';
import type { Tree } from '../../tree.ts';
import { type PlanInput } from '../recipe.ts';
import type { Bundle } from './bundle.ts';

export type RubyImage = (typeof languages.ruby.images)[number];

export interface RubyChoice {
  readonly image: RubyImage;
  /** A sentence that names the file and the requested version; absent if there is no request. */
  readonly because?: string;
  readonly findings: readonly Finding[];
}

interface RubyRequest {
  readonly file: string;
  readonly version: string;
}

type Version = readonly [number, number];

const number = /\d{1,2}(?:\.\d{1,3}){1,2}/;

/** Returns the image of the requested version, or the nearest one with a warning. */
export function chooseRuby(tree: Tree, bundle: Bundle, { missingImages = [] }: Partial<PlanInput>): RubyChoice {
  const isThere = ({ build, run }: RubyImage): boolean =>
    !missingImages.includes(build) && !missingImages.includes(run);
  const available = languages.ruby.images.some(isThere) ? languages.ruby.images.filter(isThere) : languages.ruby.images;
  const range = readRequirement(bundle.gemfile);
  if (range === undefined)
    return chooseByVersion(available, bundle, readSingleVersion(tree) ?? readLockedVersion(tree));
  const fitting = available.filter((each) => isWithinRequirements(parse(each.version), range.version));
  if (fitting.length === 0) return chooseByVersion(available, bundle, range);
  const namedVersion = readSingleVersion(tree);
  if (namedVersion !== undefined) return chooseByVersion(fitting, bundle, namedVersion);
  const writer = readLockedVersion(tree);
  const image = writer === undefined ? selectUsualImage(fitting, bundle) : selectNearest(fitting, writer);
  return { image, because: `${range.file} asks for Ruby ${range.version}.`, findings: [] };
}

function chooseByVersion(
  available: readonly RubyImage[],
  bundle: Bundle,
  request: RubyRequest | undefined,
): RubyChoice {
  if (request === undefined) return { image: selectUsualImage(available, bundle), findings: [] };
  const image = selectNearest(available, request);
  const isSame = compare(parse(image.version), parseRequestedVersion(request)) === 0;
  return {
    image,
    because: `${request.file} asks for Ruby ${request.version}${isSame ? '' : `, and ${image.version} is the nearest there is`}.`,
    findings: isSame ? [] : [createUnavailableFinding(request, image)],
  };
}

/** Reads a single version from the files that can name one; the first file wins. */
function readSingleVersion(tree: Tree): RubyRequest | undefined {
  const candidates: readonly (readonly [file: string, version: string | undefined])[] = [
    [
      '.ruby-version',
      /^\s{0,9}(?:ruby-)?(\d{1,2}(?:\.\d{1,3}){1,2})/.exec(tree.readFile('.ruby-version', 1000) ?? '')?.[1],
    ],
    ['.tool-versions', /^ruby[ \t]{1,9}(\d\S{0,20})/m.exec(tree.readFile('.tool-versions', 16 * 1024) ?? '')?.[1]],
  ];
  return candidates.flatMap(([file, version]) => (version === undefined ? [] : [{ file, version }]))[0];
}

/** Reads the version that wrote the lock file. */
function readLockedVersion(tree: Tree): RubyRequest | undefined {
  const version = /^RUBY VERSION\n\s{1,9}ruby (\d{1,2}(?:\.\d{1,3}){1,2})/m.exec(
    (tree.readFile('Gemfile.lock') ?? '').replaceAll('\r', ''),
  )?.[1];
  return version === undefined ? undefined : { file: 'Gemfile.lock', version };
}

/** Parses `ruby "~> 3.2"` and `ruby ">= 3.2", "< 4"`. A version read from a file is handled with that file. */
function readRequirement(gemfile: string): RubyRequest | undefined {
  const requirement = /^\s{0,40}ruby[\s(]\s{0,9}((?:["'][^"'\n]{1,40}["'],?\s{0,9}){1,4})/m.exec(gemfile)?.[1];
  const clauses = (requirement?.match(/["'][^"'\n]{1,40}["']/g) ?? []).map((each) => each.slice(1, -1).trim());
  return clauses.length === 0 || !clauses.some((each) => number.test(each))
    ? undefined
    : { file: 'Gemfile', version: clauses.join(', ') };
}

/** Without a request, selects the newest, or the oldest for apps that newer versions no longer support. */
function selectUsualImage(available: readonly RubyImage[], bundle: Bundle): RubyImage {
  const isOld =
    isBefore(bundle.findVersion('rails') ?? bundle.findVersion('activerecord'), [7, 0]) ||
    isBefore(bundle.findVersion('liquid'), [4, 0, 4]);
  return (isOld ? available[0] : available.at(-1)) ?? languages.ruby.images[0];
}

/** Returns whether a locked version, such as "6.1.7", is below a limit; false if there is no locked version. */
export function isBefore(version: string | undefined, limit: readonly number[]): boolean {
  if (version === undefined || version === '') return false;
  const parts = version.split('.').map((part) => Number.parseInt(part, 10));
  const index = limit.findIndex((each, at) => each !== (parts[at] ?? 0));
  return index !== -1 && (parts[index] ?? 0) < (limit[index] ?? 0);
}

/** Selects that version, or else the next higher one, or else the newest. */
function selectNearest(available: readonly RubyImage[], request: RubyRequest): RubyImage {
  const found = available.find((each) => compare(parse(each.version), parseRequestedVersion(request)) >= 0);
  return found ?? available.at(-1) ?? languages.ruby.images[0];
}

function parseRequestedVersion(request: RubyRequest): Version {
  return parse(number.exec(request.version)?.[0] ?? '');
}

function createUnavailableFinding({ file, version }: RubyRequest, image: RubyImage): Finding {
  return {
    rule: 'plan/ruby-version',
    severity: 'warning',
    file,
    message: `${file} asks for Ruby ${version}, which is not available; Ruby ${image.version} is used.`,
    fix: `Ask for one of ${languages.ruby.images.map((each) => each.version).join(', ')} if the app runs on it; otherwise, add a Dockerfile with the version that it needs.`,
  };
}

function parse(version: string): Version {
  const [major = '3', minor = '0'] = version.split('.');
  return [Number(major), Number(minor)];
}

function compare(one: Version, other: Version): number {
  return one[0] - other[0] || one[1] - other[1];
}

/** Ignores patch versions: images have the newest, and the image's Gemfile does not request one. */
function isWithinRequirements(version: Version, requirements: string): boolean {
  return requirements.split(',').every((clause) => {
    const [, operator = '=', named = ''] =
      /^\s{0,9}(>=|<=|!=|~>|>|<|=)?\s{0,9}(\d{1,2}(?:\.\d{1,3}){0,2})/.exec(clause) ?? [];
    return named === '' || (operators[operator] ?? isEqual)(compare(version, parse(named)), version, named);
  });
}

type Operator = (difference: number, version: Version, named: string) => boolean;

const isEqual: Operator = (difference) => difference === 0;
const operators: Readonly<Record<string, Operator>> = {
  '>=': (difference) => difference >= 0,
  '>': (difference, _, named) => (named.split('.').length > 2 ? difference >= 0 : difference > 0),
  '<=': (difference) => difference <= 0,
  '<': (difference) => difference < 0,
  '!=': () => true,
  '~>': (difference, version, named) =>
    named.split('.').length > 2 ? difference === 0 : difference >= 0 && version[0] === parse(named)[0],
};
