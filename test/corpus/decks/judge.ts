// Judges what make_slides makes of an outline of the corpus: right, refused where it must be, or wrong.
import JSZip from 'jszip';
import { readCatalog } from '../../../api/models/catalog.ts';
import type { ToolDependencies } from '../../../api/tools/tool.ts';
import { createMakeSlidesTool } from '../../../api/tools/builtin/make-slides/make-slides.ts';
import type { Fetcher } from '../../../api/tools/fetch/fetcher.ts';
import { fetchFailed } from '../../../api/tools/problems.ts';
import { drawPng } from '../../../api/tools/svg/draw.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { call, createServices } from '../../support/tools/call.ts';
import { deckCases } from './decks.cases.ts';
import { pictureUrl, type DeckCase } from './case.ts';

export { deckCases };

/** The tool, with a web that has one picture. */
export function slidesToolWith(workers: ToolDependencies['workers']): Tool {
  return createMakeSlidesTool(createServices({ workers, fetcher: webOfOnePicture(), catalog: readCatalog() }));
}

function webOfOnePicture(): Fetcher {
  const get: Fetcher['get'] = ({ url }) => {
    if (url !== pictureUrl) return Promise.reject(new Problem(fetchFailed, `Could not fetch ${url}: 404`));
    return Promise.resolve({
      url,
      status: 200,
      headers: new Headers({ 'content-type': 'image/png' }),
      mediaType: 'image/png',
      bytes: ship(),
    });
  };
  return { get, fetch: get, check: () => Promise.resolve() };
}

/** A ship, drawn here. */
function ship(): Uint8Array {
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="500"><rect width="900" height="500" fill="#cfe8f3"/><rect y="380" width="900" height="120" fill="#2b6f97"/><path d="M120 380h660l-60-90H180z" fill="#8a2f2f"/><g fill="#d98c2b"><rect x="220" y="200" width="120" height="90"/><rect x="350" y="230" width="120" height="60"/><rect x="480" y="200" width="120" height="90"/></g><rect x="620" y="170" width="70" height="120" fill="#fff"/></svg>';
  return drawPng(svg, 1).bytes;
}

export interface JudgedDeck {
  readonly verdict: 'right' | 'refused, rightly' | 'wrong';
  readonly words: string;
  readonly pptx?: Uint8Array;
}

export async function judgeDeck(tool: Tool, each: DeckCase): Promise<JudgedDeck> {
  try {
    const { result, artifact } = await call(tool, { outline: each.outline });
    const pptx = artifact?.bytes ?? new Uint8Array();
    const warnings = (result['warnings'] as string[]).join(' ');
    const found = await partsOf(pptx);
    const faults = [...faultsOf(each, found), ...missedBy(each, warnings)];
    const words = cell([...faults, `${found.slides.length} slides`, warnings].join('; '));
    return { verdict: faults.length === 0 ? 'right' : 'wrong', words, pptx };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return {
      verdict: each.refused?.test(error.message) === true ? 'refused, rightly' : 'wrong',
      words: cell(error.message),
    };
  }
}

function missedBy({ refused, warned }: DeckCase, warnings: string): string[] {
  return [
    ...(refused === undefined ? [] : ['made, but must be refused']),
    ...(warned === undefined || warned.test(warnings) ? [] : [`no warning ${warned.source}`]),
  ];
}

interface Parts {
  readonly slides: readonly {
    readonly title: string | undefined;
    readonly paragraphs: readonly string[];
    readonly starts: readonly number[];
  }[];
  readonly pictures: number;
  readonly notes: readonly string[];
  /** Whether something stands outside of its slide. */
  readonly outside: readonly number[];
}

function faultsOf(each: DeckCase, { slides, pictures, notes, outside }: Parts): string[] {
  const titles = slides.map(({ title }) => title?.replace(/ \(\d+\/\d+\)$/, ''));
  const paragraphs = new Set(slides.flatMap((slide) => slide.paragraphs));
  const starts = slides.flatMap((slide) => slide.starts);
  return [
    ...slides.flatMap(({ title }, index) => (title === undefined ? [`slide ${index + 1} has no title`] : [])),
    ...(each.titles === undefined || same(titles, each.titles) ? [] : [`titles ${titles.join(' | ')}`]),
    ...(each.texts ?? []).filter((text) => !paragraphs.has(text)).map((text) => `without "${text}"`),
    ...(each.pictures === undefined || each.pictures === pictures ? [] : [`${pictures} pictures`]),
    ...(each.starts === undefined || same(starts, each.starts) ? [] : [`lists begin with ${starts.join(', ')}`]),
    ...(each.notes ?? []).filter((note) => !notes.includes(note)).map((note) => `no note "${note}"`),
    ...outside.map((number) => `something leaves slide ${number}`),
  ];
}

