// Names that are like one that there is not: what somebody may have meant.
import { distance } from 'fastest-levenshtein';
import { Problem, type ProblemType } from './problem.ts';

const maxCharacters = 60;

/** Up to three most similar names, such as slugs; names that share no more than chance are left out. */
export function nearestNames(name: string, names: readonly string[]): string[] {
  const asked = plain(name);
  return names
    .map((known) => ({ known, far: farness(asked, plain(known)) }))
    .filter(({ far }) => far <= 0.5)
    .sort((a, b) => a.far - b.far)
    .slice(0, 3)
    .map(({ known }) => known);
}

/** 0: the same. 1: nothing in common. A part of a name counts as near. */
function farness(asked: string, known: string): number {
  if (asked.length >= 4 && (known.includes(asked) || asked.includes(known))) return 0.25;
  return distance(asked, known) / Math.max(asked.length, known.length, 1);
}

/** The field that was meant, where one is no more than a slip away: its name is not made up, as a slug may be. */
export function meantField(name: string, fields: readonly string[]): string | undefined {
  const [near] = fields
    .map((field) => ({ field, far: distance(plain(name), plain(field)) }))
    .sort((a, b) => a.far - b.far);
  if (near === undefined) return undefined;
  const { field, far } = near;
  const slip = field.length < 4 ? 1 : Math.max(2, Math.floor(field.length / 3));
  return far <= slip && far < Math.max(name.length, field.length) ? field : undefined;
}

/** Small letters, without what stands between words. */
function plain(name: string): string {
  return name
    .slice(0, maxCharacters)
    .toLowerCase()
    .replaceAll(/[-_.\s]/g, '');
}

/** What a name stands for, and where all of them are. */
export interface Unknown {
  /** As a sentence that ends with the name: `There is no app`. */
  readonly says: string;
  readonly name: string;
  readonly names: readonly string[];
  /** A sentence: `GET /t lists all tools.` */
  readonly all: string;
}

/** The problem of a name that there is not, with the similar ones in `nearest`. */
export function unknownName(type: ProblemType, { says, name, names, all }: Unknown): Problem {
  const nearest = nearestNames(name, names);
  const hint = nearest.length === 0 ? '' : ` Did you mean ${nearest.join(' or ')}?`;
  const shown = JSON.stringify(name.slice(0, maxCharacters).toWellFormed());
  return new Problem(type, `${says} ${shown}.${hint} ${all}`, { members: { nearest } });
}
