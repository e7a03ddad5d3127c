// fetch_page: a page of the web as an agent can read it: what matters in it as Markdown, with its title and its links.
import { z } from 'zod';
import { readPage } from './read-page.ts';
import { urlField } from '../../fetch/url-field.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

const input = z.strictObject({
  url: urlField('the page'),
  max_characters: z
    .int()
    .min(100)
    .max(500_000)
    .default(50_000)
    .describe('where to cut the text, 100 to 500000 characters'),
  whole_page: z.boolean().default(false).describe('true keeps navigation, footers and the like of an HTML page'),
});

export const pageOutput = z.object({
  url: z.string().describe('where it was in the end, after redirects'),
  fetched_as: z.enum(['html', 'pdf', 'json', 'text']).describe('what it was read as'),
  media_type: z.string().describe('what its server called it'),
  title: z.string().optional(),
  byline: z.string().optional().describe('who wrote it'),
  site: z.string().optional().describe('name of the site'),
  published: z.string().optional().describe('when it was published, as the page says'),
  description: z.string().optional(),
  language: z.string().optional().describe('language that the page says it is in'),
  markdown: z
    .string()
    .describe('the text: Markdown from HTML, text with a heading a page from PDF, JSON in a code block'),
  truncated: z.boolean().describe('whether the text was cut at max_characters'),
  links: z.array(z.object({ text: z.string(), url: z.string() })).describe('links in the text, each once, at most 200'),
  word_count: z.int().describe('words of the whole text, before it was cut'),
});

export function fetchPageTool(services: ToolServices): Tool {
  return defineTool({
    name: 'fetch_page',
    title: 'Read a web page',
    description:
      'Fetches a public page and answers with its readable content as Markdown, its title, its author and its links. Takes HTML, PDF, plain text and JSON of at most 10 MB. Scripts of the page are not run; for a page that is empty without them take screenshot.',
    input,
    aliases: { link: 'url', page: 'url', max_length: 'max_characters' },
    output: pageOutput,
    example: { url: 'https://example.com/' },
    price: '0.0002',
    openWorld: true,
    limitMs: 60_000,
    run: async ({ url, max_characters, whole_page }, { signal }) => {
      const file = await services.fetcher.get({
        url,
        maxBytes: 10_000_000,
        headers: {
          accept: 'text/html,application/xhtml+xml,application/pdf,application/json,text/plain;q=0.9,*/*;q=0.5',
        },
        signal,
      });
      const page = await readPage(services.workers, file, whole_page, signal);
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
function cut(text: string, most: number): string {
  return text.slice(0, most).replace(/[\uD800-\uDBFF]$/, '');
}
