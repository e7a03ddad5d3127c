// Classifies licences by SPDX expression or name (open source, custom terms, or restricted use), and finds the licence on the SPDX
// list that a text contains.
import parse from 'spdx-expression-parse';
import licenses from 'spdx-license-list';
import fullLicenses from 'spdx-license-list/full.js';
import type { LicensePolicy } from '../../../contract.ts';

/** From best to worst. */
export const kinds = ['open', 'custom', 'restricted'] as const;
export type Kind = (typeof kinds)[number];
export type Terms = Pick<LicensePolicy, 'allow' | 'deny'>;

/** Free according to the Free Software Foundation or by their plain meaning, but never submitted to the OSI. */
const openBeyondOsi: ReadonlySet<string> = new Set(
  [
    'AFL-1.1 AGPL-1.0 AGPL-1.0-only AGPL-1.0-or-later Apache-1.0 APSL-1.2 BSD-2-Clause-FreeBSD BSD-2-Clause-NetBSD BSD-2-Clause-Views',
    'BSD-3-Clause-Clear BSD-4-Clause BSD-4-Clause-UC BSD-Source-Code BitTorrent-1.1 CC0-1.0 CC-BY-1.0 CC-BY-2.0 CC-BY-2.5 CC-BY-3.0 CC-BY-4.0',
    'CC-BY-SA-1.0 CC-BY-SA-2.0 CC-BY-SA-2.5 CC-BY-SA-3.0 CC-BY-SA-4.0 CECILL-2.0 CECILL-B CECILL-C ClArtistic Condor-1.1 EUDatagrid FSFAP FSFUL',
    'FSFULLR FTL IJG Imlib2 LPPL-1.2 GPL-1.0 GPL-1.0+ GPL-1.0-only GPL-1.0-or-later',
    'LPPL-1.3a MIT-CMU NOSL NPL-1.0 NPL-1.1 ODbL-1.0 ODC-By-1.0 OLDAP-2.3 OLDAP-2.7 OpenSSL OSL-1.1 Beerware PDDL-1.0 Python-2.0.1',
    'Ruby SGI-B-2.0 SMLNJ SSLeay-standalone StandardML-NJ TCL Unicode-DFS-2015 Vim W3C-19980720 WTFPL X11 XFree86-1.1 YPL-1.1 Zend-2.0 Zimbra-1.3',
    'blessing bzip2-1.0.6 curl eCos-2.0 gnuplot iMatix libpng-2.0 Libpng libtiff mpich2 psutils xinetd zlib-acknowledgement MIT-Modern-Variant HPND-sell-variant Nunit',
  ].flatMap((line) => line.split(' ')),
);

/** Licences whose terms limit commercial or hosted use. */
const restricting = /^(?:CC-BY-NC|BUSL|SSPL|Elastic|PolyForm|Prosperity|Aladdin|NCGL|FSL|FCL|SUL)\b/;

/** Returns whether this SPDX id is an open-source licence. */
function isOpenLicense(id: string): boolean {
  const plain = id.replace(/-(?:only|or-later)$|\+$/, '');
  // Families whose variants share one text.
  if (/^(?:GFDL|OFL)-1\.\d/.test(id)) return true;
  return openBeyondOsi.has(id) || [id, plain, `${plain}-only`].some((each) => licenses[each]?.osiApproved === true);
}

/** Classifies a licence of the SPDX list for this installation. */
export function classifyLicense(id: string, { allow, deny }: Terms): Kind {
  const plain = id.replace(/-(?:only|or-later)$|\+$/, '');
  const names = [id, plain, `${plain}-only`, `${plain}-or-later`];
  if (names.some((name) => deny.includes(name))) return 'restricted';
  if (names.some((name) => allow.includes(name)) || isOpenLicense(id)) return 'open';
  return restricting.test(id) ? 'restricted' : 'custom';
}

const byLowerCase = new Map(Object.keys(licenses).map((id) => [id.toLowerCase(), id]));

/** Finds the SPDX id with this spelling, ignoring case. */
function findSpdxId(text: string): string | undefined {
  return byLowerCase.get(text.trim().toLowerCase());
}

/** "A OR B" ranks as the better of the two, "A AND B" as the worse; undefined if it is not an SPDX expression. */
export function classifyExpression(expression: string, terms: Terms): Kind | undefined {
  if (expression.length > 500) return undefined;
  try {
    return classifyNode(parse(expression.trim()), terms);
  } catch {
    const id = findSpdxId(expression);
    return id === undefined ? undefined : classifyLicense(id, terms);
  }
}

type Node = ReturnType<typeof parse>;

