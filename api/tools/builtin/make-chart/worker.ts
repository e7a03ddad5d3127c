// Draws a specification with Vega. Runs in a worker process. Expressions are interpreted, never compiled, patterns in
// them are matched by RE2, and nothing is loaded.
import { takeRefusal } from '../../patterns/all-patterns.ts';
import * as vega from 'vega';
import { expressionInterpreter } from 'vega-interpreter';
import { compile, type TopLevelSpec } from 'vega-lite';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import { draw, type PictureOptions } from '../../svg/draw.ts';
import type { Picture } from '../../svg/picture.ts';
import { textWidth } from '../../svg/text-width.ts';
import { drawnIn, type Drawn } from './drawn.ts';
import { fieldFault } from './fields.ts';
import { layoutsFor, withDefaults, type Layout } from './layouts.ts';
import { takeNotes } from './logger.ts';
import { SchemaCheck } from './schema-check.ts';

const longestSide = 8_000;

interface Input extends PictureOptions {
  readonly spec: Record<string, unknown>;
  readonly language: 'vega' | 'vega-lite';
}

const schemas = {
  vega: ['vega/vega-schema.json', ['values', 'usermeta']],
  'vega-lite': ['vega-lite/vega-lite-schema.json', ['values', 'datasets', 'usermeta']],
} as const;

interface Measured {
  readonly fontSize?: number;
  readonly fontWeight?: unknown;
  readonly limit?: number;
}
interface Measures {
  width: (item: Measured, text: unknown) => number;
}
// Vega would take each letter for 0.8 of its height. Its types leave this out.
const { textMetrics } = vega as unknown as { readonly textMetrics: Measures };
textMetrics.width = ({ fontSize = 11, fontWeight, limit = 0 }, text) => {
  const width = textWidth(
    typeof text === 'string' ? text : JSON.stringify(text ?? ''),
    fontSize,
    fontWeight === 'bold' || Number(fontWeight) >= 600,
  );
  return limit > 0 ? Math.min(limit, width) : width;
};

export default async function chart({ spec, language, ...wanted }: Input): Promise<Picture> {
  const warnings: string[] = [];
  takeRefusal();
  try {
    refuseFaults(spec, language, warnings);
    let layout: Layout = {};
    let made = await drawOnce(spec, language, layout);
    for (const next of language === 'vega' ? [] : layoutsFor(made.drawn)) {
      layout = { ...layout, ...next };
      made = await drawOnce(spec, language, layout);
      if (made.drawn.crowded.length === 0) break;
    }
    if (layout.warning !== undefined) warnings.push(layout.warning);
    return draw(made.svg, wanted, [...warnings, ...made.warnings]);
  } catch (error) {
    if (error instanceof Problem) throw error;
    refusePatterns();
    throw refusal(
      `The chart in spec cannot be drawn: ${error instanceof Error ? error.message.slice(0, 500) : String(error).slice(0, 500)}`,
    );
  }
}

/** What Vega would draw otherwise, or not at all, without a word. @throws Problem (unprocessable) */
function refuseFaults(spec: Input['spec'], language: Input['language'], warnings: string[]): void {
  const addresses = urlsIn(spec, 'spec');
  if (addresses !== undefined) throw refusal(addresses);
  const [module, data] = schemas[language];
  const fault = missingData(spec, language) ?? new SchemaCheck(module, data).fault(spec);
  if (fault !== undefined)
    throw refusal(`The chart in spec cannot be drawn: ${fault}${fault.endsWith('?') ? '' : '.'}`);
  const field = language === 'vega' ? undefined : fieldFault(spec, warnings);
  if (field !== undefined) throw refusal(`The chart in spec cannot be drawn: ${field}`);
}

function missingData(spec: Input['spec'], language: Input['language']): string | undefined {
  if (language === 'vega' || JSON.stringify(spec).includes('"data":')) return undefined;
  return 'it has no data. Put the rows into spec.data.values, as a list of objects';
}

