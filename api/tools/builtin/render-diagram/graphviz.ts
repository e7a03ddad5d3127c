// Draws DOT with Graphviz (WebAssembly). Runs in a worker process. Makes Graphviz measure text as viewers draw it, and
// finds in the source what Graphviz would silently leave out.
import { Graphviz } from '@hpcc-js/wasm-graphviz';
import { drawPicture } from '../../svg/draw.ts';
import type { Picture } from '../../svg/picture.ts';
import { createSyntaxFault, parseLayout, type DiagramTask } from './language.ts';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';

const graphviz = await Graphviz.load();

interface GraphvizModule {
  readonly _module: { readonly CGraphviz: { lastError: () => string } };
}
// Some errors do not stop Graphviz from drawing something, such as a label that it cannot parse. Reading the error
// clears it, so the last one is recorded here.
const { CGraphviz } = (graphviz as unknown as GraphvizModule)._module;
const readLastError = CGraphviz.lastError.bind(CGraphviz);
let lastMessage = '';
CGraphviz.lastError = () => (lastMessage = readLastError());

export default function render({ source, layout, ...wanted }: DiagramTask): Picture {
  const engine = parseLayout('Graphviz', layout, [
    'dot',
    'neato',
    'fdp',
    'sfdp',
    'circo',
    'twopi',
    'osage',
    'patchwork',
  ]);
  const notes = collectDotNotes(source);
  const svg = drawSvg(source, engine);
  if (lastMessage !== '') throw createSyntaxFault('Graphviz', removePads(lastMessage));
  return drawPicture(svg, wanted, notes);
}

function drawSvg(
  source: string,
  engine: 'dot' | 'neato' | 'fdp' | 'sfdp' | 'circo' | 'twopi' | 'osage' | 'patchwork',
): string {
  lastMessage = '';
  try {
    return removePads(graphviz.layout(addFont(source), 'svg', engine));
  } catch (error) {
    const words = error instanceof Error ? error.message : '';
    // Pass on a WebAssembly trap, such as out of memory, unchanged.
    if (words === '' || !(error instanceof Error) || error.constructor !== Error) throw error;
    const line = /in line (\d+)/.exec(words)?.[1];
    throw createSyntaxFault(
      'Graphviz',
      removePads(words).replace(/ ?in line \d+/, ''),
      line === undefined ? undefined : Number(line),
    );
  }
}

/**
 * Graphviz knows the widths of ASCII letters and measures each byte of any other letter as a space: three bytes are
 * 0.83 of a wide (Chinese, Japanese or Korean) letter. One extra two-byte letter after every three compensates, and is
 * removed from the picture again.
 */
const padCharacter = '\u0378';
const wideLetters =
  /(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uffef]){3}/gu;

const fontDefaults = ['graph', 'node', 'edge'].map((what) => `${what} [fontname="Arial"];`).join(' ');

/** Sets Arial, whose widths every viewer uses, without changing line numbers. */
export function addFont(source: string): string {
  const padded = source.replaceAll(padCharacter, '').replace(wideLetters, (letters) => letters + padCharacter);
  // The first brace outside comments and names opens the graph.
  const start = /^(?:\s+|\uFEFF|\/\*[\s\S]*?\*\/|\/\/[^\n]*|#[^\n]*|"(?:[^"\\]|\\[\s\S])*"|[^\s{"/#]+|\/)*\{/.exec(
    padded,
  )?.[0];
  return start === undefined ? padded : `${start} ${fontDefaults}${padded.slice(start.length)}`;
}

/** Removes the extra letters from a picture or a message. */
export function removePads(text: string): string {
  return text.replaceAll(padCharacter, '').replaceAll('&#888;', '');
}

/** Skips comments; distinguishes strings, HTML and words. */
const dotToken =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|^#[^\n]*|"(?<text>(?:[^"\\]|\\[\s\S])*)"|(?<word>[\p{L}_\u0080-\u{10ffff}][\p{L}\p{N}_.]*|-?[\d.]+)|(?<mark>[={}<>])/gmu;

