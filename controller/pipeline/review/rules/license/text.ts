// Recognises an open-source licence by its text: how much of the licence's own wording a file holds.
import licenses from 'spdx-license-list/full.js';
import { openExpression, openLicense } from './expression.ts';

export type Verdict = { readonly open: true; readonly id: string } | { readonly open: false; readonly reason: string };

/**
 * Share of a licence's three-word runs that a file must hold. Long ones are often copied without their appendix; in
 * short ones every word counts.
 */
function enough(template: ReadonlySet<string>): number {
  return template.size < 400 ? 0.93 : 0.8;
}

/** Words that take rights away again. They count only where the recognised licence does not use them itself. */
const restrictions: readonly (readonly [RegExp, string])[] = [
  [/commons clause/, 'the Commons Clause'],
  [/non-?\s?commercial/, 'a limit to non-commercial use'],
  [
    /(?:may|shall|must) not (?:be used|use|sell|host|offer|provide)[^.]{0,80}\b(?:commercial|competing|saas|hosted|managed service)/,
    'a limit on commercial or hosted use',
  ],
  [/research (?:purposes|use) only/, 'a limit to research'],
  [/business source license/, 'the Business Source License'],
  [
    /(?:may|must|shall) not (?:use|run|copy|host|deploy)(?: or \w+)? (?:this|the|our) (?:software|code|program|repository|project)\b(?! (?:except|unless|to|in) )/,
    'a prohibition of use',
  ],
];

/**
 * Words by which a text forbids use. They count in texts beside an SPDX tag that are no known licence: what people write
 * themselves.
 */
const prohibitions: readonly (readonly [RegExp, string])[] = [
  ...restrictions,
  [
    /\b(?:may|must|shall|can|do|are|is)(?: ?not|nt) (?:\w+ ){0,4}(?:use|used|run|copy|copied|modify|modified|distribute|distributed|redistribute|redistributed|host|hosted|deploy|deployed|publish|published|permitted|allowed|licensed|granted)\b/,
    'a prohibition of use',
  ],
  [/\b(?:prohibited|forbidden|proprietary|confidential|unlicensed)\b/, 'a prohibition of use'],
  [/\bno (?:\w+ ){0,3}(?:license|permission|rights?|use)\b(?: \w+){0,4}(?: granted| given)?/, 'a refusal of rights'],
  [
    /\b(?:personal|internal|private|educational|academic|evaluation|research|non ?production)(?: and \w+)? (?:use|purposes?)\b/,
    'a limit of the purpose',
  ],
  [/\b(?:prior|written|explicit|express) (?:written )?(?:permission|consent|approval)\b/, 'a reservation of consent'],
  [/\b(?:only|except|unless|exclusively)\b/, 'a condition of its own'],
  [/all rights reserved/, 'a reservation of all rights'],
];

interface KnownLicense {
  readonly id: string;
  readonly shingles: ReadonlySet<string>;
  readonly text: string;
}

/** Asked first: most repositories have one of these, and reading the whole list takes a third of a second. */
const common = ['MIT', 'Apache-2.0', 'GPL-3.0-only', 'AGPL-3.0-only', 'BSD-3-Clause', 'MPL-2.0'];
const sure = 0.95;

/** Notices by which their licences ask to be named; some repositories keep only these. Each leads to an SPDX id. */
const notices: readonly (readonly [RegExp, (version: string) => string])[] = [
  [
    /licensed under the apache license version (2\.0) the license you may not use (?:this|these) (?:file|work|software|project)s? except in compliance with the license/g,
    () => 'Apache-2.0',
  ],
  [
    /under the terms of the gnu general public license as published by the free software foundation either version ([23]) of the license/g,
    (version) => `GPL-${version}.0-or-later`,
  ],
  [
    /under the terms of the gnu affero general public license as published by the free software foundation either version (3) of the license/g,
    () => 'AGPL-3.0-or-later',
  ],
  [
    /under the terms of the gnu lesser general public license as published by the free software foundation either version (3) of the license/g,
    () => 'LGPL-3.0-or-later',
  ],
];
/** A notice is about a hundred words; what is much longer says something else as well. */
const noticeWords = 200;

const known = new Map<string, KnownLicense>();

/** Judges the text of a licence file. */
export function recognise(text: string): Verdict {
  const tag = /SPDX-License-Identifier:\s*([^\n*]{1,200})/.exec(text)?.[1]?.trim();
  return tag !== undefined && openExpression(tag) ? recogniseTagged(tag, text) : recogniseText(text);
}

