// The tool convert_to_pdf: converts HTML, Markdown, a web page or an office file to PDF.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import {
  detectDocumentKind,
  type DocumentKind,
  renderImagePage,
  renderMarkdownPage,
  renderTablePage,
} from './documents.ts';
import { readPdf } from '../extract-pdf/extract-pdf.ts';
import { decodeText } from '../fetch-page/fetch-page.ts';
import { requireOneRule } from '../../inputs/fields.ts';
import { embedArtifacts } from '../../inputs/file-reader.ts';
import { fileAliases, fileFieldNames, fileFields } from '../../inputs/fields.ts';
import { readFile, type InputFile } from '../../inputs/file-reader.ts';
import { callGotenberg, type GotenbergRequest } from '../../services/gotenberg.ts';
import { unprocessable } from '../../problems.ts';
import type { ToolDependencies } from '../../tool.ts';
import { defineTool, type Tool } from '../../tool.ts';

const maxBytes = 25_000_000;

/** Width and height in mm. */
const paperSizes = {
  a3: [297, 420],
  a4: [210, 297],
  a5: [148, 210],
  letter: [215.9, 279.4],
  legal: [215.9, 355.6],
  tabloid: [279.4, 431.8],
} as const;
const paperNames = [
  'a4',
  'letter',
  'a3',
  'a5',
  'legal',
  'tabloid',
] as const satisfies readonly (keyof typeof paperSizes)[];

const input = z
  .strictObject({
    html: z.string().min(1).max(1_000_000).optional().describe('A whole HTML page with its CSS.'),
    markdown: z.string().min(1).max(1_000_000).optional().describe('GitHub-flavored Markdown.'),
    ...fileFields('a web page, an image or a file'),
    format: z
      .enum(paperNames)
      .default('a4')
      .describe(
        'Paper size: a4 (default), letter, a3, a5, legal or tabloid. A page size in CSS takes precedence; office files use their own.',
      ),
    landscape: z
      .boolean()
      .default(false)
      .describe('Whether to print in landscape. Office files use their own orientation.'),
    margin_mm: z
      .number()
      .min(0)
      .max(100)
      .default(12)
      .describe(
        'Margin on all four sides in mm, 0 to 100. Default: 12. A page margin in CSS takes precedence; office files use their own.',
      ),
    pages: z
      .string()
      .max(100)
      .regex(/^\d{1,4}(?:-\d{1,4})?(?:,\d{1,4}(?:-\d{1,4})?)*$/, 'must be page numbers and ranges such as 1-3,5')
      .optional()
      .describe('Pages to include, such as 1-3,5. Default: all.'),
    wait_ms: z
      .int()
      .min(0)
      .max(10_000)
      .default(0)
      .describe('Time in ms to let the scripts of a page run after it has loaded, 0 to 10000. Default: 0.'),
  })
  .superRefine(requireOneRule(['html', 'markdown', ...fileFieldNames]));

const output = z.object({
  source: z.enum(['html', 'markdown', 'page', 'image', 'csv', 'office']).describe('What the PDF was created from.'),
  url: z.string().optional().describe('Final URL of the source, after redirects; absent for html, markdown and data.'),
  pages: z.int().describe('Number of pages.'),
  bytes: z.int().describe('Size in bytes.'),
});

type Options = z.output<typeof input>;
type PdfSource = Pick<z.output<typeof output>, 'source' | 'url'>;

export function createConvertToPdfTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'convert_to_pdf',
    title: 'Convert to PDF',
    description:
      'Creates a PDF from exactly one of html, markdown, url, data and artifact. The last three may be a web page, an image or a file of up to 25 MB: Word, Excel, PowerPoint, OpenDocument, RTF, text, Markdown or CSV. Chromium prints web pages (with their scripts), images, Markdown and CSV; LibreOffice converts office, RTF and text files, without macros and without linked content. Returns the PDF as a file of up to 25 MB; raw=1 returns its bytes.',
    input,
    aliases: {
      ...fileAliases,
      content: 'html',
      md: 'markdown',
      text: 'markdown',
      paper: 'format',
      paper_size: 'format',
      size: 'format',
      margin: 'margin_mm',
      page_ranges: 'pages',
      delay: 'wait_ms',
    },
    output,
    example: { markdown: '# Packing list\n\n| box | holds |\n|---|---|\n| 1 | lamps |\n| 2 | cables |', format: 'a5' },
    price: '0.0005',
    artifacts: ['application/pdf'],
    needs: 'gotenberg',
    openWorld: true,
    limitMs: 90_000,
    run: async (options, context) => {
      const { signal } = context;
      const { made, request } = await planConversion(services, options, signal);
      const bytes = await callGotenberg(services.urls, { ...request, maxBytes, signal });
      const { total_pages } = await readPdf(services.workers, { bytes, from: 1, to: 1 }, context);
      return {
        result: { ...made, pages: total_pages, bytes: bytes.length },
        artifact: { bytes, mediaType: 'application/pdf', fileName: 'document.pdf' },
      };
    },
  });
}

interface ConversionPlan {
  readonly made: PdfSource;
  readonly request: Pick<GotenbergRequest, 'form' | 'fields' | 'file'>;
}

