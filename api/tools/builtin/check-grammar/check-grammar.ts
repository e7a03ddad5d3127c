// The tool check_grammar: finds grammar, spelling and style errors in a text. Harper checks English in a worker
// process, which also detects the language; a LanguageTool server checks other languages.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable, toolFailed } from '../../problems.ts';
import { judgeMatches, applyCorrections, match, maxMatches, matches, maxSuggestions, type Match } from './judge.ts';
import type { ToolDependencies } from '../../tool.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { callService } from '../../services/backing-services.ts';
import type { ServiceUrls } from '../../services/backing-services.ts';

const harperModule = new URL('harper.ts', import.meta.url);

export function createCheckGrammarTool({ workers, urls }: ToolDependencies): Tool {
  return defineTool({
    name: 'check_grammar',
    title: 'Check grammar',
    description: `Finds grammar, spelling and style errors in a text of up to 20,000 characters. Returns up to ${maxMatches} matches with position, explanation and suggestions, and the corrected text. Leaves names, code and addresses alone. English is checked by Harper, every other language by LanguageTool, which the operator of this installation can disable. A text in a language other than the stated one is rejected.`,
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
          'Text with the first suggestion applied for each certain error, but not for style; of overlapping matches, only the first.',
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
          // Loading its dictionary takes a second.
          { module: harperModule, input: task, timeoutMs: 20_000, memoryMb: 384, quickStart: true, warm: true },
          context,
        ),
      );
      if (reply.other !== undefined) throw createWrongLanguageProblem(language, reply.other);
      const english = language === 'auto' ? reply.detected === 'en' : /^en(-|$)/i.test(language);
      const found = english
        ? { language: language === 'auto' ? 'en' : language, checker: 'harper' as const, matches: reply.matches }
        : { checker: 'languagetool' as const, ...(await askLanguageTool(urls, { ...task, signal })) };
      const ordered = found.matches.toSorted((one, other) => one.offset - other.offset);
      const { matches, applied } = judgeMatches(text, found.language, ordered);
      return {
        result: {
          language: found.language,
          checker: found.checker,
          matches: matches.slice(0, maxMatches),
          match_count: matches.length,
          offset_unit: 'utf-16' as const,
          corrected: applyCorrections(text, applied),
        },
      };
    },
  });
}

const languageNames = new Intl.DisplayNames('en', { type: 'language' });

/** Checking the text anyway would report every word. */
function createWrongLanguageProblem(stated: string, language: string): Problem {
  return new Problem(
    unprocessable,
    `The text is in ${languageNames.of(language) ?? language} (${language}), not in ${languageNames.of(stated) ?? stated} (${stated}). Send language=${language} or language=auto.`,
    { members: { detected_language: language } },
  );
}

export interface GrammarTask {
  readonly text: string;
  /** A code, or auto. */
  readonly language: string;
}

const grammarReply = z.object({
  /** The language of the text, if it certainly is not the stated one. */
  other: z.string().optional(),
  /** For auto: the language, if it is certain. */
  detected: z.string().optional(),
  /** For English only. */
  matches,
});
export type GrammarReply = z.output<typeof grammarReply>;

/**
 * Allows for a match in every other word of the longest text: each takes about 2 KB, with its suggestions and addresses.
 */
const maxBytes = 16_777_216;

const languageToolResponse = z.object({
  language: z.object({ code: z.string() }),
  matches: z.array(
    z.object({
      offset: z.int().min(0),
      length: z.int().min(0),
      message: z.string(),
      replacements: z.array(z.object({ value: z.string() })),
      rule: z
        .object({ issueType: z.string().optional(), category: z.object({ id: z.string() }).optional() })
        .optional(),
    }),
  ),
});

/** LanguageTool checks the spelling of these languages only in one of their variants. */
const variants: Readonly<Record<string, string>> = { de: 'de-DE', pt: 'pt-BR' };

interface LanguageToolQuery {
  readonly text: string;
  readonly language: string;
  readonly signal: AbortSignal;
}

/**
 * Asks the LanguageTool server, which also counts offsets in UTF-16 code units. @throws Problem (service-off,
 * unprocessable for an unknown language, tool-failed, service-timeout)
 */
export async function askLanguageTool(
  urls: ServiceUrls,
  { text, language, signal }: LanguageToolQuery,
): Promise<{ language: string; matches: Match[] }> {
  const { status, bytes } = await callService(urls, 'languagetool', {
    path: '/v2/check',
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: encodeForm(text, language),
    maxBytes,
    timeoutMs: 20_000,
    signal,
  });
  const body = new TextDecoder().decode(bytes);
  if (status === 400 && /not a language code|language/i.test(body))
    throw new Problem(
      unprocessable,
      `LanguageTool does not accept this language: ${body.replace(/^Error:\s*/, '').slice(0, 300)}`,
    );
  const read = status === 200 ? languageToolResponse.safeParse(parseJson(body)) : undefined;
  if (read?.success !== true)
    throw new Problem(toolFailed, `LanguageTool returned status ${status} without a readable result.`, {
      cause: read?.error,
    });
  return {
    language: read.data.language.code,
    matches: read.data.matches.map(({ offset, length, message, replacements, rule }) => ({
      offset,
      length,
      text: text.slice(offset, offset + length),
      message,
      kind: rule?.issueType ?? rule?.category?.id ?? 'unknown',
      suggestions: replacements.slice(0, maxSuggestions).map(({ value }) => value),
    })),
  };
}

function encodeForm(text: string, language: string): string {
  const form = new URLSearchParams({ text, language: variants[language] ?? language });
  if (language === 'auto') form.set('preferredVariants', ['en-US', ...Object.values(variants)].join(','));
  return form.toString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
