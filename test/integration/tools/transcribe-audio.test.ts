// transcribe_audio gives back the words that were spoken, from every format, through a real Whisper model.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { z } from 'zod';
import type { ToolDependencies } from '../../../api/tools/tool.ts';
import { createTranscribeAudioTool } from '../../../api/tools/builtin/transcribe-audio/transcribe-audio.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { isProblem } from '../../support/tools/call.ts';
import { runTool } from '../../support/tools/context.ts';
import { page, startWeb, type Web } from '../../support/tools/fetch/web.ts';
import { urlServices } from '../../support/tools/url-services.ts';
import type { LocalServer } from '../../support/services/python.ts';
import { createSpeech, speechModel, startSpeech } from '../../support/services/speech.ts';

const answer = z.object({ text: z.string(), language: z.string(), duration_s: z.number(), format: z.string() });
const sentence = 'The ship left the harbor at noon and sailed to the island.';
const words = (text: string): string => text.toLowerCase().replaceAll(/[^a-z ]/g, '');

describe('transcribe_audio with a real model', () => {
  let speech: LocalServer;
  let web: Web;
  let services: ToolDependencies;
  let tool: Tool;
  const hear = async (path: string, more: Record<string, unknown> = {}): Promise<z.output<typeof answer>> =>
    answer.parse((await runTool(tool, { url: `${web.url}${path}`, ...more })).result);

  beforeAll(async () => {
    speech = await startSpeech();
    const whole = await createSpeech(sentence, 'mp3');
    web = await startWeb({
      '/spoken.wav': page('audio/x-wav', await createSpeech(sentence, 'wav')),
      '/spoken.mp3': page('audio/mpeg', whole),
      '/spoken.m4a': page('video/mp4', await createSpeech(sentence, 'm4a')),
      '/spoken.ogg': page('application/ogg', await createSpeech(sentence, 'ogg')),
      '/other.ogg': page('audio/ogg', await createSpeech('My brother bought a new bicycle in the city.', 'ogg')),
      '/broken.m4a': page(
        'audio/mp4',
        Buffer.concat([Buffer.from('\0\0\0\x20ftypM4A \0\0\0\0'), Buffer.alloc(2_000, 7)]),
      ),
    });
    services = { ...urlServices([web.host], { speech: speech.url }), speechModel };
    tool = createTranscribeAudioTool(services);
  });
  afterAll(async () => {
    await web.close();
    await speech.stop();
    await services.workers.close();
  });

  for (const format of ['wav', 'mp3', 'm4a', 'ogg']) {
    it(`[spec limits.audio-formats transcribe.answer] transcribes ${format}`, async () => {
      const heard = await hear(`/spoken.${format}`);
      assert.equal(words(heard.text), words(sentence));
      assert.deepEqual([heard.format, heard.language], [format, 'en']);
      assert.ok(heard.duration_s > 3 && heard.duration_s < 5, String(heard.duration_s));
    });
  }

  it('transcribes different words differently', async () => {
    const { text } = await hear('/other.ogg', { language: 'English' });
    assert.equal(words(text), 'my brother bought a new bicycle in the city');
  });

  it('reports a broken recording, and a missing model by name', async () => {
    await assert.rejects(hear('/broken.m4a'), isProblem('unprocessable', /cannot be transcribed/));
    const other = createTranscribeAudioTool({ ...services, speechModel: 'whisper-huge' });
    await assert.rejects(
      runTool(other, { url: `${web.url}/spoken.wav` }),
      isProblem('tool-failed', /whisper-huge.*MOORAGE_SPEECH_MODEL/),
    );
  });
});
