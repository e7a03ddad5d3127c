// extract_pdf: the text of a PDF, page by page, and what it says of itself.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { urlField } from '../../fetch/url-field.ts';
import { pdfRead, readPdf } from './read.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { unprocessable } from '../../problems.ts';
import { defineTool, type Tool } from '../../tool.ts';

const input = z.strictObject({
  url: urlField('where the PDF is'),
  from_page: z.int().min(1).max(100_000).default(1).describe('first page to read, counted from 1'),
  to_page: z
    .int()
    .min(1)
    .max(100_000)
    .optional()
    .describe('last page to read; the last of the file when left out, but at most 100 pages after the first'),
});

const output = z.object({
  url: z.string().describe('where it was in the end, after redirects'),
  bytes: z.int().describe('size of the file'),
  ...pdfRead.shape,
  text_found: z.boolean().describe('false where the pages hold no text, as scans do; ocr_image reads text from images'),
});

export function extractPdfTool(services: ToolServices): Tool {
  return defineTool({
    name: 'extract_pdf',
    title: 'Extract text from a PDF',
    description:
      'Fetches a PDF of at most 25 MB and answers with its text page by page, its metadata and its number of pages. Reads at most 100 pages in a call; ask for the next ones with from_page. Scanned pages hold no text.',
    input,
    aliases: { from: 'from_page', to: 'to_page', start_page: 'from_page', end_page: 'to_page' },
    output,
    example: { url: 'https://www.rfc-editor.org/rfc/rfc9110.pdf', from_page: 1, to_page: 3 },
    price: '0.0001',
    openWorld: true,
    limitMs: 60_000,
    run: async ({ url, from_page, to_page }, { signal }) => {
      if (to_page !== undefined && to_page < from_page)
        throw new Problem(unprocessable, `to_page (${to_page}) is before from_page (${from_page})`);
      const file = await services.fetcher.get({
        url,
        maxBytes: 25_000_000,
        headers: { accept: 'application/pdf,*/*;q=0.5' },
        signal,
      });
      const read = await readPdf(services.workers, { bytes: file.bytes, from: from_page, to: to_page }, signal);
      return {
        result: {
          url: file.url,
          bytes: file.bytes.length,
          ...read,
          text_found: read.pages.some(({ text }) => text !== ''),
        },
      };
    },
  });
}
