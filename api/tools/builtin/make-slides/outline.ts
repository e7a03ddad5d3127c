// Parses an outline in Markdown into slides of blocks.
import { marked, type Token, type Tokens } from 'marked';
import { type FieldError, Problem } from '../../../../lib/problem.ts';
import { readPart } from '../../../http/index.ts';
import { unprocessable } from '../../problems.ts';
import { blocksOf, textOf } from './blocks.ts';
import { maxColumns, maxSlides, outlineDeck, type OutlineBlock, type OutlineDeck, type OutlineSlide } from './deck.ts';
import { hasHeadings, markdownOf } from './plain-outline.ts';
import { prepared } from './left-out.ts';

/** The format of an outline, for descriptions and error messages. */
export const outlineForm =
  '# for the title and for sections, ## for slides, - or 1. for lists, two ### for two columns, tables, fenced code, ![alt](URL or artifact), ```chart (input of make_chart), ```mermaid, ```d2, ```dot, > for a quote with its author last after —, "Notes: …" for speaker notes';

export interface Outline {
  readonly deck: OutlineDeck;
  /** What is not on the slides as it was written. */
  readonly warnings: readonly string[];
}

/** @throws Problem (unprocessable) that names what cannot be read */
export function readOutline(given: string): Outline {
  const { text, warnings } = prepared(given);
  const outline = hasHeadings(text) ? text : (markdownOf(text) ?? text);
  const parts = split(marked.lexer(outline, { gfm: true }).filter(({ type }) => !['space', 'def'].includes(type)));
  const [first, ...others] = parts;
  if (first === undefined) throw new Problem(unprocessable, `The outline has no headings. Use ${outlineForm}.`);
  const titled = first.depth === 1;
  const slides = [...(titled ? moreOf(first) : []), ...(titled ? others : parts).flatMap(slidesOf)];
  const { text: subtitle, notes } = plainOf(first.body);
  const head = titled
    ? { title: first.title, ...(subtitle === '' ? {} : { subtitle }), ...(notes === undefined ? {} : { notes }) }
    : { title: first.title };
  return { deck: readDeck(head, slides), warnings };
}

/** @throws Problem (unprocessable) */
function readDeck(head: object, slides: readonly unknown[]): OutlineDeck {
  try {
    return readPart('argument', outlineDeck, { ...head, slides });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { message, fix } = faultOf(error.errors[0], slides);
    throw new Problem(unprocessable, `The outline cannot be turned into slides: ${message}. ${fix}`, {
      errors: [{ in: 'query', field: 'outline', message, fix }],
      cause: error,
    });
  }
}

interface Part {
  readonly depth: number;
  readonly title: string;
  readonly body: Token[];
  /** Whether its title is the first of its body. */
  readonly isTitled?: boolean;
}

/**
 * Headings of the first two levels, each with what follows; a rule begins a slide of its own where no heading does.
 * What stands before the first heading is put below it.
 */
function split(tokens: readonly Token[]): Part[] {
  const parts: Part[] = [];
  const before: Token[] = [];
  tokens.forEach((token, index) => {
    if (isHeading(token) && token.depth <= 2) parts.push({ depth: token.depth, title: token.text, body: [] });
    else if (token.type === 'hr') parts.push(...afterRule(parts, tokens[index + 1]));
    else (parts.at(-1)?.body ?? before).push(token);
  });
  parts[0]?.body.unshift(...before);
  // A rule took its title from the text below it.
  return parts.map((part) => (part.isTitled === true ? { ...part, body: part.body.slice(1) } : part));
}

function afterRule(parts: readonly Part[], next: Token | undefined): Part[] {
  const last = parts.at(-1);
  if (last === undefined || next === undefined || next.type === 'hr' || (isHeading(next) && next.depth <= 2)) return [];
  const title = titleIn(next);
  return [{ depth: 2, title: title ?? last.title, body: [], isTitled: title !== undefined }];
}

/** A short line that begins a slide is its title. */
function titleIn(token: Token): string | undefined {
  const said = isHeading(token) || token.type === 'paragraph' ? textOf(token) : '';
  return said === '' || said.length > 80 || notesMark.test(said) || said.includes('![') ? undefined : said;
}

/** What stands under the title of the deck besides its subtitle gets a slide. */
function moreOf(first: Part): unknown[] {
  const body = first.body.filter((token) => !isSaid(token) && !isNotes(token));
  return body.length === 0 ? [] : [contentOf({ ...first, body })];
}

