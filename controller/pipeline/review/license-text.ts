// Recognises an open-source licence by its text: how much of the licence's own wording a file holds.
import licenses from 'spdx-license-list/full.js';
import { openExpression, openLicense } from './license-expression.ts';

export type Verdict = { readonly open: true; readonly id: string } | { readonly open: false; readonly reason: string };

/** Share of a licence's three-word runs that a file must hold. Long ones are often copied without their appendix; in short ones every word counts. */
function enough(template: ReadonlySet<string>): number {
  return template.size < 400 ? 0.93 : 0.8;
}

/** Words that take rights away again. They count only where the recognised licence does not use them itself. */
const restrictions: readonly (readonly [RegExp, string])[] = [
  [/commons clause/, 'the Commons Clause'],
  [/non-?\s?commercial/, 'a limit to non-commercial use'],
  [/(?:may|shall|must) not (?:be used|use|sell|host|offer|provide)[^.]{0,80}\b(?:commercial|competing|saas|hosted|managed service)/, 'a limit on commercial or hosted use'],
  [/research (?:purposes|use) only/, 'a limit to research'],
  [/business source license/, 'the Business Source License'],
];

interface Known {
  readonly id: string;
  readonly shingles: ReadonlySet<string>;
  readonly text: string;
}

let known: readonly Known[] | undefined;

/** Judges the text of a licence file. */
export function recognise(text: string): Verdict {
  const tag = /SPDX-License-Identifier:\s*([^\n*]{1,200})/.exec(text)?.[1];
  if (tag !== undefined && openExpression(tag)) return { open: true, id: tag.trim() };
  const plain = normalise(text);
  const shingles = new Set(shingle(plain));
  if (shingles.size < 5) return { open: false, reason: 'The licence file is empty or only names a licence.' };
  // The SPDX text of the LGPL holds that of the GPL as well, which few copies do.
  if (/gnu lesser general public license version 3/.test(plain) && plain.includes('incorporates the terms and conditions of version 3 of the gnu general public license')) return { open: true, id: 'LGPL-3.0-or-later' };
  const best = closest(shingles);
  if (best === undefined) return { open: false, reason: 'The text of the licence file is not that of an open-source licence on the SPDX list.' };
  const added = restrictions.find(([pattern]) => pattern.test(plain) && !pattern.test(best.text));
  if (added !== undefined) return { open: false, reason: `The licence file holds ${best.id} and adds ${added[1]}, so it is not an open-source licence.` };
  return { open: true, id: best.id };
}

/** Among the licences that the text holds, the one that it resembles most: many are another one and a clause. */
function closest(shingles: ReadonlySet<string>): Known | undefined {
  const candidates = all().map((each) => ({ each, held: overlap(each.shingles, shingles) })).filter(({ each, held }) => held / each.shingles.size >= enough(each.shingles));
  const likeness = ({ each, held }: { each: Known; held: number }): number => (2 * held) / (each.shingles.size + shingles.size);
  return candidates.toSorted((one, other) => likeness(other) - likeness(one))[0]?.each;
}

function all(): readonly Known[] {
  known ??= Object.entries(licenses).filter(([id]) => openLicense(id)).map(([id, each]) => {
    const text = normalise(each.licenseText);
    return { id, text, shingles: new Set(shingle(text)) };
  }).filter((each) => each.shingles.size >= 5);
  return known;
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
