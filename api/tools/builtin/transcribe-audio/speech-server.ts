// The speech server client, for any server with OpenAI's /v1/audio/transcriptions, such as speaches, vLLM or LocalAI.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { askService } from '../../services/service-client.ts';
import type { ServiceUrls } from '../../services/backing-services.ts';
import { toolFailed, unprocessable } from '../../problems.ts';
import { audioTypes, type AudioFormat } from './format.ts';
import { spokenLanguage } from './languages.ts';

export interface Recording {
  readonly bytes: Uint8Array;
  readonly format: AudioFormat;
  /** As Whisper writes it. */
  readonly language: string | undefined;
  readonly model: string;
  readonly signal: AbortSignal;
}

export interface Transcription {
  readonly text: string;
  readonly language: string | undefined;
  readonly duration_s: number | undefined;
}

/** Servers that do not know verbose_json leave out all but the text, or have null in its place. */
const transcription = z.looseObject({
  text: z.string(),
  language: z.string().nullish(),
  duration: z.coerce.number().nonnegative().nullish().catch(undefined),
});
/** Errors in the forms of OpenAI and FastAPI. */
const complaint = z.union([
  z.looseObject({ error: z.looseObject({ message: z.string() }) }).transform(({ error }) => error.message),
  z.looseObject({ detail: z.string() }).transform(({ detail }) => detail),
]);

/** @throws Problem (service-off, unprocessable, tool-failed, service-timeout) */
export async function askSpeechServer(
  urls: ServiceUrls,
  { bytes, format, language, model, signal }: Recording,
): Promise<Transcription> {
  const form = new FormData();
  form.set('file', new Blob([Uint8Array.from(bytes)], { type: audioTypes[format] }), `recording.${format}`);
  form.set('model', model);
  form.set('response_format', 'verbose_json');
  if (language !== undefined) form.set('language', language);
  const { status, bytes: body } = await askService(urls, 'speech', {
    path: '/v1/audio/transcriptions',
    method: 'POST',
    ...(await encoded(form)),
    maxBytes: 4_194_304,
    timeoutMs: 280_000,
    signal,
  });
  const answer = jsonOf(body);
  if (status !== 200) throw refusal(status, complaint.safeParse(answer).data, model);
  const read = transcription.safeParse(answer);
  if (!read.success)
    throw new Problem(toolFailed, 'The speech server returned something other than a transcription.', {
      cause: read.error,
    });
  const { text, language: detected, duration } = read.data;
  return {
    text: text.trim(),
    language: detected == null ? undefined : (spokenLanguage(detected) ?? detected),
    duration_s: duration ?? undefined,
  };
}

/** In one piece, so that its length is known: some servers take no chunks. */
async function encoded(form: FormData): Promise<{ headers: Record<string, string>; body: Uint8Array }> {
  const response = new Response(form);
  return { headers: { 'content-type': response.headers.get('content-type') ?? '' }, body: await response.bytes() };
}

function refusal(status: number, said: string | undefined, model: string): Problem {
  const words = said === undefined ? '' : `: ${said.replaceAll(/\s+/g, ' ').slice(0, 300)}`;
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

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
}
