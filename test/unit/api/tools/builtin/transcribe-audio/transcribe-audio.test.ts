// transcribe_audio: what it takes, what it asks the speech server, and what it makes of its answers.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, it } from 'vitest';
import type { ServiceUrls } from '../../../../../../api/tools/services/backing-services.ts';
import type { ToolDependencies } from '../../../../../../api/tools/tool.ts';
import {
  createTranscribeAudioTool,
  detectAudioFormat,
  audioFormats,
  toWhisperLanguage,
} from '../../../../../../api/tools/builtin/transcribe-audio/transcribe-audio.ts';
import { Problem } from '../../../../../../lib/problem.ts';
import { call, isProblem } from '../../../../../support/tools/call.ts';
import { page, startWeb, type Web } from '../../../../../support/tools/fetch/web.ts';
import { urlServices } from '../../../../../support/tools/url-services.ts';

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');
const wav = bytes('RIFF\x24\0\0\0WAVEfmt ');
const oggPage = 'OggS\0\x02'.padEnd(26, '\0');

/** What a multipart form holds, by name. */
function fieldsOf(form: string): Record<string, string> {
  const [boundary = ''] = form.split('\r\n', 1);
  return Object.fromEntries(
    form
      .split(boundary)
      .slice(1, -1)
      .map((part): [string, string] => {
        const [head = '', ...body] = part.trimStart().split('\r\n\r\n');
        return [/name="([^"]*)"/.exec(head)?.[1] ?? '', body.join('\r\n\r\n').replace(/\r\n$/, '')];
      }),
  );
}

describe('transcribe_audio', () => {
  let web: Web;
  let speech: Web;
  let services: ToolDependencies;
  const replies: [number, string][] = [];
  const forms: string[] = [];
  const hear = async (
    input: Record<string, unknown>,
    urls: ServiceUrls = { speech: speech.url },
  ): ReturnType<typeof call> => call(createTranscribeAudioTool({ ...services, urls }), input);

  beforeAll(async () => {
    web = await startWeb({
      '/a.wav': page('application/octet-stream', wav),
      '/page': page('text/html', '<!DOCTYPE html><title>A player</title>'),
      '/song.flac': page('audio/flac', 'fLaC'),
      '/empty': page('audio/mpeg', ''),
      '/long.mp3': page('audio/mpeg', Buffer.concat([bytes('ID3\x04'), Buffer.alloc(15_000_000)])),
    });
    speech = await startWeb({
      '/v1/audio/transcriptions': (request, response) => {
        void (async () => {
          forms.push(Buffer.concat((await request.toArray()) as Buffer[]).toString('latin1'));
          const [status, body] = replies.shift() ?? [500, ''];
          response.writeHead(status, { 'content-type': 'application/json' }).end(body);
        })();
      },
    });
    services = urlServices([web.host]);
  });
  afterAll(async () => {
    await web.close();
    await speech.close();
    await services.workers.close();
  });

  it('[spec transcribe.url transcribe.answer] sends the recording to the speech server, and returns the text and the language', async () => {
    replies.push([
      200,
      JSON.stringify({ task: 'transcribe', text: ' Guten Tag. \n', language: 'german', duration: 1.5, segments: [] }),
    ]);
    const { result } = await hear({ url: `${web.url}/a.wav` });
    assert.deepEqual(result, {
      url: `${web.url}/a.wav`,
      text: 'Guten Tag.',
      language: 'de',
      duration_s: 1.5,
      format: 'wav',
      bytes: wav.length,
    });
    const form = forms.pop() ?? '';
    assert.deepEqual(fieldsOf(form), {
      file: wav.toString('latin1'),
      model: 'whisper-test',
      response_format: 'verbose_json',
    });
    assert.match(form, /name="file"; filename="recording.wav"\r\ncontent-type: audio\/wav\r\n/i);
  });

  it('[spec transcribe.language] passes on a language hint, by code or by name', async () => {
    for (const [language, code] of [
      ['de', 'de'],
      ['German', 'de'],
      ['pt-BR', 'pt'],
      ['zh-Hant', 'zh'],
      ['nb', 'no'],
      ['yue', 'yue'],
    ]) {
      replies.push([200, '{"text": "", "language": null}']);
      const { result } = await hear({ url: `${web.url}/a.wav`, lang: language });
      assert.equal(fieldsOf(forms.pop() ?? '')['language'], code);
      assert.equal(result['language'], code, 'of the hint, where the server does not report one');
    }
    await assert.rejects(
      hear({ url: `${web.url}/a.wav`, language: 'Klingon' }),
      (error) =>
        error instanceof Problem &&
        error.errors[0]?.field === 'language' &&
        /code such as en/.test(error.errors[0].fix),
    );
    assert.deepEqual(forms, []);
  });

  it('[spec limits.audio-size limits.audio-long] rejects more than 15 MB, and advises splitting', async () => {
    await assert.rejects(hear({ url: `${web.url}/long.mp3` }), isProblem('fetch-too-large', /15000000 bytes.*Split/));
  });

  it('names what was sent instead of a recording, without contacting a service', async () => {
    await assert.rejects(hear({ url: `${web.url}/page` }), isProblem('unprocessable', /web page/));
    await assert.rejects(
      hear({ url: `${web.url}/song.flac` }),
      isProblem('unprocessable', /mp3, wav, m4a and ogg.*FLAC/),
    );
    await assert.rejects(hear({ url: `${web.url}/empty` }), isProblem('unprocessable', /empty/));
    await assert.rejects(hear({ url: `${web.url}/missing` }), isProblem('fetch-failed', /404/));
    assert.deepEqual(forms, []);
  });

  it('passes on the error of the speech server', async () => {
    const url = `${web.url}/a.wav`;
    const cases: [number, string, string, RegExp][] = [
      [
        400,
        '{"error": {"message": "Invalid data found"}}',
        'unprocessable',
        /cannot be transcribed: Invalid data found/,
      ],
      [422, '{"detail": [{"msg": "x"}]}', 'unprocessable', /may be damaged/],
      [
        404,
        '{"detail": "Model is not installed"}',
        'tool-failed',
        /whisper-test: Model is not installed.*MOORAGE_SPEECH_MODEL/,
      ],
      [500, 'oops', 'tool-failed', /status 500/],
      [200, 'oops', 'tool-failed', /something other/],
      [200, '{"text": 5}', 'tool-failed', /something other/],
    ];
    for (const [status, body, slug, words] of cases) {
      replies.push([status, body]);
      await assert.rejects(hear({ url }), isProblem(slug, words));
    }
    await assert.rejects(hear({ url }, {}), isProblem('service-off', /tools\.speech\.enabled/));
    await assert.rejects(
      hear({ url }, { speech: 'http://127.0.0.1:9' }),
      isProblem('tool-failed', /cannot be reached/),
    );
  });
});

