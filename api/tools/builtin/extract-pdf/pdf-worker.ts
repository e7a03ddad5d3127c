// Extracts the text and metadata of a PDF with PDF.js. Runs in a worker process. Executes nothing in the file and loads
// nothing that the file refers to.
import { getDocumentProxy } from 'unpdf';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import type { PdfContent, PdfTask } from './extract-pdf.ts';

type Document = Awaited<ReturnType<typeof getDocumentProxy>>;

/** Per call. */
const maxPages = 100;
const maxCharacters = 2_000_000;

export default async function run({ bytes, from, to }: PdfTask): Promise<PdfContent> {
  const document = await openPdf(bytes);
  if (from > document.numPages)
    throw new Problem(unprocessable, `from_page is ${from}, but the file has only ${document.numPages} pages.`);
  const wanted = Math.min(to ?? document.numPages, document.numPages);
  const pages = await readPages(document, from, Math.min(wanted, from + maxPages - 1));
  const last = from + pages.length - 1;
  return {
    total_pages: document.numPages,
    from_page: from,
    to_page: last,
    pages,
    truncated: last < wanted,
    metadata: await readMetadata(document),
  };
}

async function openPdf(bytes: Uint8Array): Promise<Document> {
  try {
    return await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 });
  } catch (error) {
    const locked = error instanceof Error && error.name === 'PasswordException';
    const reason = error instanceof Error ? error.message.slice(0, 200) : 'it is damaged';
    throw new Problem(unprocessable, locked ? 'The PDF is password-protected.' : `The PDF cannot be read: ${reason}`);
  }
}

async function readPages(document: Document, from: number, to: number): Promise<PdfContent['pages']> {
  const pages: PdfContent['pages'] = [];
  let characters = 0;
  for (let number = from; number <= to && characters < maxCharacters; number++) {
    const text = (await readPageText(document, number)).slice(0, maxCharacters - characters);
    characters += text.length;
    pages.push({ page: number, text });
  }
  return pages;
}

/**
 * Reads the text of a page in the order of the file, with its line ends. A damaged page has no text; the others are
 * still read.
 */
async function readPageText(document: Document, number: number): Promise<string> {
  try {
    const page = await document.getPage(number);
    const { items } = await page.getTextContent();
    page.cleanup();
    return items
      .map((item) => ('str' in item ? `${item.str}${item.hasEOL ? '\n' : ''}` : ''))
      .join('')
      .replaceAll('\0', '')
      .trim();
  } catch {
    return '';
  }
}

async function readMetadata(document: Document): Promise<PdfContent['metadata']> {
  const { info } = await document.getMetadata().catch(() => ({ info: {} }));
  const named = info as Readonly<Record<string, unknown>>;
  const fields = {
    title: 'Title',
    author: 'Author',
    subject: 'Subject',
    keywords: 'Keywords',
    creator: 'Creator',
    producer: 'Producer',
    created: 'CreationDate',
    modified: 'ModDate',
    pdf_version: 'PDFFormatVersion',
  };
  return Object.fromEntries(
    Object.entries(fields).flatMap(([field, name]) => {
      const value = named[name];
      return typeof value === 'string' && value !== '' ? [[field, toIsoDate(value).slice(0, 1_000)]] : [];
    }),
  );
}

/** Converts `D:20240131120000+01'00'` to 2024-01-31T12:00:00; returns other text unchanged. */
function toIsoDate(text: string): string {
  const [, year, month = '01', day = '01', hour = '00', minute = '00', second = '00'] =
    /^D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?/.exec(text) ?? [];
  return year === undefined ? text : `${year}-${month}-${day}T${hour}:${minute}:${second}`;
}
