// What the worker of a language is given, and how it tells of a fault in the text.
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import type { Wanted } from '../../svg/draw.ts';

export interface Sketch extends Wanted {
  readonly source: string;
  readonly layout: string | undefined;
}

/** A fault in the text of a diagram, in the words of its parser. */
export function fault(language: string, words: string, line?: number): Problem {
  return new Problem(
    unprocessable,
    `source: ${line === undefined ? '' : `line ${line}: `}${words.trim().slice(0, 600)} (${language})`,
    line === undefined ? {} : { members: { line } },
  );
}

/** The layout that was asked for. @throws Problem (unprocessable) when it is of another language */
export function layoutOf<Name extends string>(
  language: string,
  asked: string | undefined,
  known: readonly [Name, ...Name[]],
): Name {
  if (asked === undefined) return known[0];
  const found = known.find((name) => name === asked);
  if (found === undefined)
    throw new Problem(unprocessable, `layout: ${language} has no layout ${asked}; it has ${known.join(', ')}`);
  return found;
}
