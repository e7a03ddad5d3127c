// Judges the text of a licence file: which licence it holds, names or gives notice of, and what it adds.
import { kindOf, kindOfExpression, type Kind, type Terms } from './expression.ts';
import { beyondCommon, changedFrom, closest, normalise, shingleCount } from './matcher.ts';
import { namedLicense } from './short-forms.ts';
import { clauseIn, conditions, prohibitions, restrictions } from './terms.ts';

/** `reason` says in a sentence why it is not open; `id` is the licence, where it is one of the SPDX list. */
export type Judgement =
  | { readonly kind: 'open'; readonly id: string }
  | { readonly kind: Exclude<Kind, 'open'>; readonly reason: string; readonly id?: string };

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
/** A text that only names its licence is not longer. */
const nameWords = 60;

/** Judges the text of a licence file; undefined when it says nothing. */
export function judgeText(text: string, terms: Terms): Judgement | undefined {
  const tag = /SPDX-License-Identifier:\s*([^\n*]{1,200})/.exec(text)?.[1]?.trim();
  const kind = tag === undefined ? undefined : kindOfExpression(tag, terms);
  return tag !== undefined && kind !== undefined ? judgeTagged(tag, kind, text, terms) : judgePlain(text, terms);
}

/** A tag says what holds where the text beside it says nothing else. */
function judgeTagged(tag: string, kind: Kind, text: string, terms: Terms): Judgement {
  const rest = text.replace(/SPDX-(?:License-Identifier|FileCopyrightText|FileContributor):[^\n]*/g, ' ');
  const plain = normalise(rest);
  const isOwnText = plain.split(' ').filter((word) => /[a-z]/.test(word)).length > nameWords;
  if (kind !== 'open') return { kind, id: tag, reason: `The licence file is tagged ${short(tag)}.` };
  const found = judgePlain(rest, terms);
  if (found?.kind === 'open') return { kind: 'open', id: tag };
  const against = clauseIn(prohibitions, `${plain} ${reserved(rest)}`);
  if (against !== undefined)
    return {
      kind: 'restricted',
      reason: `The licence file is tagged ${short(tag)} but its text adds ${against}, so it is not an open-source licence.`,
    };
  return isOwnText && found !== undefined ? found : { kind: 'open', id: tag };
}

/** A reservation of all rights stands in a line with a copyright, which is not compared with a licence. */
function reserved(text: string): string {
  return /all rights reserved/i.test(text) && !/licen[cs]ed? (?:under|as|by)|permission is hereby granted/i.test(text)
    ? 'all rights reserved'
    : '';
}

function short(tag: string): string {
  return tag.slice(0, 60);
}

function judgePlain(text: string, terms: Terms): Judgement | undefined {
  const plain = normalise(text);
  // The SPDX text of the LGPL holds that of the GPL as well, which few copies do.
  if (
    /gnu lesser general public license version 3/.test(plain) &&
    plain.includes('incorporates the terms and conditions of version 3 of the gnu general public license')
  )
    return { kind: 'open', id: 'LGPL-3.0-or-later' };
  const best = shingleCount(plain) < 5 ? undefined : closest(plain);
  if (best === undefined) return judgeUnknown(text, plain, terms);
  const kind = kindOf(best.id, terms);
  if (kind !== 'open')
    return { kind, id: best.id, reason: `The licence is ${best.id}, which is not an open-source licence.` };
  const limit = clauseIn(restrictions, plain, best.template);
  const condition = limit ?? clauseIn(conditions, best.added);
  if (condition === undefined) return { kind: 'open', id: best.id };
  return {
    kind: limit === undefined ? 'custom' : 'restricted',
    reason: `The licence file contains ${best.id} but adds ${condition}, so it is not an open-source licence.`,
  };
}

/** Judges a text that holds no licence: some only name one, or give notice of one. */
function judgeUnknown(text: string, plain: string, terms: Terms): Judgement | undefined {
  const words = plain.split(' ').filter((word) => /[a-z]/.test(word)).length;
  const limit = clauseIn(restrictions, plain);
  const id = limit === undefined ? (noticed(plain) ?? named(text, plain, words)) : undefined;
  if (id !== undefined) {
    const kind = kindOf(id, terms);
    return kind === 'open' ? { kind, id } : { kind, id, reason: `The licence file names ${id}.` };
  }
  return judgeOwn(text, plain, limit, words);
}

/** Judges what somebody wrote himself, or made of a licence. */
function judgeOwn(text: string, plain: string, limit: string | undefined, words: number): Judgement | undefined {
  const changed = changedFrom(plain);
  const own = (changed?.added ?? plain).replace(
    /you may not use [a-z ]{0,40}except in compliance with the license/g,
    ' ',
  );
  const forbids = limit ?? clauseIn(prohibitions, `${own} ${reserved(text)}`);
  if (forbids !== undefined)
    return { kind: 'restricted', reason: `The licence file has ${forbids}, so it is not an open-source licence.` };
  const origin = changed === undefined ? '' : `; it is ${changed.id} with changes`;
  return words < 3
    ? undefined
    : { kind: 'custom', reason: `The text of the licence file does not match any licence on the SPDX list${origin}.` };
}

function noticed(plain: string): string | undefined {
  if (plain.split(' ').length > noticeWords || clauseIn(conditions, beyondCommon(plain)) !== undefined)
    return undefined;
  const words = plain.replace(/ \. /g, ' ');
  const [id] = notices.flatMap(([pattern, idOf]) => [...words.matchAll(pattern)].map((match) => idOf(match[1] ?? '')));
  return id;
}

/** A short text that forbids nothing may just name its licence. */
function named(text: string, plain: string, words: number): string | undefined {
  if (words > nameWords) return undefined;
  const id = namedLicense(text);
  return id === undefined || clauseIn(prohibitions, `${plain} ${reserved(text)}`) === undefined ? id : undefined;
}
