// The tool check_grammar: finds grammar, spelling and style errors in a text.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import { judged } from './judge.ts';
import { corrected, match, maxMatches } from './match.ts';
import { grammarReply, type GrammarTask } from './worker-task.ts';
import { askLanguageTool } from './language-tool.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const module = new URL('harper.ts', import.meta.url);

export function checkGrammarTool({ workers, urls }: ToolDependencies): Tool {
  return defineTool({
    name: 'check_grammar',
    title: 'Check grammar',
    description: `Finds grammar, spelling and style errors in a text of up to 20,000 characters. Returns up to ${maxMatches} matches with position, explanation and suggestions, and the corrected text. Leaves names, code and addresses alone. English is checked by Harper, every other language by LanguageTool, which the operator of this installation can disable. A text in another language than stated is refused.`,
    input: z.strictObject({
      text: z.string().min(1).max(20_000).describe('Text to check, up to 20,000 characters.'),
      language: z
        .string()
        .max(20)
        .regex(/^([a-z]{2,3}(-[A-Za-z]{2,8}){0,3}|auto)$/, 'must be a language code such as en, en-GB or de, or auto')
        .default('en')
        .describe(
          'Language code of the text. Harper checks en (default, American), en-US, en-GB, en-AU, en-CA and en-IN. LanguageTool checks other codes, such as de or fr. auto detects the language.',
        ),
    }),
    aliases: { lang: 'language', content: 'text', q: 'text' },
    output: z.object({
      language: z.string().describe('Language the text was checked as.'),
      checker: z.enum(['harper', 'languagetool']).describe('Checker that was used.'),
      matches: z.array(match).describe(`Matches in text order, at most ${maxMatches}.`),
      match_count: z.int().describe('Number of matches found.'),
      offset_unit: z.literal('utf-16').describe('Unit of offset and length: UTF-16 code units.'),
      corrected: z
        .string()
        .describe(
          'Text with the first suggestion of each match that is a sure error, not style; of overlapping ones, only the first.',
        ),
    }),
    example: { text: 'She go to teh store.', language: 'en' },
    price: '0.0001',
    openWorld: false,
    async run({ text, language }, context) {
      const { signal } = context;
      const task: GrammarTask = { text: text.toWellFormed(), language };
      const reply = grammarReply.parse(
        await workers.run(
          // Its dictionary takes a second to load.
          { module, input: task, timeoutMs: 20_000, memoryMb: 384, quickStart: true, warm: true },
          context,
        ),
      );
      if (reply.other !== undefined) throw notIn(language, reply.other);
      const english = language === 'auto' ? reply.detected === 'en' : /^en(-|$)/i.test(language);
      const found = english
        ? { language: language === 'auto' ? 'en' : language, checker: 'harper' as const, matches: reply.matches }
        : { checker: 'languagetool' as const, ...(await askLanguageTool(urls, { ...task, signal })) };
      const ordered = found.matches.toSorted((one, other) => one.offset - other.offset);
      const { matches, applied } = judged(text, found.language, ordered);
      return {
        result: {
          language: found.language,
          checker: found.checker,
          matches: matches.slice(0, maxMatches),
          match_count: matches.length,
          offset_unit: 'utf-16' as const,
          corrected: corrected(text, applied),
        },
      };
    },
  });
}

const names = new Intl.DisplayNames('en', { type: 'language' });

/** To check it all the same would find a fault in every word. */
function notIn(stated: string, language: string): Problem {
  return new Problem(
    unprocessable,
    `The text is in ${names.of(language) ?? language} (${language}), not in ${names.of(stated) ?? stated} (${stated}). Send language=${language} or language=auto.`,
    { members: { detected_language: language } },
  );
}
