// The tool convert_to_pdf: converts HTML, Markdown, a web page or an office file to PDF.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { documentKind, type DocumentKind } from './document-kind.ts';
import { imagePage, markdownPage, tablePage } from './plain-page.ts';
import { readPdf } from '../extract-pdf/read.ts';
import { decode } from '../fetch-page/charset.ts';
import { requireOneRule } from '../../inputs/field-rules.ts';
import { embedArtifacts } from '../../inputs/artifact-links.ts';
import { fileAliases, fileFieldNames, fileFields } from '../../inputs/file-fields.ts';
import { readFile, type InputFile } from '../../inputs/file-reader.ts';
import { askGotenberg, type GotenbergRequest } from '../../services/gotenberg.ts';
import { unprocessable } from '../../problems.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const maxBytes = 25_000_000;

/** Width and height in mm. */
const papers = {
  a3: [297, 420],
  a4: [210, 297],
  a5: [148, 210],
  letter: [215.9, 279.4],
  legal: [215.9, 355.6],
  tabloid: [279.4, 431.8],
} as const;
const paperNames = ['a4', 'letter', 'a3', 'a5', 'legal', 'tabloid'] as const satisfies readonly (keyof typeof papers)[];

const input = z
  .strictObject({
    html: z
      .string()
      .min(1)
      .max(1_000_000)
      .optional()
      .describe('A whole HTML page with its CSS; alternative to markdown, url, data and artifact.'),
    markdown: z
      .string()
      .min(1)
      .max(1_000_000)
      .optional()
      .describe('GitHub-flavored Markdown; alternative to html, url, data and artifact.'),
    ...fileFields('a web page, an image or a file (docx, xlsx, pptx, odt, ods, odp, rtf, txt, csv, markdown)', [
      'html',
      'markdown',
    ]),
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

export function convertToPdfTool(services: ToolDependencies): Tool {
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
      const { made, request } = await plan(services, options, signal);
      const bytes = await askGotenberg(services.urls, { ...request, maxBytes, signal });
      const { total_pages } = await readPdf(services.workers, { bytes, from: 1, to: 1 }, context);
      return {
        result: { ...made, pages: total_pages, bytes: bytes.length },
        artifact: { bytes, mediaType: 'application/pdf', fileName: 'document.pdf' },
      };
    },
  });
}

interface Plan {
  readonly made: PdfSource;
  readonly request: Pick<GotenbergRequest, 'form' | 'fields' | 'file'>;
}

async function plan(services: ToolDependencies, options: Options, signal: AbortSignal): Promise<Plan> {
  const { html, markdown, url, data, artifact } = options;
  const embed = (made: Plan, field: string): Promise<Plan> => withEmbedded(made, services, field);
  if (html !== undefined) return embed(printed({ source: 'html' }, html, options), 'html');
  if (markdown !== undefined)
    return embed(printed({ source: 'markdown' }, markdownPage(markdown), options), 'markdown');
  const file = await readFile(services, { url, data, artifact }, { maxBytes, signal });
  return embed(fetched(file, options), data === undefined ? (artifact === undefined ? 'url' : 'artifact') : 'data');
}

/** Chromium is not let into this installation: the artifacts that a page shows are put into it before. */
async function withEmbedded({ made, request }: Plan, services: ToolDependencies, field: string): Promise<Plan> {
  const { file } = request;
  if (file?.name !== pageName) return { made, request };
  const html = new TextDecoder().decode(file.bytes);
  const embedded = await embedArtifacts(html, services, field);
  return embedded === html
    ? { made, request }
    : { made, request: { ...request, file: { name: pageName, bytes: marked(embedded) } } };
}

const pageName = 'index.html';

/** A page that is sent to Gotenberg as a file. */
function printed(made: PdfSource, html: string, options: Options): Plan {
  return {
    made,
    request: {
      form: '/chromium/convert/html',
      fields: chromiumFields(options),
      file: { name: pageName, bytes: marked(html) },
    },
  };
}

/** Text with the mark that says that it is UTF-8, whatever it says of itself. */
function marked(text: string): Uint8Array {
  return Buffer.from(`\ufeff${text.replace(/^\ufeff/, '')}`);
}

function fetched(file: InputFile, options: Options): Plan {
  if (file.bytes.length === 0) throw new Problem(unprocessable, 'The file is empty.');
  const kind = documentKind(file.bytes, file.mediaType, file.fileName ?? '');
  return plans[kind.printed]({ file, kind, options });
}

interface ReadDocument {
  readonly file: InputFile;
  readonly kind: DocumentKind;
  readonly options: Options;
}

const plans: Readonly<Record<DocumentKind['printed'], (document: ReadDocument) => Plan>> = {
  page: ({ file, options }) =>
    isOnTheWeb(file)
      ? onTheWeb(file, options)
      : printed({ source: 'page', url: file.url }, textOf(file, true), options),
  image: ({ file, kind, options }) =>
    isOnTheWeb(file) && file.mediaType.startsWith('image/')
      ? onTheWeb(file, options)
      : printed({ source: 'image', url: file.url }, imagePage(file.bytes, mediaTypeOf(kind)), options),
  markdown: ({ file, options }) =>
    printed({ source: 'markdown', url: file.url }, markdownPage(textOf(file, false)), options),
  csv: ({ file, options }) => printed({ source: 'csv', url: file.url }, tablePage(textOf(file, false)), options),
  office: ({ file, kind, options }) => {
    const extension = kind.printed === 'office' ? kind.extension : '';
    const bytes = extension === 'txt' ? marked(textOf(file, false)) : file.bytes;
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

function textOf({ bytes, contentType }: InputFile, isHtml: boolean): string {
  return decode(bytes, contentType, isHtml);
}

function mediaTypeOf(kind: DocumentKind): string {
  return kind.printed === 'image' ? kind.mediaType : '';
}

/** What did not come from the web can be opened by nobody but this process. */
function isOnTheWeb(file: InputFile): file is InputFile & { readonly url: string } {
  return !file.local && file.url !== undefined;
}

/** A page that Chromium opens by itself, through the guarded proxy, with what belongs to it. */
function onTheWeb({ url }: { readonly url: string }, options: Options): Plan {
  return {
    made: { source: 'page', url },
    request: { form: '/chromium/convert/url', fields: { url, ...chromiumFields(options) } },
  };
}

function chromiumFields({ format, landscape, margin_mm, pages, wait_ms }: Options): GotenbergRequest['fields'] {
  const [width, height] = papers[format];
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
