// convert_to_pdf: HTML, markdown, a web page or an office file as a PDF.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { invalid } from '../../../http/index.ts';
import { documentKind } from './document-kind.ts';
import { markdownPage, tablePage } from './plain-page.ts';
import { readPdf } from '../extract-pdf/read.ts';
import { decode } from '../fetch-page/charset.ts';
import type { Fetched } from '../../fetch/fetcher.ts';
import { urlField } from '../../fetch/url-field.ts';
import { askGotenberg, type GotenbergRequest } from '../../services/gotenberg.ts';
import { unprocessable } from '../../problems.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const mostBytes = 25_000_000;

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

const input = z.strictObject({
  html: z
    .string()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe('a whole HTML page, with its CSS; or send markdown or url'),
  markdown: z.string().min(1).max(1_000_000).optional().describe('markdown, as on GitHub; or send html or url'),
  url: urlField(
    'where a page or a file is (docx, xlsx, pptx, odt, ods, odp, rtf, txt, csv, markdown); or send html or markdown',
  ).optional(),
  format: z
    .enum(paperNames)
    .default('a4')
    .describe(
      'paper: a4, letter, a3, a5, legal or tabloid; a size in the CSS of the page wins, and office files have their own',
    ),
  landscape: z
    .boolean()
    .default(false)
    .describe('whether the paper lies on its long side; office files have their own'),
  margin_mm: z
    .number()
    .min(0)
    .max(100)
    .default(12)
    .describe('margin on all four sides in mm; a margin in the CSS of the page wins, and office files have their own'),
  pages: z
    .string()
    .max(100)
    .regex(/^\d{1,4}(?:-\d{1,4})?(?:,\d{1,4}(?:-\d{1,4})?)*$/, 'must be pages and ranges of pages like 1-3,5')
    .optional()
    .describe('only these pages, like 1-3,5; all when left out'),
  wait_ms: z
    .int()
    .min(0)
    .max(10_000)
    .default(0)
    .describe('time for scripts of a page after it was loaded, in ms, 0 to 10000'),
});

const output = z.object({
  source: z.enum(['html', 'markdown', 'page', 'csv', 'office']).describe('what it was made from'),
  url: z.string().optional().describe('where that was in the end, after redirects'),
  pages: z.int().describe('pages of the PDF'),
  bytes: z.int().describe('its size'),
});

type Options = z.output<typeof input>;
type Made = Pick<z.output<typeof output>, 'source' | 'url'>;

export function convertToPdfTool(services: ToolServices): Tool {
  return defineTool({
    name: 'convert_to_pdf',
    title: 'Convert to PDF',
    description:
      'Makes a PDF of exactly one of: HTML, markdown, or an address of a web page or of a file (Word, Excel, PowerPoint, OpenDocument, RTF, text, markdown, CSV; at most 25 MB). Pages are printed by Chromium with their scripts, office files by LibreOffice without macros and without what they link to. raw=1 answers with the file.',
    input,
    aliases: {
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
    run: async (options, { signal }) => {
      const { made, request } = await plan(services, options, signal);
      const bytes = await askGotenberg(services.urls, { ...request, maxBytes: mostBytes, signal });
      const { total_pages } = await readPdf(services.workers, { bytes, from: 1, to: 1 }, signal);
      return {
        result: { ...made, pages: total_pages, bytes: bytes.length },
        artifact: { bytes, mediaType: 'application/pdf', fileName: 'document.pdf' },
      };
    },
  });
}

interface Plan {
  readonly made: Made;
  readonly request: Pick<GotenbergRequest, 'form' | 'fields' | 'file'>;
}

async function plan(services: ToolServices, options: Options, signal: AbortSignal): Promise<Plan> {
  const { html, markdown, url } = options;
  const given = Object.entries({ html, markdown, url })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name);
  if (given.length !== 1) {
    throw invalid([
      {
        in: 'query',
        field: given[1] ?? 'html',
        message:
          given.length === 0 ? 'is missing, and so are markdown and url' : `is given together with ${given[0] ?? ''}`,
        fix: 'send exactly one of html, markdown and url',
      },
    ]);
  }
  if (html !== undefined) return printed({ source: 'html' }, html, options);
  if (markdown !== undefined) return printed({ source: 'markdown' }, markdownPage(markdown), options);
  return fetched(await services.fetcher.get({ url: url ?? '', maxBytes: mostBytes, signal }), options);
}

/** A page that is sent along. */
function printed(made: Made, html: string, options: Options): Plan {
  return {
    made,
    request: {
      form: '/chromium/convert/html',
      fields: chromiumFields(options),
      file: { name: 'index.html', bytes: marked(html) },
    },
  };
}

/** Text with the mark that says that it is UTF-8, whatever it says of itself. */
function marked(text: string): Uint8Array {
  return Buffer.from(`\ufeff${text.replace(/^\ufeff/, '')}`);
}

function fetched(file: Fetched, options: Options): Plan {
  if (file.bytes.length === 0) throw new Problem(unprocessable, 'the file is empty');
  const kind = documentKind(file.bytes, file.mediaType, file.url);
  const text = (): string => decode(file.bytes, file.headers.get('content-type') ?? '', false);
  switch (kind.printed) {
    case 'page':
      return {
        made: { source: 'page', url: file.url },
        request: { form: '/chromium/convert/url', fields: { url: file.url, ...chromiumFields(options) } },
      };
    case 'markdown':
      return printed({ source: 'markdown', url: file.url }, markdownPage(text()), options);
    case 'csv':
      return printed({ source: 'csv', url: file.url }, tablePage(text()), options);
    case 'office': {
      const bytes = kind.extension === 'txt' ? marked(text()) : file.bytes;
      return {
        made: { source: 'office', url: file.url },
        request: {
          form: '/libreoffice/convert',
          fields: { nativePageRanges: options.pages },
          file: { name: `document.${kind.extension}`, bytes },
        },
      };
    }
    case 'pdf':
      throw new Problem(unprocessable, 'the file is a PDF already');
    default:
      throw new Problem(
        unprocessable,
        `a file of the type ${file.mediaType} with this content is not taken; pages, docx, xlsx, pptx, odt, ods, odp, rtf, txt, csv and markdown are`,
      );
  }
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
