// Reads the text in an image or in pages of a PDF with Tesseract. Runs in a worker process. The file is opened within
// limits first, so that Tesseract only sees plain pixels.
import { fileURLToPath } from 'node:url';
import { createWorker, OEM, type Worker } from 'tesseract.js';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import { broken, openImage } from '../convert-image/open-image.ts';
import { startsAsPdf } from '../extract-pdf/read.ts';
import { PdfPages } from './pdf-pages.ts';
import { maxPages, type Line, type OcrTask, type Page, type Reading } from './read.ts';

const maxPixels = 12_000_000;
const maxLines = 1_000;
/** A page is begun only if it will be done in this time, as the ones before it were. */
const pagesMs = 60_000;

export default async function run({ bytes, languages, from, to }: OcrTask): Promise<Reading> {
  const worker = await recogniser(languages);
  if (startsAsPdf(bytes)) {
    const pdf = await PdfPages.open(bytes);
    try {
      return await pagesOf(worker, pdf, from, to);
    } finally {
      pdf.close();
    }
  }
  const read = await readPage(worker, await plain(bytes), 1);
  return { pages: [read.page], lines: read.lines.slice(0, maxLines), total_pages: 1, truncated: false };
}

async function pagesOf(worker: Worker, pdf: PdfPages, from: number, to: number | undefined): Promise<Reading> {
  if (from > pdf.count)
    throw new Problem(unprocessable, `from_page is ${from}, but the file has only ${pdf.count} pages.`);
  const wanted = Math.min(to ?? pdf.count, pdf.count);
  const [pages, lines]: [Page[], Line[]] = [[], []];
  const began = performance.now();
  let longest = 0;
  for (let number = from; number <= Math.min(wanted, from + maxPages - 1); number += 1) {
    const since = performance.now();
    if (since - began + longest * 1.3 > pagesMs) break;
    const picture = await pdf.png(number);
    if (picture === undefined) pages.push({ page: number, text: '', confidence: 0, width: 0, height: 0 });
    else {
      const read = await readPage(worker, picture, number);
      pages.push(read.page);
      lines.push(...read.lines);
    }
    longest = Math.max(longest, performance.now() - since);
  }
  const truncated = (pages.at(-1)?.page ?? from) < wanted;
  return { pages, lines: lines.slice(0, maxLines), total_pages: pdf.count, truncated };
}

async function plain(bytes: Uint8Array): Promise<Buffer> {
  const { image, width, height } = await openImage(bytes);
  const shrink = Math.min(1, Math.sqrt(maxPixels / (width * height)));
  return image
    .resize({ width: Math.max(1, Math.floor(width * shrink)), withoutEnlargement: true })
    .flatten({ background: '#ffffff' })
    .greyscale()
    .png({ compressionLevel: 1 })
    .toBuffer()
    .catch((error: unknown) => {
      throw broken(error);
    });
}

async function readPage(worker: Worker, png: Buffer, number: number): Promise<{ page: Page; lines: Line[] }> {
  const { data } = await worker.recognize(png, {}, { text: true, blocks: true });
  const lines = (data.blocks ?? []).flatMap(({ paragraphs }) => paragraphs).flatMap((paragraph) => paragraph.lines);
  return {
    // Width and height of a PNG stand in its header.
    page: {
      page: number,
      text: joined(data.text.trim()),
      confidence: data.confidence,
      width: png.readUInt32BE(16),
      height: png.readUInt32BE(20),
    },
    lines: lines.map(({ text, confidence, bbox }) => ({
      page: number,
      text: joined(text.trim()),
      confidence,
      x: bbox.x0,
      y: bbox.y0,
      width: bbox.x1 - bbox.x0,
      height: bbox.y1 - bbox.y0,
    })),
  };
}

/** Tesseract puts spaces between Chinese and Japanese characters, where there are none. */
function joined(text: string): string {
  return text.replaceAll(
    /(?<=[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\u3000-\u303f\uff00-\uffef]) +(?=[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\u3000-\u303f\uff00-\uffef,.;:!?])|(?<=[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}][,.;:!?]) +(?=[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}])/gu,
    '',
  );
}

let recognising: { languages: string; readonly worker: Promise<Worker> } | undefined;

/** One for all calls of this process: to start it takes longer than to read, and its memory comes back late. */
async function recogniser(codes: readonly string[]): Promise<Worker> {
  const languages = codes.join('+');
  recognising ??= {
    languages,
    worker: createWorker(languages, OEM.LSTM_ONLY, {
      workerPath: fileURLToPath(new URL('thread.ts', import.meta.url)),
      // The thread knows where, but is only asked where there is a path.
      langPath: '.',
      cacheMethod: 'none',
      gzip: true,
    }),
  };
  const worker = await recognising.worker;
  if (recognising.languages !== languages) await worker.reinitialize(languages, OEM.LSTM_ONLY);
  recognising.languages = languages;
  return worker;
}
