// Speech for tests: sentences that espeak-ng speaks, in every format, and a server with a real Whisper model that hears
// them.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runExclusively } from '../exclusively.ts';
import { paths } from '../../../localnode/paths.ts';
import { aptInstall, pythonEnvironment, startServer, type LocalServer } from './python.ts';

const image = join(paths.root, 'localnode', 'images', 'speech');
const environment = { name: 'speech', packages: ['-r', join(image, 'requirements.txt')] };
const here = join(import.meta.dirname, 'speech');

/** Name of the model that the server knows. */
export const speechModel = 'whisper-tiny.en';

export async function startSpeech(): Promise<LocalServer> {
  const folder = await runExclusively(() => pythonEnvironment(environment));
  return startServer(join(folder, 'bin', 'python'), [join(image, 'whisper_server.py')]);
}

/** Speaks a sentence in English, with programs that the first call installs. */
export async function createSpeech(sentence: string, format: 'wav' | 'mp3' | 'm4a' | 'ogg'): Promise<Uint8Array> {
  const python = await runExclusively(() => {
    if (!existsSync('/usr/bin/espeak-ng')) aptInstall('espeak-ng');
    return join(pythonEnvironment(environment), 'bin', 'python');
  });
  const folder = mkdtempSync(join(tmpdir(), 'moorage-speech-'));
  try {
    const wav = join(folder, 'spoken.wav');
    execFileSync('espeak-ng', ['-v', 'en-us', '-s', '150', '-w', wav, sentence]);
    if (format === 'wav') return readFileSync(wav);
    const encoded = join(folder, `encoded.${format}`);
    execFileSync(python, [join(here, 'encode.py'), wav, encoded], { stdio: ['ignore', 'ignore', 'inherit'] });
    return readFileSync(encoded);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
