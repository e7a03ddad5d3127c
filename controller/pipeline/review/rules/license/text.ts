// Judges the text of a licence file: which licence it contains, names or refers to, and what it adds.
import { classifyExpression, classifyLicense, type Kind, parseLicenseName, type Terms } from './expression.ts';
import { countShingles, findClosest, findOrigin, normalizeText, removeCommon } from './matcher.ts';

/** `reason` is a sentence that explains why it is not open; `id` is the licence, if it is on the SPDX list. */
type Judgement =
  | { readonly kind: 'open'; readonly id: string }
  | { readonly kind: Exclude<Kind, 'open'>; readonly reason: string; readonly id?: string };

/** Recommended notices of licences; some repositories contain only these. Each maps to an SPDX id. */
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
/** A notice is about a hundred words; a much longer text has other content too. */
const noticeWords = 200;
/** Maximum length of a text that only names its licence. */
const nameWords = 60;

/** Judges the text of a licence file; undefined if it states nothing. */
export function judgeText(text: string, terms: Terms): Judgement | undefined {
  const tag = /SPDX-License-Identifier:\s*([^\n*]{1,200})/.exec(text)?.[1]?.trim();
  const kind = tag === undefined ? undefined : classifyExpression(tag, terms);
  return tag !== undefined && kind !== undefined
    ? judgeTaggedText(tag, kind, text, terms)
    : judgeUntaggedText(text, terms);
}

/** A tag decides, unless the text next to it contradicts it. */
function judgeTaggedText(tag: string, kind: Kind, text: string, terms: Terms): Judgement {
  const rest = text.replace(/SPDX-(?:License-Identifier|FileCopyrightText|FileContributor):[^\n]*/g, ' ');
  const plain = normalizeText(rest);
  const isOwnText = plain.split(' ').filter((word) => /[a-z]/.test(word)).length > nameWords;
  if (kind !== 'open') return { kind, id: tag, reason: `The licence file is tagged ${shortenTag(tag)}.` };
  const judgement = judgeUntaggedText(rest, terms);
  if (judgement?.kind === 'open') return { kind: 'open', id: tag };
  const against = findClause(prohibitions, `${plain} ${findReservation(rest)}`);
  if (against !== undefined)
    return {
      kind: 'restricted',
      reason: `The licence file is tagged ${shortenTag(tag)} but its text adds ${against}, so it is not an open-source licence.`,
    };
  return isOwnText && judgement !== undefined ? judgement : { kind: 'open', id: tag };
}

/** A reservation of all rights is part of a copyright line, which is not compared with a licence. */
function findReservation(text: string): string {
  return /all rights reserved/i.test(text) && !/licen[cs]ed? (?:under|as|by)|permission is hereby granted/i.test(text)
    ? 'all rights reserved'
    : '';
}

function shortenTag(tag: string): string {
  return tag.slice(0, 60);
}

function judgeUntaggedText(text: string, terms: Terms): Judgement | undefined {
  const plain = normalizeText(text);
  // The SPDX text of the LGPL includes that of the GPL, which few copies do.
  if (
    /gnu lesser general public license version 3/.test(plain) &&
    plain.includes('incorporates the terms and conditions of version 3 of the gnu general public license')
  )
    return { kind: 'open', id: 'LGPL-3.0-or-later' };
  const best = countShingles(plain) < 5 ? undefined : findClosest(plain);
  if (best === undefined) return judgeUnknown(text, plain, terms);
  const kind = classifyLicense(best.id, terms);
  if (kind !== 'open')
    return { kind, id: best.id, reason: `The licence is ${best.id}, which is not an open-source licence.` };
  const limit = findClause(restrictions, plain, best.template);
  const condition = limit ?? findClause(conditions, best.added);
  if (condition === undefined) return { kind: 'open', id: best.id };
  return {
    kind: limit === undefined ? 'custom' : 'restricted',
    reason: `The licence file contains ${best.id} but adds ${condition}, so it is not an open-source licence.`,
  };
}

/** Judges a text that contains no licence: some only name one, or contain its notice. */
function judgeUnknown(text: string, plain: string, terms: Terms): Judgement | undefined {
  const words = plain.split(' ').filter((word) => /[a-z]/.test(word)).length;
  const limit = findClause(restrictions, plain);
  const id = limit === undefined ? (findNotice(plain) ?? findName(text, plain, words)) : undefined;
  if (id !== undefined) {
    const kind = classifyLicense(id, terms);
    return kind === 'open' ? { kind, id } : { kind, id, reason: `The licence file names ${id}.` };
  }
  return judgeOwnText(text, plain, limit, words);
}