it('[spec limits.audio-formats] detects mp3, wav, m4a and ogg by their first bytes', () => {
  const known: [string, string][] = [
    ['mp3', 'ID3\x03\0'],
    ['mp3', '\xff\xfb\x90'],
    ['mp3', '\xff\xf3\x40'],
    ['wav', 'RIFF\xff\xff\xff\xffWAVE'],
    ['m4a', '\0\0\0\x20ftypM4A \0'],
    ['m4a', '\0\0\0\x18ftypisom'],
    ['ogg', `${oggPage}\x01\x1e\x01vorbis`],
    ['ogg', `${oggPage}\x01\x13OpusHead`],
  ];
  for (const [format, start] of known)
    assert.equal(detectAudioFormat(bytes(start), 'text/plain'), format, JSON.stringify(start));
  const unknown: [string, RegExp][] = [
    ['\xff\xf1\x50', /AAC/],
    ['RIFF\0\0\0\0AVI ', /an unknown format, sent as audio\/mpeg/],
    ['RIFF\0\0\0\0WEBP', /an unknown format/],
    ['\x1aE\xdf\xa3', /WebM/],
    ['\0\0\0\x20ftypheic', /picture/],
    [`${oggPage}\x01\x2a\x80theora`, /Ogg file without/],
    ['%PDF-1.7', /PDF/],
    [' <html>', /web page/],
  ];
  for (const [start, words] of unknown)
    assert.throws(
      () => detectAudioFormat(bytes(start), 'audio/mpeg'),
      isProblem('unprocessable', words),
      JSON.stringify(start),
    );
});

it('accepts any bytes, including damaged recordings, without crashing', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (any) => {
      try {
        return audioFormats.includes(detectAudioFormat(any, 'audio/mpeg'));
      } catch (error) {
        return error instanceof Problem && error.type.slug === 'unprocessable';
      }
    }),
  );
  fc.assert(fc.property(fc.string(), (any) => /^[a-z]{2,3}$/.test(toWhisperLanguage(any) ?? 'en')));
  // Codes with extensions, which have no name of their own.
  assert.equal(toWhisperLanguage('AA_0-00'), undefined);
  assert.equal(toWhisperLanguage('de-u-co-phonebk'), 'de');
});
