// The thread in which Tesseract runs: that of tesseract.js, but for where the data of a language is read. tesseract.js
// knows one folder for all languages; here each has its own package.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { gunzipSync } from 'node:zlib';
import { OEM } from 'tesseract.js';
import { languageFile } from './languages.ts';

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
  // tesseract.js asks with true, which it takes for no engine, and loads the one for models of every kind.
  getCore: async (_lstmOnly: unknown, path: string, progress: unknown) => getCore(OEM.LSTM_ONLY, path, progress),
  gunzip: gunzipSync,
  /** Of `<folder>/<code>.traineddata.gz`, whatever the folder. */
  readCache: async (path: string) => readFile(languageFile(basename(path).split('.')[0] ?? '')),
  deleteCache: () => undefined,
});
