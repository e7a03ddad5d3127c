// Reads a PDF in a worker process, for every tool that needs one.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import type { WorkerCall, Workers } from '../../engine/workers/workers.ts';

/** The content of a PDF. */
export const pdfContent = z.object({
  total_pages: z.int().describe('Number of pages of the file.'),
  from_page: z.int().describe('First page read.'),
  to_page: z.int().describe('Last page read.'),
  pages: z
    .array(
      z.object({
        page: z.int().describe('Page number, from 1.'),
        text: z.string().describe('Text of the page; empty if it contains none.'),
      }),
    )
    .describe('Pages in order.'),
  truncated: z.boolean().describe('Whether requested pages after to_page were not read.'),
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
    .describe('Metadata of the file.'),
});

export type PdfContent = z.output<typeof pdfContent>;

export interface PdfTask {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number | undefined;
}

/** @throws Problem (unprocessable for what is no readable PDF, tool-limit) */
export async function readPdf(workers: Workers, task: PdfTask, call: WorkerCall): Promise<PdfContent> {
  if (!startsAsPdf(task.bytes))
    throw new Problem(unprocessable, 'The file is not a PDF: it does not begin with %PDF-.');
  return pdfContent.parse(
    await workers.run(
      { module: new URL('pdf-worker.ts', import.meta.url), input: task, timeoutMs: 20_000, memoryMb: 512 },
      call,
    ),
  );
}

/** The mark may come late: readers look for it within the first 1024 bytes. */
export function startsAsPdf(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 1_024)).includes('%PDF-');
}
