// The LanguageTool client. Its server counts offsets in UTF-16 code units too.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { askService } from '../../services/service-client.ts';
import type { ServiceUrls } from '../../services/backing-services.ts';
import { toolFailed, unprocessable } from '../../problems.ts';
import { maxSuggestions, type Match } from './match.ts';

/**
 * Room for a fault in every other word of the longest text: one takes about 2 KB, with its suggestions and addresses.
 */
const maxBytes = 16_777_216;

const answer = z.object({
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

/** LanguageTool checks no spelling in these, unless it is given one of their variants. */
const variants: Readonly<Record<string, string>> = { de: 'de-DE', pt: 'pt-BR' };

interface Question {
  readonly text: string;
  readonly language: string;
  readonly signal: AbortSignal;
}

/** @throws Problem (service-off, unprocessable for a language that it does not know, tool-failed, service-timeout) */
export async function askLanguageTool(
  urls: ServiceUrls,
  { text, language, signal }: Question,
): Promise<{ language: string; matches: Match[] }> {
  const { status, bytes } = await askService(urls, 'languagetool', {
    path: '/v2/check',
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: formOf(text, language),
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
  const read = status === 200 ? answer.safeParse(jsonOf(body)) : undefined;
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

function formOf(text: string, language: string): string {
  const form = new URLSearchParams({ text, language: variants[language] ?? language });
  if (language === 'auto') form.set('preferredVariants', ['en-US', ...Object.values(variants)].join(','));
  return form.toString();
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
