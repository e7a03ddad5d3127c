// transcribe_audio: what is said in a recording, as text, by a speech-to-text server of our own.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { invalid } from '../../../http/index.ts';
import { fetchTooLarge } from '../../fetch/problems.ts';
import { urlField } from '../../fetch/url-field.ts';
import { toolLimit } from '../../problems.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { audioFormats, audioFormatOf } from './format.ts';
import { spokenLanguage } from './languages.ts';
import { askSpeechServer } from './speech-server.ts';

const mostBytes = 15_000_000;

const input = z.strictObject({
  url: urlField('where the recording is, as a file'),
  language: z
    .string()
    .trim()
    .min(2)
    .max(60)
    .optional()
    .describe(
      'hint: language that is spoken, as a code like en, de or zh, or a name like German; detected when left out',
    ),
});

const output = z.object({
  url: z.string().describe('where it was in the end, after redirects'),
  text: z.string().describe('what is said; empty where nothing was heard'),
  language: z
    .string()
    .optional()
    .describe(
      'code of the detected language; of the hint where one was given; left out where the speech server does not tell',
    ),
  duration_s: z.number().optional().describe('length of the recording in seconds, where the speech server tells'),
  format: z.enum(audioFormats).describe('format of the recording'),
  bytes: z.int().describe('size of the recording'),
});

export function transcribeAudioTool({ fetcher, urls, speechModel }: ToolServices): Tool {
  return defineTool({
    name: 'transcribe_audio',
    title: 'Transcribe audio',
    description:
      'Fetches a recording from an address and answers with what is said in it, as plain text, and the language. Takes mp3, wav, m4a and ogg of at most 15 MB; split a longer recording first. ' +
      'An open-source model of this installation hears it, in about 100 languages; the audio is sent to nobody else.',
    input,
    aliases: { lang: 'language', audio: 'url', audio_url: 'url', file: 'url' },
    output,
    example: { url: 'https://upload.wikimedia.org/wikipedia/commons/4/4f/En-us-ship.ogg', language: 'en' },
    price: '0.002',
    needs: 'speech',
    openWorld: true,
    limitMs: 300_000,
    run: async ({ url, language }, { signal }) => {
      const hint = language === undefined ? undefined : hintOf(language);
      const file = await fetcher
        .get({ url, maxBytes: mostBytes, headers: { accept: 'audio/*' }, timeoutMs: 60_000, signal })
        .catch(splitFirst);
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

function hintOf(language: string): string {
  const code = spokenLanguage(language);
  if (code !== undefined) return code;
  throw invalid([
    {
      in: 'query',
      field: 'language',
      message: 'is not a language that can be heard',
      fix: 'send a short code such as en, de or zh, or leave it out to have the language detected',
    },
  ]);
}

function splitFirst(error: unknown): never {
  if (!(error instanceof Problem) || (error.type !== fetchTooLarge && error.type !== toolLimit)) throw error;
  throw new Problem(
    error.type,
    `${error.message}; split a long recording into parts first and send one after the other`,
    { members: error.members, cause: error },
  );
}