/** Judges a text that the author wrote, or derived from a licence. */
function judgeOwnText(text: string, plain: string, limit: string | undefined, words: number): Judgement | undefined {
  const changed = findOrigin(plain);
  const ownText = (changed?.added ?? plain).replace(
    /you may not use [a-z ]{0,40}except in compliance with the license/g,
    ' ',
  );
  const forbids = limit ?? findClause(prohibitions, `${ownText} ${findReservation(text)}`);
  if (forbids !== undefined)
    return { kind: 'restricted', reason: `The licence file has ${forbids}, so it is not an open-source licence.` };
  const origin = changed === undefined ? '' : `; it is ${changed.id} with changes`;
  return words < 3
    ? undefined
    : { kind: 'custom', reason: `The text of the licence file does not match any licence on the SPDX list${origin}.` };
}

function findNotice(plain: string): string | undefined {
  if (plain.split(' ').length > noticeWords || findClause(conditions, removeCommon(plain)) !== undefined)
    return undefined;
  const words = plain.replace(/ \. /g, ' ');
  const [id] = notices.flatMap(([pattern, idOf]) => [...words.matchAll(pattern)].map((match) => idOf(match[1] ?? '')));
  return id;
}

/** A short text that forbids nothing may just name its licence. */
function findName(text: string, plain: string, words: number): string | undefined {
  if (words > nameWords) return undefined;
  const id = parseLicenseName(text);
  return id === undefined || findClause(prohibitions, `${plain} ${findReservation(text)}`) === undefined
    ? id
    : undefined;
}

type Clause = readonly [RegExp, string];

/** Clauses that deny what a host needs: commercial use (authors earn here), use by others, or any use. */
const restrictions: readonly Clause[] = [
  [/commons clause/, 'the Commons Clause'],
  [
    /(?<!\bcommercial (?:or|and|as well as) )noncommercial(?! (?:and|or) commercial)|not for commercial|no commercial use/,
    'a limit to non-commercial use',
  ],
  [
    /(?:may|shall|must) not (?:be used|use|sell|host|offer|provide)[^.]{0,120}\b(?:commercial|competing|saas|hosted|managed service|third part(?:y|ies) as a)/,
    'a limit on commercial or hosted use',
  ],
  [/multi tenant/, 'a limit on hosting for several customers'],
  [/\b(?:competing use|compet(?:es?|ing|itive) (?:with|product|service|offering)s?)\b/, 'a limit on competing use'],
  [/research (?:purposes|use) only/, 'a limit to research'],
  [/business source license/, 'the Business Source License'],
  [/server side public license/, 'the Server Side Public License'],
  [
    /sustainable use license|fair core license|functional source license|fair source license/,
    'a source-available licence',
  ],
  [
    /\b(?:only|solely|exclusively) (?:for|to)\b[^.]{0,60}\b(?:internal|personal|private|evaluation|research|educational|academic|non ?production)\b[^.]{0,40}\b(?:use|purposes?)\b/,
    'a limit of the purpose',
  ],
  [
    /(?:may|must|shall) not (?:use|run|copy|host|deploy)(?: or \w+)? (?:this|the|our) (?:software|code|program|repository|project)\b(?! (?:except|unless|to|in) )/,
    'a prohibition of use',
  ],
];

/** More words that forbid use. They count only in custom texts, not in known licences. */
const prohibitions: readonly Clause[] = [
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
  [/all rights reserved/, 'a reservation of all rights'],
];

/** Extra conditions next to a known licence. They count only in the added text. */
const conditions: readonly Clause[] = [
  [/\b(?:brand|branding|logo|logos)\b/, 'conditions on a brand'],
  [/\bcommercial license\b|\bcommercial use\b/, 'conditions on commercial use'],
  [/\badditional (?:terms|conditions|restrictions|requirements)\b/, 'conditions of its own'],
  [
    /\b(?:may|must|shall|can)(?: ?not|nt)\b|\b(?:prohibited|forbidden)\b|\bnot (?:permitted|allowed)\b/,
    'conditions of its own',
  ],
  [/\b(?:prior|written|explicit|express) (?:written )?(?:permission|consent|approval)\b/, 'conditions of its own'],
  [/\b(?:only|except|unless|exclusively|provided that|must|shall be used)\b/, 'conditions of its own'],
];

/** Returns the name of the first clause that a text contains. */
function findClause(clauses: readonly Clause[], text: string, unless = ''): string | undefined {
  return clauses.find(([pattern]) => pattern.test(text) && !pattern.test(unless))?.[1];
}
