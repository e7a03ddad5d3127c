// The tool transcribe_audio: transcribes speech with the speech-to-text server of this installation.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { createValidationProblem } from '../../../http/index.ts';
import { fetchTooLarge } from '../../fetch/problems.ts';
import { readableRule, requireOneRule } from '../../inputs/field-rules.ts';
import { fileAliases, fileFieldNames, fileFields } from '../../inputs/file-fields.ts';
import { readFile } from '../../inputs/file-reader.ts';
import { serviceTimeout, toolLimit } from '../../problems.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { audioFormats, audioFormatOf } from './format.ts';
import { spokenLanguage } from './languages.ts';
import { askSpeechServer } from './speech-server.ts';

const maxBytes = 15_000_000;

const input = z
  .strictObject({
    ...fileFields('the audio file'),
    language: z
      .string()
      .trim()
      .min(2)
      .max(60)
      .superRefine(readableRule(findSpokenLanguage))
      .optional()
      .describe('Spoken language, as a code such as en, de or zh, or a name such as German. Default: detected.'),
  })
  .superRefine(requireOneRule(fileFieldNames));

const output = z.object({
  url: z.string().optional().describe('Final URL, after redirects; absent for data.'),
  text: z.string().describe('Transcript; empty if no speech was found.'),
  language: z
    .string()
    .optional()
    .describe('Language code that the speech server reports, otherwise the language that you set.'),
  duration_s: z.number().optional().describe('Duration in seconds, if the speech server reports it.'),
  format: z.enum(audioFormats).describe('Format of the recording.'),
  bytes: z.int().describe('Size of the recording in bytes.'),
});

export function transcribeAudioTool(services: ToolDependencies): Tool {
  const { urls, speechModel } = services;
  return defineTool({
    name: 'transcribe_audio',
    title: 'Transcribe audio',
    description:
      'Reads an audio file, from exactly one of url, data and artifact, and returns a plain-text transcript and its language. Accepts mp3, wav, m4a and ogg of up to 15 MB; split a longer recording first. ' +
      'Runs on the speech server of this installation, with a Whisper model by default, in about 100 languages. Does not return timestamps or speakers.',
    input,
    aliases: { ...fileAliases, lang: 'language', audio: 'url', audio_url: 'url', file: 'url' },
    output,
    example: { url: 'https://upload.wikimedia.org/wikipedia/commons/4/4f/En-us-ship.ogg', language: 'en' },
    price: '0.002',
    needs: 'speech',
    openWorld: true,
    limitMs: 300_000,
    run: async ({ language, ...given }, { signal }) => {
      const hint = language === undefined ? undefined : findSpokenLanguage(language);
      const file = await readFile(services, given, { maxBytes, accept: 'audio/*', timeoutMs: 60_000, signal }).catch(
        splitFirst,
      );
      const format = audioFormatOf(file.bytes, file.mediaType);
      const heard = await askSpeechServer(urls, {
        bytes: file.bytes,
        format,
        language: hint,
        model: speechModel,
        signal,
      }).catch(splitFirst);
      return {
        result: { url: file.url, ...heard, language: heard.language ?? hint, format, bytes: file.bytes.length },
      };
    },
  });
}

function findSpokenLanguage(language: string): string {
  const code = spokenLanguage(language);
  if (code !== undefined) return code;
  throw createValidationProblem([
    {
      in: 'query',
      field: 'language',
      message: 'is not a supported language',
      fix: 'Send a code such as en, de or zh, or remove it to detect the language.',
    },
  ]);
}

function splitFirst(error: unknown): never {
  if (!(error instanceof Problem) || ![fetchTooLarge, serviceTimeout, toolLimit].includes(error.type)) throw error;
  throw new Problem(error.type, `${error.message} Split a long recording into parts and send them one by one.`, {
    errors: error.errors,
    members: error.members,
    cause: error,
  });
}
