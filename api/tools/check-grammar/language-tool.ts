// Asks a LanguageTool server, which counts offsets in UTF-16 code units too.
import { z } from 'zod';
import { Problem } from '../../../lib/problem.ts';
import { toolFailed, unprocessable } from '../problems.ts';
import { mostSuggestions, type Match } from './match.ts';

const answer = z.object({
  language: z.object({ code: z.string() }),
  matches: z.array(z.object({
    offset: z.int().min(0),
    length: z.int().min(0),
    message: z.string(),
    replacements: z.array(z.object({ value: z.string() })),
    rule: z.object({ issueType: z.string().optional(), category: z.object({ id: z.string() }).optional() }).optional(),
  })),
});

interface Question {
  readonly text: string;
  readonly language: string;
  readonly signal: AbortSignal;
}

/** @throws Problem (unprocessable) for a language that it does not know, Problem (tool-failed) when it does not answer as it should */
export async function askLanguageTool(url: string, { text, language, signal }: Question): Promise<{ language: string; matches: Match[] }> {
  const { status, body } = await post(`${url}/v2/check`, new URLSearchParams({ text, language }), signal);
  if (status === 400 && /not a language code|language/i.test(body)) throw new Problem(unprocessable, `language: ${body.replace(/^Error:\s*/, '').slice(0, 300)}`);
  const read = status === 200 ? answer.safeParse(jsonOf(body)) : undefined;
  if (read?.success !== true) throw new Problem(toolFailed, `LanguageTool answered with status ${status} and nothing that can be read`, { cause: read?.error });
  return {
    language: read.data.language.code,
    matches: read.data.matches.map(({ offset, length, message, replacements, rule }) => ({
      offset, length, text: text.slice(offset, offset + length), message, kind: rule?.issueType ?? rule?.category?.id ?? 'unknown',
      suggestions: replacements.slice(0, mostSuggestions).map(({ value }) => value),
    })),
  };
}

async function post(url: string, body: URLSearchParams, signal: AbortSignal): Promise<{ status: number; body: string }> {
  try {
    const response = await fetch(url, { method: 'POST', body, signal: AbortSignal.any([signal, AbortSignal.timeout(20_000)]), redirect: 'error' });
    return { status: response.status, body: await response.text() };
  } catch (error) {
    signal.throwIfAborted();
    throw new Problem(toolFailed, 'LanguageTool does not answer', { cause: error });
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
