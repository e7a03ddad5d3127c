// The tool extract_pdf: extracts the text of a PDF page by page, and its metadata. Other tools read PDFs through
// `readPdf`.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { requireOneRule } from '../../inputs/fields.ts';
import { fileAliases, fileFieldNames, fileFields } from '../../inputs/fields.ts';
import { readFile } from '../../inputs/file-reader.ts';
import type { ToolDependencies } from '../../tool.ts';
import { unprocessable } from '../../problems.ts';
import { defineTool, type Tool } from '../../tool.ts';
import type { WorkerCall, Workers } from '../../engine/workers/workers.ts';

const input = z
  .strictObject({
    ...fileFields('the PDF'),
    from_page: z.int().min(1).max(100_000).default(1).describe('First page to read. Default: 1.'),
    to_page: z
      .int()
      .min(1)
      .max(100_000)
      .optional()
      .describe(
        'Last page to read. Default: the last page of the file. One call reads at most 100 pages, counted from from_page.',
      ),
  })
  .superRefine(requireOneRule(fileFieldNames));

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

const output = z.object({
  url: z.string().optional().describe('Final URL, after redirects; absent for data.'),
  bytes: z.int().describe('Size of the file in bytes.'),
  ...pdfContent.shape,
  text_found: z.boolean().describe('Whether the pages contain any text. Scanned pages do not; ocr_image reads them.'),
  warnings: z.array(z.string()).optional().describe('Which pages contain no text, and what reads them.'),
});

export function createExtractPdfTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'extract_pdf',
    title: 'Extract text from a PDF',
    description:
      'Reads a PDF of up to 25 MB, from exactly one of url, data and artifact, and returns its text page by page, its metadata and its page count. Reads up to 100 pages and 2,000,000 characters per call; use from_page to continue. Does not read scanned pages, which are images: use ocr_image.',
    input,
    aliases: { ...fileAliases, from: 'from_page', to: 'to_page', start_page: 'from_page', end_page: 'to_page' },
    output,
    example: { url: 'https://www.rfc-editor.org/rfc/rfc9110.pdf', from_page: 1, to_page: 3 },
    price: '0.0001',
    openWorld: true,
    limitMs: 60_000,
    run: async ({ from_page, to_page, ...given }, context) => {
      const { signal } = context;
      if (to_page !== undefined && to_page < from_page)
        throw new Problem(unprocessable, `to_page (${to_page}) is before from_page (${from_page}).`);
      const file = await readFile(services, given, {
        maxBytes: 25_000_000,
        accept: 'application/pdf,*/*;q=0.5',
        signal,
      });
      const read = await readPdf(services.workers, { bytes: file.bytes, from: from_page, to: to_page }, context);
      return {
        result: {
          url: file.url,
          bytes: file.bytes.length,
          ...read,
          ...describeEmptyPages(read),
          text_found: read.pages.some(({ text }) => text !== ''),
        },
      };
    },
  });
}

/** Pages without text are usually scanned. */
function describeEmptyPages({ pages }: PdfContent): { warnings?: string[] } {
  const empty = pages.filter(({ text }) => text === '').map(({ page }) => page);
  if (empty.length === 0) return {};
  const which = empty.length === pages.length ? 'These pages contain no' : `${formatPages(empty)} no`;
  return {
    warnings: [
      `${which} text. If they are scanned, ocr_image reads them: send the same file, with from_page=${empty[0] ?? 1}.`,
    ],
  };
}

function formatPages(numbers: readonly number[]): string {
  const shown = numbers.slice(0, 20).join(', ');
  const more = numbers.length > 20 ? ` and ${numbers.length - 20} more` : '';
  return numbers.length === 1 ? `Page ${shown} contains` : `Pages ${shown}${more} contain`;
}

export interface PdfTask {
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number | undefined;
}

/** Reads a PDF in a worker process. @throws Problem (unprocessable if it is not a readable PDF, tool-limit) */
export async function readPdf(workers: Workers, task: PdfTask, call: WorkerCall): Promise<PdfContent> {
  if (!isPdf(task.bytes)) throw new Problem(unprocessable, 'The file is not a PDF: it does not begin with %PDF-.');
  return pdfContent.parse(
    await workers.run(
      { module: new URL('pdf-worker.ts', import.meta.url), input: task, timeoutMs: 20_000, memoryMb: 512 },
      call,
    ),
  );
}

/** PDF readers accept the signature anywhere within the first 1024 bytes. */
export function isPdf(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 1_024)).includes('%PDF-');
}
