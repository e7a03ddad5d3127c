// Compares a text with every licence on the SPDX list: which one it contains, and what it adds.
import licenses from 'spdx-license-list/full.js';
import { isOpenLicense } from './expression.ts';

export interface Match {
  readonly id: string;
  /** The licence's own words, to separate them from the author's. */
  readonly template: string;
  /** Words that are in neither this licence nor the common ones that the file contains, as runs of words. */
  readonly added: string;
}

/**
 * Share of a licence's three-word runs that a file must contain. Long licences are often copied without their appendix;
 * in short ones, every word matters.
 */
function computeThreshold(template: ReadonlySet<string>): number {
  return template.size < 400 ? 0.93 : 0.8;
}

interface KnownLicense {
  readonly id: string;
  readonly shingles: ReadonlySet<string>;
  readonly text: string;
}

/** Checked first: most repositories use one of these, and reading the whole list takes half a second. */
const common = ['MIT', 'Apache-2.0', 'GPL-3.0-only', 'AGPL-3.0-only', 'BSD-3-Clause', 'MPL-2.0'];
/** At this similarity to a common licence, no other licence on the list is closer. */
const sure = 0.985;
/** Share of its runs in a text that was derived from a licence. */
const changedShare = 0.6;
const shortestRun = 4;

const known = new Map<string, KnownLicense>();

/** Finds the licence that a (normalized) text contains. */
export function findClosest(plain: string): Match | undefined {
  const words = splitWords(plain);
  const shingles = new Set(toShingles(words));
  const [first] = listResembling(common, shingles);
  const found = first !== undefined && first.likeness >= sure ? first.each : findNearest(shingles);
  if (found === undefined) return undefined;
  // A file may also contain the licences of its dependencies.
  const resembling = [found, ...listResembling(common, shingles).map(({ each }) => each)];
  return { id: found.id, template: found.text, added: findAdditions(words, resembling) };
}

/** Removes the words of common licences, such as their recommended notices. */
export function removeCommon(plain: string): string {
  return findAdditions(
    splitWords(plain),
    common.map((id) => readLicense(id)),
  );
}

/** Counts the words of a text that can be compared. */
export function countShingles(plain: string): number {
  return new Set(toShingles(splitWords(plain))).size;
}

/**
 * Finds the contained licence that the text resembles most, because many licences are another one plus a clause. A
 * licence that is not open must be present with the words that distinguish it from the nearest open one.
 */
function findNearest(shingles: ReadonlySet<string>): KnownLicense | undefined {
  const [best, ...others] = listResembling(Object.keys(licenses), shingles);
  if (best === undefined || isOpenLicense(best.each.id)) return best?.each;
  const open = others.find(({ each }) => isOpenLicense(each.id));
  if (open === undefined) return best.each;
  const apart = new Set([...best.each.shingles].filter((each) => !open.each.shingles.has(each)));
  return countOverlap(apart, shingles) > apart.size / 2 ? best.each : open.each;
}

/** Finds the common licence that a text was derived from, if it was changed too much to contain it, and what is new. */
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
  const license = { id, text, shingles: new Set(toShingles(splitWords(text))) };
  known.set(id, license);
  return license;
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

/** Returns lower-case words without the lines that differ between projects. */
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