/** A tag says what holds where the text beside it says nothing else. */
function recogniseTagged(tag: string, text: string): Verdict {
  const rest = text.replace(/SPDX-(?:License-Identifier|FileCopyrightText|FileContributor):[^\n]*/g, ' ');
  const plain = normalise(rest);
  const isOwnText = plain.split(' ').filter((word) => /[a-z]/.test(word)).length > taggedWords;
  const found = recogniseText(rest);
  if (found.open) return { open: true, id: tag };
  // A reservation of all rights stands in a line with a copyright, which is not compared with a licence.
  const said = `${plain} ${reserved(rest)}`;
  const against = prohibitions.find(([pattern]) => pattern.test(said));
  if (against !== undefined)
    return {
      open: false,
      reason: `The licence file is tagged ${head(tag)} but its text adds ${against[1]}, so it is not an open-source licence.`,
    };
  return isOwnText ? found : { open: true, id: tag };
}

/** What is longer beside a tag is a text of its own, and has to be a licence that is known. */
const taggedWords = 60;

function reserved(text: string): string {
  return /all rights reserved/i.test(text) && !/licen[cs]ed? (?:under|as|by)|permission is hereby granted/i.test(text)
    ? 'all rights reserved'
    : '';
}

function head(tag: string): string {
  return tag.slice(0, 60);
}

function recogniseText(text: string): Verdict {
  const plain = normalise(text);
  const shingles = new Set(shingle(plain));
  if (shingles.size < 5) return { open: false, reason: 'The licence file is empty or only names a licence.' };
  // The SPDX text of the LGPL holds that of the GPL as well, which few copies do.
  if (
    /gnu lesser general public license version 3/.test(plain) &&
    plain.includes('incorporates the terms and conditions of version 3 of the gnu general public license')
  )
    return { open: true, id: 'LGPL-3.0-or-later' };
  const best = closest(shingles);
  if (best === undefined) return noticed(plain, shingles.size);
  const added = restrictions.find(([pattern]) => pattern.test(plain) && !pattern.test(best.text));
  if (added !== undefined)
    return {
      open: false,
      reason: `The licence file contains ${best.id} but adds ${added[1]}, so it is not an open-source licence.`,
    };
  return { open: true, id: best.id };
}

/** Judges a text that holds no licence: some only give notice of one. */
function noticed(plain: string, words: number): Verdict {
  const own = words > noticeWords || restrictions.some(([pattern]) => pattern.test(plain));
  const found = own
    ? []
    : notices.flatMap(([pattern, id]) => [...plain.matchAll(pattern)].map((match) => id(match[1] ?? '')));
  const [id] = found;
  if (id !== undefined) return { open: true, id };
  return {
    open: false,
    reason: 'The text of the licence file does not match any open-source licence on the SPDX list.',
  };
}

/** Among the licences that the text holds, the one that it resembles most: many are another one and a clause. */
function closest(shingles: ReadonlySet<string>): KnownLicense | undefined {
  const [first] = resembling(common, shingles);
  if (first !== undefined && first.likeness >= sure) return first.each;
  return resembling(
    Object.keys(licenses).filter((id) => openLicense(id)),
    shingles,
  )[0]?.each;
}

function resembling(ids: readonly string[], shingles: ReadonlySet<string>): { each: KnownLicense; likeness: number }[] {
  const candidates = ids.map((id) => read(id)).map((each) => ({ each, held: overlap(each.shingles, shingles) }));
  const holding = candidates.filter(
    ({ each, held }) => each.shingles.size >= 5 && held / each.shingles.size >= enough(each.shingles),
  );
  return holding
    .map(({ each, held }) => ({ each, likeness: (2 * held) / (each.shingles.size + shingles.size) }))
    .toSorted((one, other) => other.likeness - one.likeness);
}

function read(id: string): KnownLicense {
  const present = known.get(id);
  if (present !== undefined) return present;
  const text = normalise(licenses[id]?.licenseText ?? '');
  const made = { id, text, shingles: new Set(shingle(text)) };
  known.set(id, made);
  return made;
}

/** Lower case words without the lines that differ from project to project. */
function normalise(text: string): string {
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

function shingle(text: string): string[] {
  const words = text.split(' ').filter((word) => word !== '' && word !== '.');
  return words.slice(0, -2).map((word, index) => `${word} ${words[index + 1] ?? ''} ${words[index + 2] ?? ''}`);
}

function overlap(template: ReadonlySet<string>, text: ReadonlySet<string>): number {
  let held = 0;
  for (const each of template) if (text.has(each)) held += 1;
  return held;
}