/** A section, or a slide of what stands under the heading of one. */
function slidesOf(part: Part): unknown[] {
  const { depth, title, body } = part;
  if (depth === 1 && body.every((token) => isSaid(token) || isNotes(token))) {
    const { text, notes } = plainOf(body);
    return [
      {
        layout: 'section',
        title,
        ...(text === '' ? {} : { subtitle: text }),
        ...(notes === undefined ? {} : { notes }),
      },
    ];
  }
  return [contentOf(part)];
}

function contentOf({ title, body }: Part): unknown {
  const { notes } = plainOf(body);
  const shown = beforeNotes(body).filter((token) => !isNotes(token));
  const columns = shown.filter(isHeading).length >= 2 ? columnsOf(shown) : [{ blocks: blocksOf(shown) }];
  return { layout: 'content', title, columns, ...(notes === undefined ? {} : { notes }) };
}

/** The first heading of the third level begins the left column, the second the right one; further ones stay in it. */
function columnsOf(body: readonly Token[]): { heading?: string; blocks: OutlineBlock[] }[] {
  const columns: { heading: string; body: Token[] }[] = [];
  const before: Token[] = [];
  for (const token of body) {
    if (isHeading(token) && columns.length < 2) columns.push({ heading: token.text, body: [] });
    else (columns.at(-1)?.body ?? before).push(token);
  }
  return columns.map(({ heading, body: own }, index) => ({
    heading,
    blocks: blocksOf(index === 0 ? [...before, ...own] : own),
  }));
}

/** The paragraphs of a title, and its notes. */
function plainOf(body: readonly Token[]): { text: string; notes: string | undefined } {
  const said = body
    .filter(isNotes)
    .map((token) => textOf(token).replace(notesMark, ''))
    .filter((text) => text !== '');
  const after = body.slice(beforeNotes(body).length + 1).map((token) => token.raw.trim());
  const notes = [...said, ...after].join('\n\n');
  return {
    text: beforeNotes(body)
      .filter((token) => !isNotes(token) && isSaid(token))
      .map(textOf)
      .join(' ')
      .trim(),
    notes: notes === '' ? undefined : notes,
  };
}

const notesMark = /^\**(?:speaker |presenter )?notes?\**:\**\s*/i;

/** Without the notes that follow a mark which stands alone. */
function beforeNotes(body: readonly Token[]): readonly Token[] {
  const at = body.findIndex((token) => isNotes(token) && textOf(token).replace(notesMark, '') === '');
  return at < 0 ? body : body.slice(0, at);
}

function isNotes(token: Token): boolean {
  return token.type === 'paragraph' && notesMark.test((token as Tokens.Paragraph).text);
}

/** A paragraph of text alone. */
function isSaid(token: Token): boolean {
  return token.type === 'paragraph' && !(token as Tokens.Paragraph).tokens.some(({ type }) => type === 'image');
}

function isHeading(token: Token): token is Tokens.Heading {
  return token.type === 'heading';
}

/** What is wrong with an outline, in the words of an outline rather than of the deck that it becomes. */
function faultOf(fault: FieldError | undefined, slides: readonly unknown[]): { message: string; fix: string } {
  const use = `Use ${outlineForm}.`;
  if (slides.length === 0) return { message: 'it has no slides', fix: use };
  if (fault === undefined) return { message: 'it has no form that is known', fix: use };
  const [part, index, ...field] = fault.field.split('.');
  if (part !== 'slides') return { message: `${part ?? ''} ${fault.message}`, fix: use };
  if (index === undefined)
    return {
      message: `it has ${slides.length} slides; the maximum is ${maxSlides}`,
      fix: `Combine slides, or send it in several calls of at most ${maxSlides} slides each.`,
    };
  const { title = '' } = slides[Number(index)] as Partial<OutlineSlide>;
  const slide = `slide ${Number(index) + 1} (${JSON.stringify(title)})`;
  if (field.at(-1) === 'header')
    return {
      message: `${slide} has a table of more than ${maxColumns} columns`,
      fix: `Leave columns out, or split the table into tables of at most ${maxColumns} columns.`,
    };
  const named = field.filter((name) => !/^\d+$|^columns$|^blocks$/.test(name));
  return { message: `${slide}: ${named.join('.')} ${fault.message}`.replaceAll(/\s+/g, ' '), fix: use };
}