const knownShapes = new Set(
  'box polygon ellipse oval circle point egg triangle plaintext plain diamond trapezium parallelogram house pentagon hexagon septagon octagon doublecircle doubleoctagon tripleoctagon invtriangle invtrapezium invhouse Mdiamond Msquare Mcircle rect rectangle square star none underline cylinder note tab folder box3d component promoter cds terminator utr primersite restrictionsite fivepoverhang threepoverhang noverhang assembly signature insulator ribosite rnastab proteasesite proteinstab rpromoter rarrow larrow lpromoter record Mrecord'.split(
    ' ',
  ),
);
const knownArrow =
  /^(o?[lr]?(box|crow|curve|icurve|diamond|dot|inv|none|normal|tee|vee)|open|halfopen|empty|invempty|ediamond|invdot|invodot)+$/;
const knownStyle =
  /^(dashed|dotted|solid|invis|bold|filled|striped|wedged|diagonals|rounded|radial|tapered|unfilled|setlinewidth\(.*\))?$/;

interface DotAttribute {
  readonly name: string;
  readonly value: string;
}

/**
 * Lists what Graphviz would leave out. @throws Problem (unprocessable) if the source names images or has a second graph
 */
export function collectDotNotes(source: string): string[] {
  const { attributes, graphs } = readDot(source);
  if (graphs > 1) throw createRefusal(`source has ${graphs} graphs, and one is drawn. Send each on its own.`);
  const image =
    attributes.find(({ name, value }) => (name === 'image' || name === 'shapefile') && value !== '')?.value ??
    /<IMG\b[^>]*\bSRC\s*=\s*"([^"]*)"/i.exec(source)?.[1];
  if (image !== undefined)
    throw createRefusal(`The diagram names an image: ${image.slice(0, 200)}. Graphviz loads none here; leave it out.`);
  return [...new Set(attributes.flatMap(noteAttribute))].slice(0, 20);
}

function noteAttribute({ name, value }: DotAttribute): string[] {
  if (name === 'shape' && value !== '' && !knownShapes.has(value))
    return [`Graphviz has no shape ${value.slice(0, 60)}: a box is drawn.`];
  if ((name === 'arrowhead' || name === 'arrowtail') && value !== '' && !knownArrow.test(value))
    return [`Graphviz has no arrow ${value.slice(0, 60)}: a usual one is drawn.`];
  if (name === 'style')
    return value
      .split(',')
      .map((style) => style.trim())
      .filter((style) => !knownStyle.test(style))
      .map((style) => `Graphviz has no style ${style.slice(0, 60)}: it is left out.`);
  return [];
}

interface DotReading {
  readonly attributes: DotAttribute[];
  graphs: number;
  depth: number;
  /** Number of open HTML brackets. */
  html: number;
  /** The previous word, and the name of the attribute whose value comes next. */
  last: string;
  name: string;
}

function readDot(source: string): DotReading {
  const reading: DotReading = { attributes: [], graphs: 0, depth: 0, html: 0, last: '', name: '' };
  for (const { groups = {} } of source.matchAll(dotToken)) {
    const { text, word, mark } = groups;
    if (mark !== undefined) readMark(reading, mark);
    else if (reading.html === 0) readWord(reading, text?.replace(/\\"/g, '"') ?? word ?? '');
  }
  return reading;
}

function readMark(reading: DotReading, mark: string): void {
  if (mark === '<') reading.html += 1;
  if (mark === '>') reading.html = Math.max(0, reading.html - 1);
  if (reading.html > 0) return;
  if (mark === '{') reading.depth += 1;
  if (mark === '}') reading.depth -= 1;
  if (mark === '{' && reading.depth === 1) reading.graphs += 1;
  reading.name = mark === '=' ? reading.last : '';
}

function readWord(reading: DotReading, value: string): void {
  if (reading.name !== '') reading.attributes.push({ name: reading.name, value });
  reading.name = '';
  reading.last = value;
}

function createRefusal(words: string): Problem {
  return new Problem(unprocessable, words);
}
