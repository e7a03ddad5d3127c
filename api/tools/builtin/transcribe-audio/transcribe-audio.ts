// The tool transcribe_audio: transcribes speech with the speech-to-text server of this installation, which is any
// server with OpenAI's /v1/audio/transcriptions, such as speaches, vLLM or LocalAI.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { createValidationProblem } from '../../../http/index.ts';
import { fetchTooLarge } from '../../problems.ts';
import { createReadableRule, requireOneRule } from '../../inputs/fields.ts';
import { fileAliases, fileFieldNames, fileFields } from '../../inputs/fields.ts';
import { readFile } from '../../inputs/file-reader.ts';
import { serviceTimeout, toolLimit, unprocessable, toolFailed } from '../../problems.ts';
import type { ToolDependencies } from '../../tool.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { callService } from '../../services/backing-services.ts';
import type { ServiceUrls } from '../../services/backing-services.ts';
import { findLanguage } from '../languages.ts';

export const audioFormats = ['mp3', 'wav', 'm4a', 'ogg'] as const;
type AudioFormat = (typeof audioFormats)[number];

const maxBytes = 15_000_000;

const input = z
  .strictObject({
    ...fileFields('the audio file'),
    language: z
      .string()
      .trim()
      .min(2)
      .max(60)
      .superRefine(createReadableRule(parseSpokenLanguage))
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

export function createTranscribeAudioTool(services: ToolDependencies): Tool {
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
      const hint = language === undefined ? undefined : parseSpokenLanguage(language);
      const file = await readFile(services, given, { maxBytes, accept: 'audio/*', timeoutMs: 60_000, signal }).catch(
        adviseSplitting,
      );
      const format = detectAudioFormat(file.bytes, file.mediaType);
      const transcript = await askSpeechServer(urls, {
        bytes: file.bytes,
        format,
        language: hint,
        model: speechModel,
        signal,
      }).catch(adviseSplitting);
      return {
        result: {
          url: file.url,
          ...transcript,
          language: transcript.language ?? hint,
          format,
          bytes: file.bytes.length,
        },
      };
    },
  });
}

