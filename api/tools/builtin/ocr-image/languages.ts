// The OCR languages whose data is installed, each as an npm package: nothing is downloaded during a call.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export interface OcrTask {
  readonly bytes: Uint8Array;
  readonly language: string;
}

/** Languages that can be read, with other names by which they are asked for. */
export const ocrLanguages: readonly {
  readonly code: string;
  readonly name: string;
  readonly names: readonly string[];
}[] = [{ code: 'eng', name: 'English', names: ['en', 'english', 'en-us', 'en-gb'] }];

/**
 * Folder of a language's data: the small model of whole numbers, which reads nearly as well as the large one and starts
 * much faster.
 */
export function dataFolder(code: string): string {
  return join(
    dirname(createRequire(import.meta.url).resolve(`@tesseract.js-data/${code}/package.json`)),
    '4.0.0_best_int',
  );
}
