// Reads the text in an image with Tesseract. Runs in a worker process. The image is opened within limits first, so that
// Tesseract only sees plain pixels.
import { createWorker, OEM, type Worker } from 'tesseract.js';
import { broken, openImage } from '../convert-image/open-image.ts';
import { dataFolder, type OcrTask } from './languages.ts';

interface Line {
  readonly text: string;
  readonly confidence: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const maxPixels = 12_000_000;
const maxLines = 1_000;
const recognisers = new Map<string, Promise<Worker>>();

export default async function run({
  bytes,
  language,
}: OcrTask): Promise<{ text: string; confidence: number; lines: Line[]; width: number; height: number }> {
  const { image, width, height } = await openImage(bytes);
  const shrink = Math.min(1, Math.sqrt(maxPixels / (width * height)));
  const plain = await image
    .resize({ width: Math.max(1, Math.floor(width * shrink)), withoutEnlargement: true })
    .flatten({ background: '#ffffff' })
    .greyscale()
    .png({ compressionLevel: 1 })
    .toBuffer({ resolveWithObject: true })
    .catch((error: unknown) => {
      throw broken(error);
    });
  const worker = await recogniser(language);
  const { data } = await worker.recognize(plain.data, {}, { text: true, blocks: true });
  const lines = (data.blocks ?? [])
    .flatMap(({ paragraphs }) => paragraphs)
    .flatMap((paragraph) => paragraph.lines)
    .slice(0, maxLines);
  return {
    text: data.text.trim(),
    confidence: data.confidence,
    width: plain.info.width,
    height: plain.info.height,
    lines: lines.map(({ text, confidence, bbox }) => ({
      text: text.trim(),
      confidence,
      x: bbox.x0,
      y: bbox.y0,
      width: bbox.x1 - bbox.x0,
      height: bbox.y1 - bbox.y0,
    })),
  };
}

/** One for all calls of this process: to start it takes longer than to read, and its memory comes back late. */
async function recogniser(language: string): Promise<Worker> {
  const started =
    recognisers.get(language) ??
    createWorker(language, OEM.LSTM_ONLY, { langPath: dataFolder(language), cacheMethod: 'none', gzip: true });
  recognisers.set(language, started);
  return started;
}