const same = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

/** English metric units of an inch. */
const slideSize = { width: 12_191_695, height: 6_858_000 };

async function partsOf(pptx: Uint8Array): Promise<Parts> {
  const archive = await JSZip.loadAsync(pptx);
  const read = async (pattern: RegExp): Promise<string[]> => {
    const names = Object.keys(archive.files)
      .filter((name) => pattern.test(name))
      .toSorted((a, b) => Number(/\d+/.exec(a)?.[0]) - Number(/\d+/.exec(b)?.[0]));
    return Promise.all(names.map(async (name) => (await archive.file(name)?.async('string')) ?? ''));
  };
  const xml = await read(/^ppt\/slides\/slide\d+\.xml$/);
  return {
    slides: xml.map((slide) => ({ title: titleIn(slide), paragraphs: paragraphsIn(slide), starts: startsIn(slide) })),
    pictures: xml.reduce((count, slide) => count + (slide.match(/<p:pic>/g) ?? []).length, 0),
    notes: (await read(/^ppt\/notesSlides\/notesSlide\d+\.xml$/)).flatMap(paragraphsIn),
    outside: xml.flatMap((slide, index) => (leaves(slide) ? [index + 1] : [])),
  };
}

function titleIn(slide: string): string | undefined {
  const shape = [...slide.matchAll(/<p:sp>.*?<\/p:sp>/gs)]
    .map(([all]) => all)
    .find((all) => all.includes('<p:ph type="title"/>'));
  const title = shape === undefined ? '' : paragraphsIn(shape).join(' ');
  return title.trim() === '' ? undefined : title;
}

function paragraphsIn(xml: string): string[] {
  return Array.from(xml.matchAll(/<a:p>(.*?)<\/a:p>/gs), ([, inner = '']) =>
    Array.from(inner.matchAll(/<a:t>(.*?)<\/a:t>/gs), ([, said = '']) => said).join(''),
  )
    .map((said) =>
      said
        .replaceAll('&lt;', '<')
        .replaceAll('&gt;', '>')
        .replaceAll('&quot;', '"')
        .replaceAll('&apos;', "'")
        .replaceAll('&amp;', '&'),
    )
    .filter((said) => said !== '');
}

/** Where numbered lists begin: paragraphs with one start follow each other. */
function startsIn(slide: string): number[] {
  const starts = Array.from(
    slide.matchAll(
      /<a:pPr[^>]*?(?:lvl="(\d)")?[^>]*>(?:(?!<\/a:pPr>).)*?(?:<a:buAutoNum[^>]*startAt="(\d+)"|<\/a:pPr>)/gs,
    ),
    ([all, , start]) => ({
      level: Number(/lvl="(\d)"/.exec(all)?.[1] ?? 0),
      start: start === undefined ? undefined : Number(start),
    }),
  );
  const open: (number | undefined)[] = [];
  return starts.flatMap(({ level, start }) => {
    open.length = Math.min(open.length, level + 1);
    const isNew = start !== undefined && open[level] !== start;
    open[level] = start;
    return isNew ? [start] : [];
  });
}

function leaves(slide: string): boolean {
  return [...slide.matchAll(/<a:off x="(-?\d+)" y="(-?\d+)"\/>\s*<a:ext cx="(\d+)" cy="(\d+)"\/>/g)].some(
    ([, x, y, cx, cy]) => {
      const [left, top, width, height] = [x, y, cx, cy].map(Number) as [number, number, number, number];
      return left < 0 || top < 0 || left + width > slideSize.width + 2_000 || top + height > slideSize.height + 2_000;
    },
  );
}

const cell = (text: string): string => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').trim().slice(0, 260);
