// Reads the text in an image or in pages of a PDF with Tesseract. Runs in a worker process. The file is opened within
// limits first, so that Tesseract receives only plain pixels. PDFium (WebAssembly) draws the pages of a PDF. It
// executes nothing in the file, since this build has no JavaScript, and loads nothing that the file refers to.
import { fileURLToPath } from 'node:url';
import { readFileSync } from 'node:fs';
import { createWorker, OEM, type Worker } from 'tesseract.js';
import { init } from '@embedpdf/pdfium';
import sharp from 'sharp';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import { toImageProblem, openImage } from '../convert-image/image-worker.ts';
import type { OcrLine, OcrTask, OcrPage, OcrReading } from './ocr-image.ts';

const maxPixels = 12_000_000;
const maxLines = 1_000;
/** The next page is started only if it would end within this time, estimated from the slowest page so far. */
const pagesMs = 60_000;

export default async function run(task: OcrTask): Promise<OcrReading> {
  const worker = await startRecogniser(task.languages);
  if (task.isPdf) {
    const pdf = await PdfPages.open(task.bytes);
    try {
      return await readPages(worker, pdf, task);
    } finally {
      pdf.close();
    }
  }
  const read = await readPage(worker, await preparePicture(task.bytes), 1);
  return { pages: [read.page], lines: read.lines.slice(0, maxLines), total_pages: 1, truncated: false };
}

async function readPages(worker: Worker, pdf: PdfPages, { from, to, maxPages }: OcrTask): Promise<OcrReading> {
  if (from > pdf.count)
    throw new Problem(unprocessable, `from_page is ${from}, but the file has only ${pdf.count} pages.`);
  const wanted = Math.min(to ?? pdf.count, pdf.count);
  const [pages, lines]: [OcrPage[], OcrLine[]] = [[], []];
  const began = performance.now();
  let longest = 0;
  for (let number = from; number <= Math.min(wanted, from + maxPages - 1); number += 1) {
    const since = performance.now();
    if (since - began + longest * 1.3 > pagesMs) break;
    const picture = await pdf.drawPage(number);
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

async function preparePicture(bytes: Uint8Array): Promise<Buffer> {
  const { image, width, height } = await openImage(bytes);
  const shrink = Math.min(1, Math.sqrt(maxPixels / (width * height)));
  return image
    .resize({ width: Math.max(1, Math.floor(width * shrink)), withoutEnlargement: true })
    .flatten({ background: '#ffffff' })
    .greyscale()
    .png({ compressionLevel: 1 })
    .toBuffer()
    .catch((error: unknown) => {
      throw toImageProblem(error);
    });
}

async function readPage(worker: Worker, png: Buffer, number: number): Promise<{ page: OcrPage; lines: OcrLine[] }> {
  const { data } = await worker.recognize(png, {}, { text: true, blocks: true });
  const lines = (data.blocks ?? []).flatMap(({ paragraphs }) => paragraphs).flatMap((paragraph) => paragraph.lines);
  return {
    // The header of a PNG holds its width and height.
    page: {
      page: number,
      text: removeCjkSpaces(data.text.trim()),
      confidence: data.confidence,
      width: png.readUInt32BE(16),
      height: png.readUInt32BE(20),
    },
    lines: lines.map(({ text, confidence, bbox }) => ({
      page: number,
      text: removeCjkSpaces(text.trim()),
      confidence,
      x: bbox.x0,
      y: bbox.y0,
      width: bbox.x1 - bbox.x0,
      height: bbox.y1 - bbox.y0,
    })),
  };
}

/** Tesseract inserts spaces between Chinese and Japanese characters. */
function removeCjkSpaces(text: string): string {
  return text.replaceAll(
    /(?<=[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\u3000-\u303f\uff00-\uffef]) +(?=[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\u3000-\u303f\uff00-\uffef,.;:!?])|(?<=[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}][,.;:!?]) +(?=[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}])/gu,
    '',
  );
}

let recognition: { languages: string; readonly worker: Promise<Worker> } | undefined;

/** One Tesseract serves all calls of this process: starting takes longer than reading, and its memory is freed late. */
async function startRecogniser(codes: readonly string[]): Promise<Worker> {
  const languages = codes.join('+');
  recognition ??= {
    languages,
    worker: createWorker(languages, OEM.LSTM_ONLY, {
      workerPath: fileURLToPath(new URL('thread.ts', import.meta.url)),
      // The thread finds the data itself, but is asked for it only if there is a path.
      langPath: '.',
      cacheMethod: 'none',
      gzip: true,
    }),
  };
  const worker = await recognition.worker;
  if (recognition.languages !== languages) await worker.reinitialize(languages, OEM.LSTM_ONLY);
  recognition.languages = languages;
  return worker;
}

