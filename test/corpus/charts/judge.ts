// Judges what make_chart makes of a chart of the corpus: right, refused where it must be, or wrong.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Tool } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { call } from '../../support/tools/call.ts';
import type { ChartCase } from './case.ts';
import { plainCases } from './plain.cases.ts';
import { specCases } from './spec.cases.ts';

export const kinds = ['gallery', 'plain', 'spec'] as const;
export type Kind = (typeof kinds)[number];

export function chartsOf(kind: Kind): readonly ChartCase[] {
  if (kind === 'gallery') return galleryCases();
  return kind === 'plain' ? plainCases : specCases;
}

const gallery = new URL('gallery/', import.meta.url);

/** Examples of Vega-Lite's documentation, with their data from the package vega-datasets. */
function galleryCases(): ChartCase[] {
  return readdirSync(gallery)
    .filter((file) => file.endsWith('.vl.json'))
    .toSorted()
    .map((file) => ({
      name: file.replace('.vl.json', ''),
      input: { spec: withData(JSON.parse(readFileSync(new URL(file, gallery), 'utf8'))) },
    }));
}

function withData(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withData);
  if (typeof node !== 'object' || node === null) return node;
  const { url, ...rest } = node as { readonly url?: unknown; readonly format?: object };
  const file = typeof url === 'string' && url.startsWith('data/') ? datasetFile(url) : undefined;
  if (file === undefined)
    return Object.fromEntries(Object.entries(node).map(([name, inner]) => [name, withData(inner)]));
  const text = readFileSync(file, 'utf8');
  const extension = file.split('.').at(-1);
  return extension === 'json'
    ? { ...rest, values: JSON.parse(text) as unknown }
    : { ...rest, format: { type: extension, ...rest.format }, values: text };
}

function datasetFile(url: string): string | undefined {
  const root = fileURLToPath(import.meta.resolve('vega-datasets')).replace(/\/vega-datasets\/.*$/, '/vega-datasets/');
  return existsSync(`${root}${url}`) ? `${root}${url}` : undefined;
}

export interface Judged {
  readonly verdict: 'right' | 'refused, rightly' | 'wrong';
  readonly words: string;
  readonly png?: Uint8Array;
}

export async function judge(tool: Tool, each: ChartCase): Promise<Judged> {
  try {
    const svg = await call(tool, { ...each.input, format: 'svg' });
    const png = await call(tool, { ...each.input, format: 'png', scale: 1 });
    const verdict = verdictOf(each, new TextDecoder().decode(svg.artifact?.bytes), svg.result);
    return png.artifact === undefined ? verdict : { ...verdict, png: png.artifact.bytes };
  } catch (error) {
    const words = wordsOf(error);
    return { verdict: each.refused?.test(words) === true ? 'refused, rightly' : 'wrong', words: cell(words) };
  }
}

/** A problem, or what the schema of the input refuses and becomes one over HTTP. */
function wordsOf(error: unknown): string {
  if (error instanceof Problem)
    return [error.message, ...error.errors.map(({ field, message, fix }) => `${field} ${message}. ${fix}`)].join(' ');
  if (error instanceof z.core.$ZodError) return z.prettifyError(error);
  throw error;
}

function verdictOf(each: ChartCase, svg: string, result: Record<string, unknown>): Pick<Judged, 'verdict' | 'words'> {
  const warnings = (result['warnings'] as string[]).join(' ');
  const words = svg.replaceAll(/<[^>]*>/g, '').replaceAll(/\s+/g, '');
  const faults = [
    ...(each.refused === undefined ? [] : ['drawn, but must be refused']),
    ...(each.texts ?? [])
      .filter((text) => !words.includes(text.replaceAll(/\s+/g, '')))
      .map((text) => `without "${text}"`),
    ...(each.warned === undefined || each.warned.test(warnings) ? [] : [`no warning ${each.warned.source}`]),
    ...(svg.includes('…') ? ['text is cut'] : []),
  ];
  const size = `${Math.round(Number(result['width']))} × ${Math.round(Number(result['height']))}`;
  return faults.length === 0
    ? { verdict: 'right', words: cell(`${size} ${warnings}`) }
    : { verdict: 'wrong', words: cell(`${faults.join('; ')} (${size}) ${warnings}`) };
}

const cell = (text: string): string => text.replaceAll(/\s+/g, ' ').replaceAll('|', '\\|').trim().slice(0, 260);
