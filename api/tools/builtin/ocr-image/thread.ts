// The thread that runs Tesseract: the one of tesseract.js, except for where it reads language data. tesseract.js
// expects one folder for all languages; here each language has its own package.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { gunzipSync } from 'node:zlib';
import { OEM } from 'tesseract.js';

interface Script {
  dispatchHandlers(packet: unknown, send: (answer: unknown) => void): void;
  setAdapter(adapter: Readonly<Record<string, unknown>>): void;
}

const require = createRequire(import.meta.url);
type GetCore = (engine: OEM, path: string, progress: unknown) => Promise<unknown>;
const getCore = require('tesseract.js/src/worker-script/node/getCore.js') as GetCore;
const script = require('tesseract.js/src/worker-script/index.js') as Script;

parentPort?.on('message', (packet: unknown) => {
  script.dispatchHandlers(packet, (answer) => parentPort?.postMessage(answer));
});
script.setAdapter({
  // tesseract.js passes true, which it reads as no engine, and would load the engine for models of every kind.
  getCore: async (_lstmOnly: unknown, path: string, progress: unknown) => getCore(OEM.LSTM_ONLY, path, progress),
  gunzip: gunzipSync,
  /** The path is `<folder>/<code>.traineddata.gz`; the folder is ignored. */
  readCache: async (path: string) => readFile(resolveLanguageFile(basename(path).split('.')[0] ?? '')),
  deleteCache: () => undefined,
});

/**
 * Finds the data of a language: the small integer model, which reads nearly as well as the large one and starts much
 * faster.
 */
export function resolveLanguageFile(code: string): string {
  const folder = dirname(require.resolve(`@tesseract.js-data/${code}/package.json`));
  return join(folder, '4.0.0_best_int', `${code}.traineddata.gz`);
}
