// What stands under a heading of an outline, as blocks of a slide.
import type { Token, Tokens } from 'marked';
import { isOneText, type Line, type OutlineBlock } from './deck.ts';

/** The text of a line, at most: a longer one goes on in lines of its own. */
const longest = 560;

const drawings: Readonly<Record<string, string>> = {
  chart: 'chart',
  'vega-lite': 'chart',
  vegalite: 'chart',
  vega: 'chart',
  mermaid: 'mermaid',
  mmd: 'mermaid',
  d2: 'd2',
  dot: 'graphviz',
  graphviz: 'graphviz',
  gv: 'graphviz',
};

export function blocksOf(body: readonly Token[]): OutlineBlock[] {
  return joined(body.flatMap((token) => blockOf(token, 0)));
}

function blockOf(token: Token, level: number): OutlineBlock[] {
  switch (token.type) {
    case 'code':
      return [codeOf(token as Tokens.Code)];
    case 'table':
      return [tableOf(token as Tokens.Table)];
    case 'blockquote':
      return [{ kind: 'quote', ...quoteOf((token as Tokens.Blockquote).text) }];
    case 'list':
      return listOf(token as Tokens.List, level);
    case 'heading':
      return textBlock([{ text: `**${textOf(token)}**`, level, isParagraph: true }]);
    default:
      return paragraphOf(token, (text) => ({ text, level, isParagraph: true }));
  }
}

function codeOf({ text, lang = '' }: Tokens.Code): OutlineBlock {
  const language = drawings[/^[\w-]*/.exec(lang)?.[0].toLowerCase() ?? ''];
  return language === undefined || text.trim() === ''
    ? { kind: 'code', code: text.replaceAll('\t', '    ') }
    : { kind: 'drawing', language, source: text };
}

function tableOf({ header, rows, align }: Tokens.Table): OutlineBlock {
  return {
    kind: 'table',
    header: header.map((cell) => cell.text),
    rows: rows.map((row) => row.map((cell) => cell.text)),
    align: align.map((side) => side ?? null),
  };
}

function quoteOf(text: string): { quote: string; author?: string } {
  const [, quote = text, author] = /^([\s\S]*?)\n\s*(?:—|–|--)\s*(.+)$/.exec(text.trim()) ?? [];
  return { quote: quote.replaceAll(/\s+/g, ' ').trim(), ...(author === undefined ? {} : { author }) };
}

/** Items with their numbers; below the third level nothing is indented any more. */
function listOf({ items, ordered, start }: Tokens.List, level: number): OutlineBlock[] {
  return items.flatMap((item, index) => {
    const number = ordered ? { number: (start === '' ? 1 : start) + index } : {};
    let isFirst = true;
    return item.tokens.flatMap((token): OutlineBlock[] => {
      if (token.type === 'space' || token.type === 'checkbox') return [];
      if (token.type !== 'text' && token.type !== 'paragraph')
        return token.type === 'list' ? listOf(token as Tokens.List, Math.min(level + 1, 2)) : blockOf(token, level);
      const box = item.task && isFirst ? (item.checked === true ? '✓ ' : '☐ ') : '';
      const asFirst = isFirst;
      isFirst = false;
      return paragraphOf(token, (text) => ({
        text: `${box}${text}`,
        level,
        ...(asFirst ? number : { isParagraph: true }),
      }));
    });
  });
}

/** The text of a paragraph, and then its images. */
function paragraphOf(token: Token, lineOf: (text: string) => Line): OutlineBlock[] {
  const inner: readonly Token[] = 'tokens' in token ? (token.tokens ?? []) : [];
  const images = inner.filter((each): each is Tokens.Image => each.type === 'image');
  const text = images.reduce((now, image) => now.replace(image.raw, ''), textOf(token)).trim();
  return [
    ...(text === ''
      ? []
      : textBlock(
          splitText(text).map((part, index) => (index === 0 ? lineOf(part) : { ...lineOf(part), isParagraph: true })),
        )),
    ...images.map((image): OutlineBlock => ({ kind: 'image', href: image.href, alt: image.text })),
  ];
}

/** A long text in parts, which end with a sentence or at least with a word. */
function splitText(text: string): string[] {
  const parts: string[] = [];
  let left = text;
  while (left.length > longest) {
    const head = left.slice(0, longest);
    const end = Math.max(
      ...['. ', '! ', '? ', '。', '！', '？', '; '].map((mark) => head.lastIndexOf(mark) + mark.length - 1),
    );
    const at = end > longest / 3 ? end : head.lastIndexOf(' ') > longest / 3 ? head.lastIndexOf(' ') : longest;
    parts.push(left.slice(0, at + 1).trim());
    left = left.slice(at + 1).trim();
  }
  return left === '' ? parts : [...parts, left];
}

function textBlock(lines: Line[]): OutlineBlock[] {
  return [{ kind: 'text', lines }];
}

/** Text that stands together is one block. */
function joined(blocks: readonly OutlineBlock[]): OutlineBlock[] {
  const found: OutlineBlock[] = [];
  for (const block of blocks) {
    const last = found.at(-1);
    if (block.kind === 'text' && last?.kind === 'text' && isOneText(last.lines, block.lines))
      found[found.length - 1] = { kind: 'text', lines: [...last.lines, ...block.lines] };
    else found.push(block);
  }
  return found;
}

export function textOf(token: Token): string {
  return 'text' in token && typeof token.text === 'string' ? token.text.replaceAll(/\s*\n\s*/g, ' ').trim() : '';
}
