// The tool fetch_page: reads a web page as Markdown, with its title and links.
import { z } from 'zod';
import { readPage } from './read-page.ts';
import { urlField } from '../../fetch/url-field.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const input = z.strictObject({
  url: urlField('URL of the page'),
  max_characters: z
    .int()
    .min(100)
    .max(500_000)
    .default(50_000)
    .describe('Maximum characters of text to return, 100 to 500000. Default: 50000.'),
  whole_page: z
    .boolean()
    .default(false)
    .describe('Whether to keep the navigation, footers and similar parts of an HTML page. Default: false.'),
});

export const pageOutput = z.object({
  url: z.string().describe('Final URL, after redirects.'),
  fetched_as: z.enum(['html', 'pdf', 'json', 'text']).describe('Format it was read as.'),
  media_type: z.string().describe('Media type that the server reported.'),
  title: z.string().optional(),
  byline: z.string().optional().describe('Author.'),
  site: z.string().optional().describe('Name of the site.'),
  published: z.string().optional().describe('Publication date, as the page states it.'),
  description: z.string().optional(),
  language: z.string().optional().describe('Language, as the page declares it.'),
  markdown: z
    .string()
    .describe(
      'Text: Markdown from HTML, text with one heading per page from PDF, JSON in a code block, other text as it is.',
    ),
  truncated: z.boolean().describe('Whether the text was cut at max_characters.'),
  links: z.array(z.object({ text: z.string(), url: z.string() })).describe('Distinct links in the text, at most 200.'),
  word_count: z.int().describe('Word count of the text before it was cut.'),
});

export function fetchPageTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'fetch_page',
    title: 'Read a web page',
    description:
      'Fetches a public web page and returns its main content as Markdown, with title, author and up to 200 links. Reads HTML, PDF (the first 100 pages), JSON, XML and other text of up to 10 MB. Does not run the scripts of the page; for a page that is empty without them, use screenshot.',
    input,
    aliases: { link: 'url', page: 'url', max_length: 'max_characters' },
    output: pageOutput,
    example: { url: 'https://example.com/' },
    price: '0.0002',
    openWorld: true,
    limitMs: 60_000,
    run: async ({ url, max_characters, whole_page }, context) => {
      const { signal } = context;
      const file = await services.fetcher.get({
        url,
        maxBytes: 10_000_000,
        headers: {
          accept: 'text/html,application/xhtml+xml,application/pdf,application/json,text/plain;q=0.9,*/*;q=0.5',
        },
        signal,
      });
      const page = await readPage(services.workers, file, whole_page, context);
      const markdown = cut(page.markdown, max_characters);
      return {
        result: {
          url: file.url,
          media_type: file.mediaType,
          ...page,
          markdown,
          truncated: markdown.length < page.markdown.length,
        },
      };
    },
  });
}

/** Never between the halves of a character. */
function cut(text: string, maximum: number): string {
  return text.slice(0, maximum).replace(/[\uD800-\uDBFF]$/, '');
}
