// check_grammar: finds faults of grammar, spelling and style in a text.
import { z } from 'zod';
import { corrected, matches, match, mostMatches } from './match.ts';
import { askLanguageTool } from './language-tool.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const module = new URL('harper.ts', import.meta.url);

export function checkGrammarTool({ workers, urls }: ToolServices): Tool {
  return defineTool({
    name: 'check_grammar',
    title: 'Check grammar',
    description:
      'Finds faults of grammar, spelling and style in a text, each with its place and what to write instead, and gives the corrected text. English is checked by Harper, other languages by LanguageTool where this installation runs it. Offsets count UTF-16 code units, as JavaScript and Java do.',
    input: z.strictObject({
      text: z.string().min(1).max(20_000).describe('The text to check, up to 20 000 characters'),
      language: z
        .string()
        .max(20)
        .regex(/^([a-z]{2,3}(-[A-Za-z]{2,8}){0,3}|auto)$/, 'must be a language code like en, en-GB or de, or auto')
        .default('en')
        .describe(
          'Code of its language: en (default), en-US, en-GB, en-AU, en-CA, en-IN; de, fr and others, or auto, by LanguageTool',
        ),
    }),
    aliases: { lang: 'language', content: 'text', q: 'text' },
    output: z.object({
      language: z.string().describe('The language as which the text was checked'),
      checker: z.enum(['harper', 'languagetool']).describe('What has checked it'),
      matches: z.array(match).describe(`What was found, in order, at most ${mostMatches}`),
      match_count: z.int().describe('How much was found'),
      offset_unit: z.literal('utf-16').describe('What offset and length count: UTF-16 code units'),
      corrected: z.string().describe('The text with the first suggestion taken for each match that has one'),
    }),
    example: { text: 'She go to teh store.', language: 'en' },
    price: '0.0001',
    openWorld: false,
    async run({ text, language }, { signal }) {
      const english = /^en(-|$)/i.test(language);
      const found = english
        ? {
            language,
            checker: 'harper' as const,
            matches: matches.parse(
              await workers.run({
                module,
                input: { text: text.toWellFormed(), language },
                timeoutMs: 20_000,
                memoryMb: 384,
                quickStart: true,
                signal,
              }),
            ),
          }
        : {
            checker: 'languagetool' as const,
            ...(await askLanguageTool(urls, { text: text.toWellFormed(), language, signal })),
          };
      const ordered = found.matches.toSorted((one, other) => one.offset - other.offset);
      return {
        result: {
          language: found.language,
          checker: found.checker,
          matches: ordered.slice(0, mostMatches),
          match_count: ordered.length,
          offset_unit: 'utf-16' as const,
          corrected: corrected(text, ordered),
        },
      };
    },
  });
}
