// A match: one error found in a text. And the text with all matches corrected.
import { z } from 'zod';

export const maxMatches = 500;
export const maxSuggestions = 5;

export const match = z.object({
  offset: z.int().describe('Start of the match, in UTF-16 code units.'),
  length: z.int().describe('Length of the match, in UTF-16 code units.'),
  text: z.string().describe('Matched text.'),
  message: z.string().describe('What is wrong.'),
  kind: z.string().describe('Kind of error, as the checker names it.'),
  suggestions: z
    .array(z.string())
    .describe(`Replacements, best first, at most ${maxSuggestions}. An empty string means: delete the text.`),
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