function classifyNode(node: Node, terms: Terms): Kind {
  if ('conjunction' in node) {
    const [left, right] = [
      kinds.indexOf(classifyNode(node.left, terms)),
      kinds.indexOf(classifyNode(node.right, terms)),
    ];
    return kinds[node.conjunction === 'or' ? Math.min(left, right) : Math.max(left, right)] ?? 'restricted';
  }
  return 'license' in node ? classifyLicense(node.license, terms) : 'custom';
}

type Form = readonly [RegExp, string];

/** The first match wins, so more exact patterns come first. Hyphens and underscores match spaces. */
const shortForms: readonly Form[] = [
  [/\bsspl\b|server side public/, 'SSPL-1.0'],
  [/\bbusl\b|business source/, 'BUSL-1.1'],
  [/elastic license/, 'Elastic-2.0'],
  [/(?:cc|creative ?commons|licenses\/)[ /]?by[ /-]?nc(?:[ /-]?(?:sa|nd))?|noncommercial/, 'CC-BY-NC-4.0'],
  [/(?:cc|licenses\/)[ /]?by[ /]?nd\b/, 'CC-BY-ND-4.0'],
  [/\ba(?:ffero )?gpl ?(?:v|version )?3|affero general public license|\bagpl\b|licenses\/agpl/, 'AGPL-3.0-or-later'],
  [/\blgpl ?(?:v|version )?2\.1/, 'LGPL-2.1-or-later'],
  [/\blgpl ?(?:v|version )?2/, 'LGPL-2.0-or-later'],
  [/\blgpl\b|\blgplv?3|lesser general public license/, 'LGPL-3.0-or-later'],
  [
    /\bgpl ?(?:v|version )?2|general public license,? (?:v|version )2|licenses\/(?:old licenses\/)?gpl 2/,
    'GPL-2.0-or-later',
  ],
  [/\bgpl ?(?:v|version )?3|general public license|\bgnu gpl\b|\bgpl\b|licenses\/gpl/, 'GPL-3.0-or-later'],
  [/apache(?: software)?(?: license)?,? ?(?:v|version )?\.? ?1\.1/, 'Apache-1.1'],
  [/apache ?2|apache(?: software)? license|licenses\/license 2\.0|\basl ?2|\bapache\b/, 'Apache-2.0'],
  [/\bmpl ?(?:v|version )?1\.1/, 'MPL-1.1'],
  [/mozilla public license|\bmpl\b/, 'MPL-2.0'],
  [/\beupl\b|european union public/, 'EUPL-1.2'],
  [/eclipse public license ?(?:v|version )?1|\bepl ?1/, 'EPL-1.0'],
  [/eclipse public license|\bepl\b/, 'EPL-2.0'],
  [/\bbsd ?(?:0|zero)|\b0 ?bsd\b|zero clause bsd/, '0BSD'],
  [/\bbsd ?2|2 clause bsd|simplified bsd|freebsd/, 'BSD-2-Clause'],
  [/\bbsd ?4|4 clause bsd|original bsd/, 'BSD-4-Clause'],
  [/\bbsd\b/, 'BSD-3-Clause'],
  [/\bisc\b/, 'ISC'],
  [/\bunlicense\b(?!d)|public domain/, 'Unlicense'],
  [/\bcc ?0\b|publicdomain\/zero/, 'CC0-1.0'],
  [/(?:cc|creative ?commons attribution|licenses\/)[ /]?(?:by[ /]?sa|share ?alike)/, 'CC-BY-SA-4.0'],
  [/(?:\bcc|licenses\/)[ /]?by\b|creative ?commons attribution/, 'CC-BY-4.0'],
  [/\bwtfpl\b/, 'WTFPL'],
  [/\bzlib\b/, 'Zlib'],
  [/boost software license|\bbsl 1\.0\b/, 'BSL-1.0'],
  [/artistic license ?2|\bartistic 2/, 'Artistic-2.0'],
  [/\bpython software foundation|\bpsf/, 'PSF-2.0'],
  [/\bmulan psl/, 'MulanPSL-2.0'],
  [/\bmit\b|\bexpat\b/, 'MIT'],
];

const maximumNameLength = 600;

/** Returns the SPDX id of the licence that a short text names. */
export function parseLicenseName(text: string): string | undefined {
  const short = text.slice(0, maximumNameLength);
  const whole = findSpdxId(short);
  if (whole !== undefined) return whole;
  const plain = short
    .toLowerCase()
    .replace(/licence/g, 'license')
    .replace(/non[-\s]commercial/g, 'noncommercial')
    .replace(/[-_()"'`*[\]<>]/g, ' ')
    .replace(/\s+/g, ' ');
  return shortForms.find(([pattern]) => pattern.test(plain))?.[1];
}

// Texts: a text is compared with every licence on the SPDX list.

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
  const [best, ...others] = listResembling(Object.keys(fullLicenses), shingles);
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
  const text = normalizeText(fullLicenses[id]?.licenseText ?? '');
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