/** The first address of data in a specification; Vega would draw without it. */
function urlsIn(node: unknown, path: string): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined;
  for (const [name, inner] of Object.entries(node)) {
    if (name === 'values' || name === 'datasets') continue;
    const place = Array.isArray(node) ? `${path}[${name}]` : `${path}.${name}`;
    const found = (name === 'data' ? urlOf(inner, place) : undefined) ?? urlsIn(inner, place);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Vega has a list of data, Vega-Lite one; each may be made of what an address gives. */
function urlOf(data: unknown, path: string): string | undefined {
  for (const each of [data].flat()) {
    const { url } = (each ?? {}) as { url?: unknown };
    if (typeof url === 'string')
      return `${path}.url refers to ${url.slice(0, 200)}, which is not loaded. Put the data into data.values.`;
  }
  return undefined;
}

async function drawOnce(
  spec: Input['spec'],
  language: Input['language'],
  layout: Layout,
): Promise<{ svg: string; drawn: Drawn; warnings: string[] }> {
  const { logger, warnings, refusals } = takeNotes();
  const addresses: string[] = [];
  const given = withDefaults(spec, layout);
  const full =
    language === 'vega' ? (given as unknown as vega.Spec) : compile(given as unknown as TopLevelSpec, { logger }).spec;
  const view = new vega.View(vega.parse(full, {}, { ast: true }), {
    expr: expressionInterpreter,
    renderer: 'none',
    loader: loaderOf(addresses),
    logger,
  });
  await view.runAsync();
  checkSize(view.width(), view.height());
  const svg = await view.toSVG();
  const drawn = drawnIn(view);
  view.finalize();
  refusePatterns();
  if (addresses.length > 0)
    throw refusal(
      `The specification refers to ${addresses[0]?.slice(0, 200) ?? ''}, which is not loaded. Put the data into data.values.`,
    );
  if (refusals.length > 0) throw refusal(`The chart in spec would be another one: ${refusals[0] ?? ''}`);
  warnings.push(...emptyMarks(drawn, spec));
  return { svg, drawn, warnings };
}

/** @throws Problem (unprocessable) when no mark shows anything */
function emptyMarks({ marks }: Drawn, spec: Input['spec']): string[] {
  const empty = [...marks].filter(([, seen]) => seen === 0).map(([name]) => name);
  if (empty.length === marks.size)
    throw refusal(
      'The chart in spec would be empty: no row has a value that its marks can show. Check that transforms leave rows, and that the fields have numbers, or dates, where the encoding wants them.',
    );
  // What is selected is drawn only when somebody selects.
  if (JSON.stringify(spec).includes('"params"')) return [];
  return empty.map((name) => `Nothing is drawn by ${name.replace(/_?marks$/, '') || 'a mark'}: no row is left for it.`);
}

/** Vega reports a pattern that cannot be made as invalid, or draws without it. */
function refusePatterns(): void {
  const found = takeRefusal();
  if (found !== undefined) throw found;
}

function checkSize(width: number, height: number): void {
  if (!(Math.max(width, height) <= longestSide))
    throw refusal(`The chart in spec is ${width} × ${height} pixels; the maximum is ${longestSide} per side.`);
}

function refusal(words: string): Problem {
  return new Problem(unprocessable, words);
}

/** Refuses every address, and remembers it: Vega itself would go on without the data. */
function loaderOf(refused: string[]): vega.Loader {
  const refuse = (uri: string): Promise<never> => {
    refused.push(uri);
    return Promise.reject(new Error(`${uri} is not loaded`));
  };
  const loader = vega.loader();
  const link = loader.sanitize.bind(loader);
  return {
    load: refuse,
    http: refuse,
    file: refuse,
    sanitize: (uri, options) => {
      if ((options as { context?: string }).context !== 'href') return refuse(uri);
      if (/^(https?:\/\/|mailto:)/i.test(uri)) return link(uri, options);
      // Vega waits for every link, and breaks where one is rejected.
      refused.push(uri);
      return Promise.resolve({ href: '#' });
    },
  };
}
