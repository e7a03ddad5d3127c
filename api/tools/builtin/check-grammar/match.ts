// A fault that was found in a text, and the text without faults.
import { z } from 'zod';

export const mostMatches = 500;
export const mostSuggestions = 5;

export const match = z.object({
  offset: z.int().describe('Where it begins, in UTF-16 code units'),
  length: z.int().describe('How long it is, in UTF-16 code units'),
  text: z.string().describe('What stands there'),
  message: z.string().describe('What is wrong with it'),
  kind: z.string().describe('Kind of fault, in the words of the checker'),
  suggestions: z
    .array(z.string())
    .describe(`What to write instead, best first, at most ${mostSuggestions}; empty text is to leave it out`),
});
export type Match = z.output<typeof match>;
export const matches = z.array(match);

/** Takes the first suggestion of each match; of matches that overlap, only that of the first. */
export function corrected(text: string, ordered: readonly Match[]): string {
  let [result, at] = ['', 0];
  for (const {
    offset,
    length,
    suggestions: [first],
  } of ordered) {
    if (first === undefined || offset < at) continue;
    result += text.slice(at, offset) + first;
    at = offset + length;
  }
  return result + text.slice(at);
}
