// Extracts the main content of an HTML page as Markdown with Defuddle. Runs in a worker process. Runs no script of the
// page and loads nothing else.
import { Defuddle } from 'defuddle/node';
import { Parser } from 'htmlparser2';
import { parseHTML } from 'linkedom';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import type { HtmlContent, HtmlTask } from './fetch-page.ts';

/** The part of the DOM that is used here. */
interface Anchor {
  getAttribute(name: string): string | null;
  readonly textContent: string;
}

const maxLinks = 200;
/** Nesting of elements. Reading time grows much faster than the depth, and real pages are far shallower. */
const maxDepth = 250;

export default async function run(task: HtmlTask): Promise<HtmlContent> {
  try {
    return await extractContent(task);
  } catch (error) {
    if (error instanceof Problem) throw error;
    // The libraries fail on some malformed HTML, which only the author of the page can fix.
    throw new Problem(
      unprocessable,
      `The page cannot be read as HTML: ${error instanceof Error ? error.message.slice(0, 200) : 'it is damaged'}`,
    );
  }
}

async function extractContent({ html, url, whole }: HtmlTask): Promise<HtmlContent> {
  assertWithinDepth(html);
  const base = findBase(html, url);
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
    completeDocument(html),
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
    links: collectLinks(content.html, base),
    word_count: wordCount,
  };
}

/** Adds the elements that every document has, but authors may omit. */
function completeDocument(html: string): string {
  if (/<(?:body|frameset)[\s>]/i.test(html)) return html;
  const attributes = /<html(\s[^<>]*)?>/i.exec(html)?.[1] ?? '';
  const inside = html.replaceAll(/<!doctype[^<>]*>|<\/?(?:html|head)(?:\s[^<>]*)?>/gi, '');
  return `<!doctype html><html${attributes}><head></head><body>${inside}</body></html>`;
}

function collectLinks(html: string, base: string): HtmlContent['links'] {
  const { document } = parseHTML(completeDocument(html)) as unknown as {
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

function findBase(html: string, url: string): string {
  const href = /<base\b[^>]*?\bhref\s*=\s*["']?([^"'\s>]+)/i.exec(html.slice(0, 65_536))?.[1];
  return href !== undefined && URL.canParse(href, url) ? new URL(href, url).href : url;
}

/**
 * Uses the parser that will read the page, and stops at the first element that is too deep. @throws Problem
 * (unprocessable)
 */
function assertWithinDepth(html: string): void {
  let depth = 0;
  const parser = new Parser({
    onopentagname: () => {
      depth += 1;
      if (depth > maxDepth) throw new Problem(unprocessable, `The page nests more than ${maxDepth} elements.`);
    },
    onclosetag: () => {
      depth -= 1;
    },
  });
  parser.end(html);
}
