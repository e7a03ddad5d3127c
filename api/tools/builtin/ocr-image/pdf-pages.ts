// Draws pages of a PDF as pictures with PDFium (WebAssembly). Runs in a worker process. Nothing in the file is executed:
// this build of PDFium has no JavaScript, and what the file refers to is not loaded.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { init } from '@embedpdf/pdfium';
import sharp from 'sharp';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';

/** What is used here of PDFium; its own types need those of Emscripten. */
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

/** Of 72 dots to the inch: what Tesseract reads best is near 300 dots, and takes time by the dot. */
const inch = 72;
const scale = 216 / inch;
const maxPixels = 12_000_000;
const passwordError = 4;
const white = 0xffffffff;
/** FPDF_ANNOT: notes and filled-in forms are seen too. */
const withAnnotations = 1;

let started: Promise<Pdfium> | undefined;

async function pdfium(): Promise<Pdfium> {
  started ??= (async () => {
    const wasmBinary = readFileSync(fileURLToPath(import.meta.resolve('@embedpdf/pdfium/pdfium.wasm')));
    const module = (await init({ wasmBinary })) as unknown as Pdfium;
    module.PDFiumExt_Init();
    return module;
  })();
  return started;
}

export class PdfPages {
  readonly #pdfium: Pdfium;
  readonly #document: number;
  /** Where its bytes are. */
  readonly #at: number;
  readonly count: number;

  private constructor(module: Pdfium, document: number, at: number) {
    this.#pdfium = module;
    this.#document = document;
    this.#at = at;
    this.count = module.FPDF_GetPageCount(document);
  }

  /** @throws Problem (unprocessable) for what is no readable PDF */
  static async open(bytes: Uint8Array): Promise<PdfPages> {
    const module = await pdfium();
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

  /** A page as a grey PNG; undefined for one that cannot be drawn. */
  async png(number: number): Promise<Buffer | undefined> {
    const page = this.#pdfium.FPDF_LoadPage(this.#document, number - 1);
    if (page === 0) return undefined;
    try {
      return await this.#drawn(page);
    } finally {
      this.#pdfium.FPDF_ClosePage(page);
    }
  }

  async #drawn(page: number): Promise<Buffer | undefined> {
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
      // Four bytes a dot, the first three of which make its grey in any order nearly alike.
      const dots = Buffer.from(this.#pdfium.pdfium.HEAPU8.subarray(at, at + stride * height));
      return await sharp(dots, { raw: { width: stride / 4, height, channels: 4 } })
        .extract({ left: 0, top: 0, width, height })
        .removeAlpha()
        .greyscale()
        // Else Tesseract guesses.
        .withMetadata({ density: Math.round(inch * fitting) })
        .png({ compressionLevel: 1 })
        .toBuffer();
    } finally {
      this.#pdfium.FPDFBitmap_Destroy(bitmap);
    }
  }
}