function parseSpokenLanguage(language: string): string {
  const code = toWhisperLanguage(language);
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

function adviseSplitting(error: unknown): never {
  if (!(error instanceof Problem) || ![fetchTooLarge, serviceTimeout, toolLimit].includes(error.type)) throw error;
  throw new Problem(error.type, `${error.message} Split a long recording into parts and send them one by one.`, {
    errors: error.errors,
    members: error.members,
    cause: error,
  });
}

/** Media types that speech servers accept. */
const audioTypes: Readonly<Record<AudioFormat, string>> = {
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  m4a: 'audio/mp4',
  ogg: 'audio/ogg',
};

/**
 * First bytes, read as Latin-1. The second byte of an MPEG frame gives its layer: III is mp3, none is bare AAC.
 */
const formatSignatures: readonly (readonly [RegExp, AudioFormat])[] = [
  [/^RIFF[^]{4}WAVE/, 'wav'],
  [/^ID3|^\xff[\xe2\xe3\xf2\xf3\xfa\xfb]/, 'mp3'],
  [/^[^]{4}ftyp(?:M4[AB] |mp4[12]|isom|iso[2-9]|dash)/, 'm4a'],
  [/^OggS[^]{22}[^]{1,256}?(?:OpusHead|vorbis|\x7fFLAC|Speex {3})/, 'ogg'],
];

/** Unsupported files that callers often send. */
const otherSignatures: readonly (readonly [RegExp, string])[] = [
  [/^fLaC/, 'a FLAC file'],
  [/^OggS/, 'an Ogg file without speech in it'],
  [/^[^]E\xdf\xa3/, 'a WebM or Matroska file'],
  [/^\xff[\xf0\xf1\xf8\xf9]/, 'bare AAC'],
  [/^FORM[^]{4}AIF[FC]/, 'an AIFF file'],
  [/^#!AMR/, 'an AMR file'],
  [/^\x30\x26\xb2\x75/, 'a Windows Media file'],
  [/^[^]{4}ftyp/, 'a video or picture'],
  [/^%PDF-/, 'a PDF'],
  [/^\s*<(?:!doctype|html|head|\?xml)/i, 'a web page; send the URL of the file itself'],
];

/**
 * Detects the format by the first bytes: the media type from a server is often wrong. @throws Problem (unprocessable)
 * that names the format that was found instead
 */
export function detectAudioFormat(bytes: Uint8Array, mediaType: string): AudioFormat {
  const start = Buffer.from(bytes.subarray(0, 300)).toString('latin1');
  const format = formatSignatures.find(([signature]) => signature.test(start))?.[1];
  if (format !== undefined) return format;
  if (bytes.length === 0) throw new Problem(unprocessable, 'The file is empty.');
  const other =
    otherSignatures.find(([signature]) => signature.test(start))?.[1] ?? `of an unknown format, sent as ${mediaType}`;
  throw new Problem(unprocessable, `Supported formats are mp3, wav, m4a and ogg, but the file is ${other}.`, {
    members: { media_type: mediaType },
  });
}

interface Recording {
  readonly bytes: Uint8Array;
  readonly format: AudioFormat;
  /** Whisper's code. */
  readonly language: string | undefined;
  readonly model: string;
  readonly signal: AbortSignal;
}

interface Transcription {
  readonly text: string;
  readonly language: string | undefined;
  readonly duration_s: number | undefined;
}

/** Servers without verbose_json omit everything but the text, or send null instead. */
const transcription = z.looseObject({
  text: z.string(),
  language: z.string().nullish(),
  duration: z.coerce.number().nonnegative().nullish().catch(undefined),
});
/** Error messages in the formats of OpenAI and FastAPI. */
const serverError = z.union([
  z.looseObject({ error: z.looseObject({ message: z.string() }) }).transform(({ error }) => error.message),
  z.looseObject({ detail: z.string() }).transform(({ detail }) => detail),
]);

/** @throws Problem (service-off, unprocessable, tool-failed, service-timeout) */
async function askSpeechServer(
  urls: ServiceUrls,
  { bytes, format, language, model, signal }: Recording,
): Promise<Transcription> {
  const form = new FormData();
  form.set('file', new Blob([Uint8Array.from(bytes)], { type: audioTypes[format] }), `recording.${format}`);
  form.set('model', model);
  form.set('response_format', 'verbose_json');
  if (language !== undefined) form.set('language', language);
  const { status, bytes: body } = await callService(urls, 'speech', {
    path: '/v1/audio/transcriptions',
    method: 'POST',
    ...(await encodeForm(form)),
    maxBytes: 4_194_304,
    timeoutMs: 280_000,
    signal,
  });
  const answer = parseJson(body);
  if (status !== 200) throw toSpeechProblem(status, serverError.safeParse(answer).data, model);
  const read = transcription.safeParse(answer);
  if (!read.success)
    throw new Problem(toolFailed, 'The speech server returned something other than a transcription.', {
      cause: read.error,
    });
  const { text, language: detected, duration } = read.data;
  return {
    text: text.trim(),
    language: detected == null ? undefined : (toWhisperLanguage(detected) ?? detected),
    duration_s: duration ?? undefined,
  };
}

/** Encodes the form in one piece, so that its length is known: some servers do not accept chunks. */
async function encodeForm(form: FormData): Promise<{ headers: Record<string, string>; body: Uint8Array }> {
  const response = new Response(form);
  return { headers: { 'content-type': response.headers.get('content-type') ?? '' }, body: await response.bytes() };
}

function toSpeechProblem(status: number, message: string | undefined, model: string): Problem {
  const words = message === undefined ? '' : `: ${message.replaceAll(/\s+/g, ' ').slice(0, 300)}`;
  if (status === 404)
    return new Problem(
      toolFailed,
      `The speech server does not have the model ${model}${words}. The operator of this installation needs to load it there, or to set MOORAGE_SPEECH_MODEL to another model.`,
    );
  if ([400, 413, 415, 422].includes(status))
    return new Problem(
      unprocessable,
      `The recording cannot be transcribed${words === '' ? '; it may be damaged.' : words}`,
    );
  return new Problem(toolFailed, `The speech server returned status ${status}${words}`);
}

function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}

const whisperLanguages: ReadonlySet<string> = new Set(
  (
    'af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he hi hr ht hu hy id is it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ' +
    'ne nl nn no oc pa pl ps pt ro ru sa sd si sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk ur uz vi yi yo yue zh'
  ).split(' '),
);

/** Whisper's codes that differ from today's. */
const whisperRenames: Readonly<Record<string, string>> = {
  jv: 'jw',
  nb: 'no',
  fil: 'tl',
  iw: 'he',
  ji: 'yi',
  in: 'id',
};

/**
 * Converts a code or name to Whisper's code, such as `de` for `de-AT` or `German`. Undefined if Whisper does not
 * support it.
 */
export function toWhisperLanguage(text: string): string | undefined {
  const plain = text.trim().toLowerCase();
  if (whisperLanguages.has(plain)) return plain;
  const base = findLanguage(plain)?.code.split('-')[0] ?? '';
  const code = whisperRenames[base] ?? base;
  return whisperLanguages.has(code) ? code : undefined;
}
