// What Graphviz leaves out of a picture without a word, found in the source.
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';

/** Comments are passed over; then strings, HTML and words are distinguished. */
const token =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|^#[^\n]*|"(?<text>(?:[^"\\]|\\[\s\S])*)"|(?<word>[\p{L}_\u0080-\u{10ffff}][\p{L}\p{N}_.]*|-?[\d.]+)|(?<mark>[={}<>])/gmu;

const shapes = new Set(
  'box polygon ellipse oval circle point egg triangle plaintext plain diamond trapezium parallelogram house pentagon hexagon septagon octagon doublecircle doubleoctagon tripleoctagon invtriangle invtrapezium invhouse Mdiamond Msquare Mcircle rect rectangle square star none underline cylinder note tab folder box3d component promoter cds terminator utr primersite restrictionsite fivepoverhang threepoverhang noverhang assembly signature insulator ribosite rnastab proteasesite proteinstab rpromoter rarrow larrow lpromoter record Mrecord'.split(
    ' ',
  ),
);
const arrow =
  /^(o?[lr]?(box|crow|curve|icurve|diamond|dot|inv|none|normal|tee|vee)|open|halfopen|empty|invempty|ediamond|invdot|invodot)+$/;
const styles =
  /^(dashed|dotted|solid|invis|bold|filled|striped|wedged|diagonals|rounded|radial|tapered|unfilled|setlinewidth\(.*\))?$/;

interface Attribute {
  readonly name: string;
  readonly value: string;
}

/** @throws Problem (unprocessable) when the source names images, or has a second graph */
export function dotNotes(source: string): string[] {
  const { attributes, graphs } = read(source);
  if (graphs > 1) throw refusal(`source has ${graphs} graphs, and one is drawn. Send each on its own.`);
  const image =
    attributes.find(({ name, value }) => (name === 'image' || name === 'shapefile') && value !== '')?.value ??
    /<IMG\b[^>]*\bSRC\s*=\s*"([^"]*)"/i.exec(source)?.[1];
  if (image !== undefined)
    throw refusal(`The diagram names an image: ${image.slice(0, 200)}. Graphviz loads none here; leave it out.`);
  return [...new Set(attributes.flatMap(noteOn))].slice(0, 20);
}

function noteOn({ name, value }: Attribute): string[] {
  if (name === 'shape' && value !== '' && !shapes.has(value))
    return [`Graphviz has no shape ${value.slice(0, 60)}: a box is drawn.`];
  if ((name === 'arrowhead' || name === 'arrowtail') && value !== '' && !arrow.test(value))
    return [`Graphviz has no arrow ${value.slice(0, 60)}: a usual one is drawn.`];
  if (name === 'style')
    return value
      .split(',')
      .map((style) => style.trim())
      .filter((style) => !styles.test(style))
      .map((style) => `Graphviz has no style ${style.slice(0, 60)}: it is left out.`);
  return [];
}

interface Reading {
  readonly attributes: Attribute[];
  graphs: number;
  depth: number;
  /** How many brackets of HTML are open. */
  html: number;
  /** The word before, and the name of the attribute whose value comes next. */
  last: string;
  name: string;
}

function read(source: string): Reading {
  const reading: Reading = { attributes: [], graphs: 0, depth: 0, html: 0, last: '', name: '' };
  for (const { groups = {} } of source.matchAll(token)) {
    const { text, word, mark } = groups;
    if (mark !== undefined) readMark(reading, mark);
    else if (reading.html === 0) readWord(reading, text?.replace(/\\"/g, '"') ?? word ?? '');
  }
  return reading;
}

function readMark(reading: Reading, mark: string): void {
  if (mark === '<') reading.html += 1;
  if (mark === '>') reading.html = Math.max(0, reading.html - 1);
  if (reading.html > 0) return;
  if (mark === '{') reading.depth += 1;
  if (mark === '}') reading.depth -= 1;
  if (mark === '{' && reading.depth === 1) reading.graphs += 1;
  reading.name = mark === '=' ? reading.last : '';
}

function readWord(reading: Reading, value: string): void {
  if (reading.name !== '') reading.attributes.push({ name: reading.name, value });
  reading.name = '';
  reading.last = value;
}

function refusal(words: string): Problem {
  return new Problem(unprocessable, words);
}