/** The part of PDFium that is used here; its own types need those of Emscripten. */
interface Pdfium {
  readonly pdfium: {
    readonly HEAPU8: Uint8Array;
    readonly wasmExports: { malloc(size: number): number; free(at: number): void };
  };
  PDFiumExt_Init(): void;
  FPDF_LoadMemDocument(bytes: number, length: number, password: string): number;
  FPDF_CloseDocument(document: number): void;
  FPDF_GetLastError(): number;
  FPDF_GetPageCount(document: number): number;
  FPDF_LoadPage(document: number, index: number): number;
  FPDF_ClosePage(page: number): void;
  FPDF_GetPageWidthF(page: number): number;
  FPDF_GetPageHeightF(page: number): number;
  FPDFBitmap_Create(width: number, height: number, alpha: number): number;
  FPDFBitmap_FillRect(bitmap: number, x: number, y: number, width: number, height: number, colour: number): void;
  FPDFBitmap_GetBuffer(bitmap: number): number;
  FPDFBitmap_GetStride(bitmap: number): number;
  FPDFBitmap_Destroy(bitmap: number): void;
  FPDF_RenderPageBitmap(
    bitmap: number,
    page: number,
    x: number,
    y: number,
    width: number,
    height: number,
    rotate: number,
    flags: number,
  ): void;
}

/** PDF units per inch. Tesseract reads best near 300 dots per inch, but its time grows with the number of dots. */
const inch = 72;
const scale = 216 / inch;
const passwordError = 4;
const white = 0xffffffff;
/** FPDF_ANNOT: draws notes and filled-in forms too. */
const withAnnotations = 1;

let loadingPdfium: Promise<Pdfium> | undefined;

async function loadPdfium(): Promise<Pdfium> {
  loadingPdfium ??= (async () => {
    const wasmBinary = readFileSync(fileURLToPath(import.meta.resolve('@embedpdf/pdfium/pdfium.wasm')));
    const module = (await init({ wasmBinary })) as unknown as Pdfium;
    module.PDFiumExt_Init();
    return module;
  })();
  return loadingPdfium;
}

class PdfPages {
  readonly #pdfium: Pdfium;
  readonly #document: number;
  /** Address of the file's bytes in the memory of PDFium. */
  readonly #at: number;
  readonly count: number;

  private constructor(module: Pdfium, document: number, at: number) {
    this.#pdfium = module;
    this.#document = document;
    this.#at = at;
    this.count = module.FPDF_GetPageCount(document);
  }

  /** @throws Problem (unprocessable) if it is not a readable PDF */
  static async open(bytes: Uint8Array): Promise<PdfPages> {
    const module = await loadPdfium();
    const at = module.pdfium.wasmExports.malloc(bytes.length);
    module.pdfium.HEAPU8.set(bytes, at);
    const document = module.FPDF_LoadMemDocument(at, bytes.length, '');
    if (document === 0) {
      module.pdfium.wasmExports.free(at);
      throw new Problem(
        unprocessable,
        module.FPDF_GetLastError() === passwordError
          ? 'The PDF is password-protected.'
          : 'The PDF cannot be read: it is damaged.',
      );
    }
    return new PdfPages(module, document, at);
  }

  close(): void {
    this.#pdfium.FPDF_CloseDocument(this.#document);
    this.#pdfium.pdfium.wasmExports.free(this.#at);
  }

  /** Draws a page as a grey PNG; undefined if it cannot be drawn. */
  async drawPage(number: number): Promise<Buffer | undefined> {
    const page = this.#pdfium.FPDF_LoadPage(this.#document, number - 1);
    if (page === 0) return undefined;
    try {
      return await this.#drawBitmap(page);
    } finally {
      this.#pdfium.FPDF_ClosePage(page);
    }
  }

  async #drawBitmap(page: number): Promise<Buffer | undefined> {
    const [points, high] = [this.#pdfium.FPDF_GetPageWidthF(page), this.#pdfium.FPDF_GetPageHeightF(page)];
    const fitting = Math.min(scale, Math.sqrt(maxPixels / Math.max(1, points * high)));
    const [width, height] = [Math.max(1, Math.round(points * fitting)), Math.max(1, Math.round(high * fitting))];
    const bitmap = this.#pdfium.FPDFBitmap_Create(width, height, 0);
    if (bitmap === 0) return undefined;
    try {
      this.#pdfium.FPDFBitmap_FillRect(bitmap, 0, 0, width, height, white);
      this.#pdfium.FPDF_RenderPageBitmap(bitmap, page, 0, 0, width, height, 0, withAnnotations);
      const stride = this.#pdfium.FPDFBitmap_GetStride(bitmap);
      const at = this.#pdfium.FPDFBitmap_GetBuffer(bitmap);
      // Four bytes per dot: the first three give nearly the same grey in any order.
      const dots = Buffer.from(this.#pdfium.pdfium.HEAPU8.subarray(at, at + stride * height));
      return await sharp(dots, { raw: { width: stride / 4, height, channels: 4 } })
        .extract({ left: 0, top: 0, width, height })
        .removeAlpha()
        .greyscale()
        // Without a density, Tesseract guesses one.
        .withMetadata({ density: Math.round(inch * fitting) })
        .png({ compressionLevel: 1 })
        .toBuffer();
    } finally {
      this.#pdfium.FPDFBitmap_Destroy(bitmap);
    }
  }
}
