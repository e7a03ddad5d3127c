// Compares a text with every licence of the SPDX list: which one it holds, and what it says besides.
import licenses from 'spdx-license-list/full.js';
import { isOpenLicense } from './expression.ts';

export interface Match {
  readonly id: string;
  /** The licence's own words, to keep those of the author apart. */
  readonly template: string;
  /** What the file says beyond this licence and the common ones that it holds, in runs of words. */
  readonly added: string;
}

/**
 * Share of a licence's three-word runs that a file must hold. Long ones are often copied without their appendix; in
 * short ones every word counts.
 */
function computeThreshold(template: ReadonlySet<string>): number {
  return template.size < 400 ? 0.93 : 0.8;
}

interface KnownLicense {
  readonly id: string;
  readonly shingles: ReadonlySet<string>;
  readonly text: string;
}

/** Asked first: most repositories have one of these, and reading the whole list takes half a second. */
const common = ['MIT', 'Apache-2.0', 'GPL-3.0-only', 'AGPL-3.0-only', 'BSD-3-Clause', 'MPL-2.0'];
/** As like as this to a common one, a text is nearer to no other of the list. */
const sure = 0.985;
/** Share of its runs in a text that was made from a licence. */
const changedShare = 0.6;
const shortestRun = 4;

const known = new Map<string, KnownLicense>();

/** The licence that a text (normalised) holds. */
export function findClosest(plain: string): Match | undefined {
  const words = splitWords(plain);
  const shingles = new Set(toShingles(words));
  const [first] = listResembling(common, shingles);
  const found = first !== undefined && first.likeness >= sure ? first.each : findNearest(shingles);
  if (found === undefined) return undefined;
  // A file may hold the licences of what it uses as well.
  const resembling = [found, ...listResembling(common, shingles).map(({ each }) => each)];
  return { id: found.id, template: found.text, added: findAdditions(words, resembling) };
}

/** What a text says beyond the words of common licences, such as the notices by which they ask to be named. */
export function removeCommon(plain: string): string {
  return findAdditions(
    splitWords(plain),
    common.map((id) => readLicense(id)),
  );
}

/** Number of words that a text has to compare. */
export function countShingles(plain: string): number {
  return new Set(toShingles(splitWords(plain))).size;
}

/**
 * Among the licences that the text holds, the one that it resembles most: many are another one and a clause. One that is
 * not open has to be there with what sets it apart from the nearest open one.
 */
function findNearest(shingles: ReadonlySet<string>): KnownLicense | undefined {
  const [best, ...others] = listResembling(Object.keys(licenses), shingles);
  if (best === undefined || isOpenLicense(best.each.id)) return best?.each;
  const open = others.find(({ each }) => isOpenLicense(each.id));
  if (open === undefined) return best.each;
  const apart = new Set([...best.each.shingles].filter((each) => !open.each.shingles.has(each)));
  return countOverlap(apart, shingles) > apart.size / 2 ? best.each : open.each;
}

/** The common licence that a text was made from, where it was changed too much to hold it, and what is new in it. */
export function findOrigin(plain: string): Pick<Match, 'id' | 'added'> | undefined {
  const words = splitWords(plain);
  const shingles = new Set(toShingles(words));
  const near = common
    .map((id) => readLicense(id))
    .map((each) => ({ each, share: countOverlap(each.shingles, shingles) / each.shingles.size }))
    .filter(({ share }) => share >= changedShare)
    .toSorted((one, other) => other.share - one.share)[0]?.each;
  return near === undefined ? undefined : { id: near.id, added: findAdditions(words, [near]) };
}

function listResembling(
  ids: readonly string[],
  shingles: ReadonlySet<string>,
): { each: KnownLicense; likeness: number }[] {
  const candidates = ids
    .map((id) => readLicense(id))
    .filter((each) => shingles.size >= computeThreshold(each.shingles) * each.shingles.size)
    .map((each) => ({ each, overlap: countOverlap(each.shingles, shingles) }));
  const holding = candidates.filter(
    ({ each, overlap }) => each.shingles.size >= 5 && overlap / each.shingles.size >= computeThreshold(each.shingles),
  );
  return holding
    .map(({ each, overlap }) => ({ each, likeness: (2 * overlap) / (each.shingles.size + shingles.size) }))
    .toSorted((one, other) => other.likeness - one.likeness);
}

function readLicense(id: string): KnownLicense {
  const present = known.get(id);
  if (present !== undefined) return present;
  const text = normalizeText(licenses[id]?.licenseText ?? '');
  const made = { id, text, shingles: new Set(toShingles(splitWords(text))) };
  known.set(id, made);
  return made;
}

function findAdditions(words: readonly string[], licensesHeld: readonly KnownLicense[]): string {
  const templates = licensesHeld.map((each) => each.shingles);
  const covered = new Set<number>();
  toShingles(words).forEach((each, index) => {
    if (templates.some((template) => template.has(each))) for (const step of [0, 1, 2]) covered.add(index + step);
  });
  const runs: string[][] = [[]];
  words.forEach((word, index) => {
    if (covered.has(index)) runs.push([]);
    else runs.at(-1)?.push(word);
  });
  return runs
    .filter((run) => run.length >= shortestRun)
    .map((run) => run.join(' '))
    .join(' . ');
}

/** Lower case words without the lines that differ from project to project. */
export function normalizeText(text: string): string {
  return text
    .toLowerCase()
    .replace(/<<[^>\n]{0,200}>>|<[^>\n]{0,200}>/g, ' ')
    .replace(/^.*(?:copyright\s*(?:\(c\)|©|[0-9])|all rights reserved).*$/gm, ' ')
    .replace(/non[-\s]commercial/g, 'noncommercial')
    .replace(/licence/g, 'license')
    .replace(/[^a-z0-9.]+/g, ' ')
    .replace(/\.(?=\s|$)/g, ' . ')
    .replace(/ +/g, ' ');
}

function splitWords(plain: string): string[] {
  return plain.split(' ').filter((word) => word !== '' && word !== '.');
}

function toShingles(words: readonly string[]): string[] {
  return words.slice(0, -2).map((word, index) => `${word} ${words[index + 1] ?? ''} ${words[index + 2] ?? ''}`);
}

function countOverlap(template: ReadonlySet<string>, text: ReadonlySet<string>): number {
  let overlap = 0;
  for (const each of template) if (text.has(each)) overlap += 1;
  return overlap;
}
