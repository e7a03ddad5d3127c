// Reads a PDF in a thread of its own, for every tool that meets one.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import type { Workers } from '../../engine/workers/workers.ts';

/** What is read from a PDF. */
export const pdfRead = z.object({
  total_pages: z.int().describe('pages of the file'),
  from_page: z.int().describe('first page that was read'),
  to_page: z.int().describe('last page that was read'),
  pages: z
    .array(
      z.object({
        page: z.int().describe('its number, from 1'),
        text: z.string().describe('its text; empty where it holds none'),
      }),
    )
    .describe('the pages, in order'),
  truncated: z.boolean().describe('whether there are pages after to_page that were asked for and not read'),
  metadata: z
    .object({
      title: z.string().optional(),
      author: z.string().optional(),
      subject: z.string().optional(),
      keywords: z.string().optional(),
      creator: z.string().optional(),
      producer: z.string().optional(),
      created: z.string().optional(),
      modified: z.string().optional(),
      pdf_version: z.string().optional(),
    })
    .describe('what the file says of itself'),
});

export type PdfRead = z.output<typeof pdfRead>;

export interface PdfTask {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number | undefined;
}

/** @throws Problem (unprocessable for what is no readable PDF, tool-limit) */
export async function readPdf(workers: Workers, task: PdfTask, signal: AbortSignal): Promise<PdfRead> {
  if (!startsAsPdf(task.bytes)) throw new Problem(unprocessable, 'the file is not a PDF: it does not begin with %PDF-');
  return pdfRead.parse(
    await workers.run({
      module: new URL('pdf-worker.ts', import.meta.url),
      input: task,
      timeoutMs: 20_000,
      memoryMb: 512,
      signal,
    }),
  );
}

/** The mark may come late: readers look for it within the first 1024 bytes. */
export function startsAsPdf(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 1_024)).includes('%PDF-');
}
