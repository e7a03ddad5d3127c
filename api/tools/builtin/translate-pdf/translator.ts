// The PDF translator client: one request that sends the PDF and the model's answers, and streams back questions and the
// new PDF.
import { PassThrough, type Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { request } from 'undici';
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { serviceUrl, type ServiceUrls } from '../../services/backing-services.ts';
import { startsAsPdf } from '../extract-pdf/read.ts';
import type { Language } from '../languages.ts';
import { toolBusy, toolFailed, unprocessable } from '../../problems.ts';
import { question, type Passages } from './passages.ts';

export interface Translation {
  readonly pdf: Uint8Array;
  readonly from: Language;
  readonly to: Language;
  /** Like 2-5; undefined for the whole file. */
  readonly pages: string | undefined;
  readonly passages: Passages;
  readonly signal: AbortSignal;
}

const said = z.union([
  z.strictObject({ ask: question }),
  z.strictObject({ pdf: z.string() }),
  z.strictObject({ failed: z.string().max(500), whose: z.enum(['pdf', 'translator']) }),
]);
type TranslatorMessage = z.output<typeof said>;

/** In all, with the new PDF in base64. */
const maxAnswerBytes = 100_000_000;

/** @throws Problem (service-off, tool-busy, tool-failed, unprocessable), or what a passage's model call throws */
export async function translateWith(urls: ServiceUrls, translation: Translation): Promise<Uint8Array> {
  const url = serviceUrl(urls, 'pdftranslator');
  const ending = new AbortController();
  const conversation = new Conversation(translation, ending);
  try {
    const { statusCode, body } = await request(`${url}/translate`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson' },
      body: conversation.sent,
      headersTimeout: 0,
      bodyTimeout: 0,
      signal: AbortSignal.any([translation.signal, ending.signal]),
    });
    if (statusCode === 503)
      throw new Problem(toolBusy, 'The PDF translator has no free slot. Try again in a minute.', {
        headers: { 'retry-after': '60' },
      });
    if (statusCode !== 200) throw new Problem(toolFailed, `The PDF translator returned status ${statusCode}.`);
    return await conversation.read(body);
  } catch (error) {
    // The first failure of a passage ends the talk, and so is what went wrong.
    const cause: unknown = conversation.failure ?? error;
    translation.signal.throwIfAborted();
    if (cause instanceof Problem) throw cause;
    throw new Problem(toolFailed, 'The PDF translator cannot be reached, or stopped before it finished.', {
      cause,
    });
  } finally {
    conversation.sent.destroy();
    ending.abort();
    // Calls in progress are paid for: they end before the cost is reported.
    await conversation.settled();
  }
}

class Conversation {
  readonly sent = new PassThrough();
  failure: unknown;
  readonly #translation: Translation;
  readonly #ending: AbortController;
  readonly #answers = new Set<Promise<void>>();

  constructor(translation: Translation, ending: AbortController) {
    this.#translation = translation;
    this.#ending = ending;
    const { pdf, from, to, pages } = translation;
    this.#send({
      bytes: pdf.length,
      lang_in: translatorCode(from),
      lang_out: translatorCode(to),
      ...(pages === undefined ? {} : { pages }),
    });
    // In pieces: what is sent at once is one chunk, which the other side bounds.
    for (const piece of pieces(pdf, 65_536)) this.sent.write(piece);
    this.sent.on('error', () => undefined);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#answers);
  }

  async read(body: Readable): Promise<Uint8Array> {
    for await (const line of lines(body, maxAnswerBytes)) {
      const heard = understood(line);
      if ('pdf' in heard) return pdfOf(heard.pdf);
      if ('failed' in heard)
        throw new Problem(
          heard.whose === 'pdf' ? unprocessable : toolFailed,
          heard.whose === 'pdf' ? `The PDF cannot be translated: ${heard.failed}` : heard.failed,
        );
      this.#answer(heard.ask);
    }
    throw new Problem(toolFailed, 'The PDF translator stopped before it finished.');
  }

  #answer(asked: z.output<typeof question>): void {
    const answering = this.#translation.passages
      .answer(asked)
      .then(
        (answer) => {
          this.#send(answer);
        },
        (error: unknown) => {
          this.failure ??= error;
          this.#ending.abort();
        },
      )
      .finally(() => {
        this.#answers.delete(answering);
      });
    this.#answers.add(answering);
  }

  #send(line: object): void {
    if (this.sent.writable) this.sent.write(`${JSON.stringify(line)}\n`);
  }
}

function understood(line: string): TranslatorMessage {
  try {
    return said.parse(JSON.parse(line));
  } catch (error) {
    throw new Problem(toolFailed, 'The PDF translator sent an invalid message.', { cause: error });
  }
}

function pdfOf(base64: string): Uint8Array {
  const bytes = Buffer.from(base64, 'base64');
  if (!startsAsPdf(bytes)) throw new Problem(toolFailed, 'The PDF translator returned something other than a PDF.');
  return bytes;
}

/** BabelDOC chooses its fonts by the region of Chinese, Japanese and Korean. */
function translatorCode({ code }: Language): string {
  const { language, script, region } = new Intl.Locale(code).maximize();
  if (language !== 'zh') return code;
  return region === 'HK' ? 'zh-HK' : script === 'Hant' ? 'zh-TW' : 'zh-CN';
}

function* pieces(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function* lines(body: Readable, maximum: number): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  let [rest, size] = ['', 0];
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maximum) throw new Problem(toolFailed, `The PDF translator returned more than ${maximum} bytes.`);
    const [first = '', ...more] = decoder.write(chunk).split('\n');
    rest += first;
    for (const next of more) {
      yield rest;
      rest = next;
    }
  }
}