async function planConversion(
  services: ToolDependencies,
  options: Options,
  signal: AbortSignal,
): Promise<ConversionPlan> {
  const { html, markdown, url, data, artifact } = options;
  const embed = (made: ConversionPlan, field: string): Promise<ConversionPlan> =>
    embedPlanArtifacts(made, services, field);
  if (html !== undefined) return embed(planPrint({ source: 'html' }, html, options), 'html');
  if (markdown !== undefined)
    return embed(planPrint({ source: 'markdown' }, renderMarkdownPage(markdown), options), 'markdown');
  const file = await readFile(services, { url, data, artifact }, { maxBytes, signal });
  return embed(planFile(file, options), data === undefined ? (artifact === undefined ? 'url' : 'artifact') : 'data');
}

/** Chromium cannot reach this installation, so the artifacts that a page shows are embedded first. */
async function embedPlanArtifacts(
  { made, request }: ConversionPlan,
  services: ToolDependencies,
  field: string,
): Promise<ConversionPlan> {
  const { file } = request;
  if (file?.name !== pageName) return { made, request };
  const html = new TextDecoder().decode(file.bytes);
  const embedded = await embedArtifacts(html, services, field);
  return embedded === html
    ? { made, request }
    : { made, request: { ...request, file: { name: pageName, bytes: encodeWithBom(embedded) } } };
}

const pageName = 'index.html';

/** Plans to send a page to Gotenberg as a file. */
function planPrint(made: PdfSource, html: string, options: Options): ConversionPlan {
  return {
    made,
    request: {
      form: '/chromium/convert/html',
      fields: toChromiumFields(options),
      file: { name: pageName, bytes: encodeWithBom(html) },
    },
  };
}

/** Prepends the byte order mark, so that the text is read as UTF-8 whatever it declares. */
function encodeWithBom(text: string): Uint8Array {
  return Buffer.from(`\ufeff${text.replace(/^\ufeff/, '')}`);
}

function planFile(file: InputFile, options: Options): ConversionPlan {
  if (file.bytes.length === 0) throw new Problem(unprocessable, 'The file is empty.');
  const kind = detectDocumentKind(file.bytes, file.mediaType, file.fileName ?? '');
  return filePlanners[kind.printed]({ file, kind, options });
}

interface SourceDocument {
  readonly file: InputFile;
  readonly kind: DocumentKind;
  readonly options: Options;
}

const filePlanners: Readonly<Record<DocumentKind['printed'], (document: SourceDocument) => ConversionPlan>> = {
  page: ({ file, options }) =>
    isOnTheWeb(file)
      ? planUrl(file, options)
      : planPrint({ source: 'page', url: file.url }, readText(file, true), options),
  image: ({ file, kind, options }) =>
    isOnTheWeb(file) && file.mediaType.startsWith('image/')
      ? planUrl(file, options)
      : planPrint({ source: 'image', url: file.url }, renderImagePage(file.bytes, getImageType(kind)), options),
  markdown: ({ file, options }) =>
    planPrint({ source: 'markdown', url: file.url }, renderMarkdownPage(readText(file, false)), options),
  csv: ({ file, options }) =>
    planPrint({ source: 'csv', url: file.url }, renderTablePage(readText(file, false)), options),
  office: ({ file, kind, options }) => {
    const extension = kind.printed === 'office' ? kind.extension : '';
    const bytes = extension === 'txt' ? encodeWithBom(readText(file, false)) : file.bytes;
    return {
      made: { source: 'office', url: file.url },
      request: {
        form: '/libreoffice/convert',
        fields: { nativePageRanges: options.pages },
        file: { name: `document.${extension}`, bytes },
      },
    };
  },
  pdf: () => {
    throw new Problem(unprocessable, 'The file is already a PDF.');
  },
  unknown: ({ file }) => {
    throw new Problem(
      unprocessable,
      `Files of the type ${file.mediaType} with this content are not supported. Send a web page, an image, docx, xlsx, pptx, odt, ods, odp, rtf, txt, csv or markdown; text in data needs its media type, as in data:text/markdown;base64,….`,
    );
  },
};

function readText({ bytes, contentType }: InputFile, isHtml: boolean): string {
  return decodeText(bytes, contentType, isHtml);
}

function getImageType(kind: DocumentKind): string {
  return kind.printed === 'image' ? kind.mediaType : '';
}

/** Whether Chromium can open the address itself: only this process can read a file that did not come from the web. */
function isOnTheWeb(file: InputFile): file is InputFile & { readonly url: string } {
  return !file.local && file.url !== undefined;
}

/** Plans for Chromium to open the page and its resources itself, through the guarded proxy. */
function planUrl({ url }: { readonly url: string }, options: Options): ConversionPlan {
  return {
    made: { source: 'page', url },
    request: { form: '/chromium/convert/url', fields: { url, ...toChromiumFields(options) } },
  };
}

function toChromiumFields({ format, landscape, margin_mm, pages, wait_ms }: Options): GotenbergRequest['fields'] {
  const [width, height] = paperSizes[format];
  const margin = `${margin_mm}mm`;
  return {
    paperWidth: `${width}mm`,
    paperHeight: `${height}mm`,
    marginTop: margin,
    marginBottom: margin,
    marginLeft: margin,
    marginRight: margin,
    landscape,
    printBackground: true,
    preferCssPageSize: true,
    nativePageRanges: pages,
    waitDelay: wait_ms === 0 ? undefined : `${wait_ms}ms`,
  };
}
