// The task of a diagram worker, its layout option, and the problem of a fault in the source.
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import type { PictureOptions } from '../../svg/draw.ts';

export interface DiagramTask extends PictureOptions {
  readonly source: string;
  readonly layout: string | undefined;
}

/** A fault in the text of a diagram, in the words of its parser. */
export function fault(language: string, words: string, line?: number): Problem {
  return new Problem(
    unprocessable,
    `${language} cannot parse source: ${line === undefined ? '' : `line ${line}: `}${words.trim().slice(0, 600)}`,
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
    throw new Problem(unprocessable, `${language} has no layout ${asked}. Available: ${known.join(', ')}.`);
  return found;
}
