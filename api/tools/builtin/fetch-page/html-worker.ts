// Extracts the main content of an HTML page as Markdown with Defuddle. Runs in a worker process. No script of the page
// is run and nothing else is loaded.
import { Defuddle } from 'defuddle/node';
import { Parser } from 'htmlparser2';
import { parseHTML } from 'linkedom';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import type { HtmlContent, HtmlTask } from './read-page.ts';

/** As much of the DOM as is used here. */
interface Anchor {
  getAttribute(name: string): string | null;
  readonly textContent: string;
}

const maxLinks = 200;
/** Elements within each other; the time to read them grows much faster than they do, and pages have far fewer. */
const deepest = 250;

export default async function run(task: HtmlTask): Promise<HtmlContent> {
  try {
    return await read(task);
  } catch (error) {
    if (error instanceof Problem) throw error;
    // The libraries stumble over some of what is called HTML, and who wrote the page is the only one who can fix it.
    throw new Problem(
      unprocessable,
      `The page cannot be read as HTML: ${error instanceof Error ? error.message.slice(0, 200) : 'it is damaged'}`,
    );
  }
}

async function read({ html, url, whole }: HtmlTask): Promise<HtmlContent> {
  checkDepth(html);
  const base = baseOf(html, url);
  const refuse = async (): Promise<Response> => Promise.reject(new Error('nothing more is loaded'));
  const keepAll = whole
    ? {
        contentSelector: 'body',
        removeExactSelectors: false,
        removePartialSelectors: false,
        removeLowScoring: false,
        removeContentPatterns: false,
      }
    : {};
  const { content, title, author, site, published, description, language, wordCount } = await Defuddle(
    asDocument(html),
    base,
    { separateMarkdown: true, useAsync: false, fetch: refuse, ...keepAll },
  ).then(({ content: kept, contentMarkdown, ...rest }) => ({
    ...rest,
    content: { html: kept, markdown: contentMarkdown ?? '' },
  }));
  const named = { title, byline: author, site, published, description, language };
  return {
    ...Object.fromEntries(
      Object.entries(named).flatMap(([field, value]) => (value === '' ? [] : [[field, value.slice(0, 2_000)]])),
    ),
    markdown: content.markdown.trim(),
    links: linksOf(content.html, base),
    word_count: wordCount,
  };
}

/** With the elements that every document has, though authors may leave them out. */
function asDocument(html: string): string {
  if (/<(?:body|frameset)[\s>]/i.test(html)) return html;
  const attributes = /<html(\s[^<>]*)?>/i.exec(html)?.[1] ?? '';
  const inside = html.replaceAll(/<!doctype[^<>]*>|<\/?(?:html|head)(?:\s[^<>]*)?>/gi, '');
  return `<!doctype html><html${attributes}><head></head><body>${inside}</body></html>`;
}

function linksOf(html: string, base: string): HtmlContent['links'] {
  const { document } = parseHTML(asDocument(html)) as unknown as {
    document: { querySelectorAll(selector: string): Iterable<Anchor> };
  };
  const links = new Map<string, string>();
  for (const anchor of document.querySelectorAll('a[href]')) {
    const href = anchor.getAttribute('href') ?? '';
    if (links.size === maxLinks) break;
    if (href.startsWith('#') || !URL.canParse(href, base)) continue;
    const { href: address, protocol } = new URL(href, base);
    if (/^https?:$/.test(protocol) && !links.has(address))
      links.set(address, anchor.textContent.replace(/\s+/g, ' ').trim().slice(0, 200));
  }
  return [...links].map(([address, text]) => ({ text, url: address }));
}

function baseOf(html: string, url: string): string {
  const href = /<base\b[^>]*?\bhref\s*=\s*["']?([^"'\s>]+)/i.exec(html.slice(0, 65_536))?.[1];
  return href !== undefined && URL.canParse(href, url) ? new URL(href, url).href : url;
}

/**
 * By the parser that will read it, and no further than to the first that lies too deep. @throws Problem (unprocessable)
 */
function checkDepth(html: string): void {
  let depth = 0;
  const parser = new Parser({
    onopentagname: () => {
      depth += 1;
      if (depth > deepest) throw new Problem(unprocessable, `The page nests more than ${deepest} elements.`);
    },
    onclosetag: () => {
      depth -= 1;
    },
  });
  parser.end(html);
}
