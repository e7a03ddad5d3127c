// Judges what render_diagram makes of a source of the corpus: right, refused where it must be, or wrong.
import { diagramData } from '@mermaid-js/examples';
import type { Tool } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { call } from '../../support/tools/call.ts';
import type { DiagramCase } from './case.ts';
import { d2Cases } from './d2.cases.ts';
import { dotCases } from './dot.cases.ts';
import { mermaidCases } from './mermaid.cases.ts';

export const kinds = ['mermaid', 'd2', 'graphviz'] as const;
export type Kind = (typeof kinds)[number];

export function corpusOf(kind: Kind): readonly DiagramCase[] {
  if (kind === 'd2') return d2Cases;
  return kind === 'graphviz' ? dotCases : [...mermaidExamples(), ...mermaidCases];
}

/** Icons that their pages load from outside. */
const foreignIcons: Readonly<Record<string, RegExp>> = {
  'treeView: Annotations': /no icon set logos/,
  'treeView: File-Type Icons via Config Maps': /no icon set material-icon-theme/,
};

/** mermaid's own examples, of every kind that it has. */
function mermaidExamples(): DiagramCase[] {
  return diagramData.flatMap(({ id, examples }) =>
    examples.map(({ title, code }) => {
      const name = `${id}: ${title}`;
      const refused = foreignIcons[name];
      return { name, source: code, ...(refused === undefined ? { texts: labelsIn(code) } : { refused }) };
    }),
  );
}

/** What stands in quotes or in the brackets of nodes. */
function labelsIn(code: string): string[] {
  const body = code.replace(/^---[\s\S]*?---\n/, '').replace(/%%.*$/gm, '');
  const quoted = [...body.matchAll(/"([^"\n]{2,60})"/g)].map(([, text = '']) => text);
  // Between two quoted texts stand others: of grammars, operators and calls.
  return quoted.filter((text) => /\p{L}/u.test(text) && !/[<>#`\\*_{}()|;]|https?:|fa:|&nbsp/.test(text));
}

export interface Judged {
  readonly verdict: 'right' | 'refused, rightly' | 'wrong';
  readonly words: string;
  readonly svg?: Uint8Array;
  readonly png?: Uint8Array;
}

/** `png`: draws it as PNG too. */
export async function judge(
  tool: Tool,
  kind: Kind,
  each: DiagramCase,
  { png = true }: { readonly png?: boolean } = {},
): Promise<Judged> {
  try {
    const input = { source: each.source, kind };
    const { result, bytes: svg } = await draw(tool, { ...input, format: 'svg' });
    const files = { svg, ...(png ? { png: (await draw(tool, { ...input, format: 'png', scale: 1 })).bytes } : {}) };
    return { ...files, ...verdictOf(each, new TextDecoder().decode(svg), result) };
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const right = each.refused?.test(error.message) ?? false;
    return { verdict: right ? 'refused, rightly' : 'wrong', words: cell(error.message) };
  }
}

async function draw(
  tool: Tool,
  input: Record<string, unknown>,
): Promise<{ result: Record<string, unknown>; bytes: Uint8Array }> {
  const { result, artifact } = await call(tool, input);
  return { result, bytes: artifact?.bytes ?? new Uint8Array() };
}

function verdictOf(each: DiagramCase, svg: string, result: Record<string, unknown>): Pick<Judged, 'verdict' | 'words'> {
  const warnings = (result.warnings as string[]).join(' ');
  const faults = [
    ...(each.refused === undefined ? [] : ['drawn, but must be refused']),
    ...missing(each, svg, warnings),
    ...(Number(result.width) > 10 && Number(result.height) > 10 ? [] : ['no size']),
    ...(svg.includes('<foreignObject') && !/\bd2-/.test(svg) ? ['HTML is left'] : []),
  ];
  const size = `${Math.round(Number(result.width))} × ${Math.round(Number(result.height))}`;
  return faults.length === 0
    ? { verdict: 'right', words: cell(`${size} ${warnings}`) }
    : { verdict: 'wrong', words: cell(`${faults.join('; ')} (${size}) ${warnings}`) };
}

function missing({ texts = [], marks, warned }: DiagramCase, svg: string, warnings: string): string[] {
  const words = textOf(svg);
  return [
    ...texts.filter((text) => !words.includes(bare(text))).map((text) => `without "${text}"`),
    ...(marks === undefined || marks.test(svg) ? [] : [`without ${marks.source}`]),
    ...(warned === undefined || warned.test(warnings) ? [] : [`no warning ${warned.source}`]),
  ];
}

/** All text of a picture without spaces: lines and runs of a label stand in elements of their own. */
function textOf(svg: string): string {
  const text = svg
    .replace(/<(style|title|desc)\b[\s\S]*?<\/\1>/g, '')
    .replace(/<[^>]*>/g, '')
    .replace(/&#x([0-9a-f]+);/gi, (_, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16)))
    .replace(/&#(\d+);/g, (_, point: string) => String.fromCodePoint(Number(point)))
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, '&');
  return bare(text);
}

const bare = (text: string): string => text.replace(/[\s\u00a0\u200b]+/g, '');

const cell = (text: string): string => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').trim().slice(0, 260);
