// What the worker of ocr_image is given, and what it reads.
import { z } from 'zod';

export interface OcrTask {
  readonly bytes: Uint8Array;
  /** Codes of Tesseract. */
  readonly languages: readonly string[];
  /** Of a PDF. */
  readonly from: number;
  readonly to: number | undefined;
}

/** Pages of a PDF that are read in a call, if there is time. */
export const maxPages = 10;

export const line = z.object({
  page: z.int(),
  text: z.string(),
  confidence: z.number(),
  x: z.int(),
  y: z.int(),
  width: z.int(),
  height: z.int(),
});
export type Line = z.output<typeof line>;

export const page = z.object({
  page: z.int(),
  text: z.string(),
  confidence: z.number(),
  width: z.int(),
  height: z.int(),
});
export type Page = z.output<typeof page>;

export const reading = z.object({
  pages: z.array(page),
  lines: z.array(line),
  total_pages: z.int(),
  truncated: z.boolean(),
});
export type Reading = z.output<typeof reading>;
