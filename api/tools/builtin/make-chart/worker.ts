// Draws a specification with Vega. Runs in a worker process. Interprets expressions and never compiles them, matches
// their patterns with RE2, and loads nothing. Rejects what Vega would silently draw differently, and gives labels enough
// room. The first import replaces RegExp before Vega is loaded.
import { takeRefusal } from '../../patterns/all-patterns.ts';
import * as vega from 'vega';
import { expressionInterpreter } from 'vega-interpreter';
import { compile, type TopLevelSpec } from 'vega-lite';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import { drawPicture, type PictureOptions } from '../../svg/draw.ts';
import type { Picture } from '../../svg/picture.ts';
import { measureTextWidth } from '../../svg/text-width.ts';
import { findFieldFault } from './fields.ts';
import { SchemaCheck } from './schema-check.ts';

const maxSide = 8_000;

interface ChartTask extends PictureOptions {
  readonly spec: Record<string, unknown>;
  readonly language: 'vega' | 'vega-lite';
}

const schemas = {
  vega: ['vega/vega-schema.json', ['values', 'usermeta']],
  'vega-lite': ['vega-lite/vega-lite-schema.json', ['values', 'datasets', 'usermeta']],
} as const;

interface MeasuredItem {
  readonly fontSize?: number;
  readonly fontWeight?: unknown;
  readonly limit?: number;
}
interface TextMetrics {
  width: (item: MeasuredItem, text: unknown) => number;
}
// Vega would estimate each letter as 0.8 of its height. Its types omit textMetrics.
const { textMetrics } = vega as unknown as { readonly textMetrics: TextMetrics };
textMetrics.width = ({ fontSize = 11, fontWeight, limit = 0 }, text) => {
  const width = measureTextWidth(
    typeof text === 'string' ? text : JSON.stringify(text ?? ''),
    fontSize,
    fontWeight === 'bold' || Number(fontWeight) >= 600,
  );
  return limit > 0 ? Math.min(limit, width) : width;
};

export default async function renderChart({ spec, language, ...wanted }: ChartTask): Promise<Picture> {
  const warnings: string[] = [];
  takeRefusal();
  try {
    assertDrawable(spec, language, warnings);
    let layout: LabelLayout = {};
    let made = await drawOnce(spec, language, layout);
    for (const next of language === 'vega' ? [] : listLayouts(made.drawn)) {
      layout = { ...layout, ...next };
      made = await drawOnce(spec, language, layout);
      if (made.drawn.crowded.length === 0) break;
    }
    if (layout.warning !== undefined) warnings.push(layout.warning);
    return drawPicture(made.svg, wanted, [...warnings, ...made.warnings]);
  } catch (error) {
    if (error instanceof Problem) throw error;
    assertPatternsAccepted();
    throw createRefusal(
      `The chart in spec cannot be drawn: ${error instanceof Error ? error.message.slice(0, 500) : String(error).slice(0, 500)}`,
    );
  }
}

/** Rejects what Vega would silently draw differently or not at all. @throws Problem (unprocessable) */
function assertDrawable(spec: ChartTask['spec'], language: ChartTask['language'], warnings: string[]): void {
  const addresses = findDataUrl(spec, 'spec');
  if (addresses !== undefined) throw createRefusal(addresses);
  const [module, data] = schemas[language];
  const fault = findMissingData(spec, language) ?? new SchemaCheck(module, data).findFault(spec);
  if (fault !== undefined)
    throw createRefusal(`The chart in spec cannot be drawn: ${fault}${fault.endsWith('?') ? '' : '.'}`);
  const field = language === 'vega' ? undefined : findFieldFault(spec, warnings);
  if (field !== undefined) throw createRefusal(`The chart in spec cannot be drawn: ${field}`);
}

function findMissingData(spec: ChartTask['spec'], language: ChartTask['language']): string | undefined {
  if (language === 'vega' || JSON.stringify(spec).includes('"data":')) return undefined;
  return 'it has no data. Put the rows into spec.data.values, as a list of objects';
}

/** Finds the first URL of data in a specification; Vega would draw without that data. */
function findDataUrl(node: unknown, path: string): string | undefined {
  if (typeof node !== 'object' || node === null) return undefined;
  for (const [name, inner] of Object.entries(node)) {
    if (name === 'values' || name === 'datasets') continue;
    const place = Array.isArray(node) ? `${path}[${name}]` : `${path}.${name}`;
    const found = (name === 'data' ? findUrl(inner, place) : undefined) ?? findDataUrl(inner, place);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Vega has a list of data sources, Vega-Lite one; each can have a URL. */
function findUrl(data: unknown, path: string): string | undefined {
  for (const each of [data].flat()) {
    const { url } = (each ?? {}) as { url?: unknown };
    if (typeof url === 'string')
      return `${path}.url refers to ${url.slice(0, 200)}, which is not loaded. Put the data into data.values.`;
  }
  return undefined;
}

async function drawOnce(
  spec: ChartTask['spec'],
  language: ChartTask['language'],
  layout: LabelLayout,
): Promise<{ svg: string; drawn: Drawing; warnings: string[] }> {
  const { logger, warnings, refusals } = createNotes();
  const addresses: string[] = [];
  const given = applyLayout(spec, layout);
  const full =
    language === 'vega' ? (given as unknown as vega.Spec) : compile(given as unknown as TopLevelSpec, { logger }).spec;
  const view = new vega.View(vega.parse(full, {}, { ast: true }), {
    expr: expressionInterpreter,
    renderer: 'none',
    loader: createLoader(addresses),
    logger,
  });
  await view.runAsync();
  assertWithinSize(view.width(), view.height());
  const svg = await view.toSVG();
  const drawn = inspectDrawing(view);
  view.finalize();
  assertPatternsAccepted();
  if (addresses.length > 0)
    throw createRefusal(
      `The specification refers to ${addresses[0]?.slice(0, 200) ?? ''}, which is not loaded. Put the data into data.values.`,
    );
  if (refusals.length > 0) throw createRefusal(`The chart in spec would be another one: ${refusals[0] ?? ''}`);
  warnings.push(...noteEmptyMarks(drawn, spec));
  return { svg, drawn, warnings };
}

/** Warns about marks that show nothing. @throws Problem (unprocessable) if no mark shows anything */
function noteEmptyMarks({ marks }: Drawing, spec: ChartTask['spec']): string[] {
  const empty = [...marks].filter(([, seen]) => seen === 0).map(([name]) => name);
  if (empty.length === marks.size)
    throw createRefusal(
      'The chart in spec would be empty: no row has a value that its marks can show. Check that transforms leave rows, and that the fields have numbers, or dates, where the encoding wants them.',
    );
  // A mark that depends on a selection is drawn only once something is selected.
  if (JSON.stringify(spec).includes('"params"')) return [];
  return empty.map((name) => `Nothing is drawn by ${name.replace(/_?marks$/, '') || 'a mark'}: no row is left for it.`);
}

/** Vega reports a rejected pattern as an invalid one, or draws without it. */
function assertPatternsAccepted(): void {
  const found = takeRefusal();
  if (found !== undefined) throw found;
}

function assertWithinSize(width: number, height: number): void {
  if (!(Math.max(width, height) <= maxSide))
    throw createRefusal(`The chart in spec is ${width} × ${height} pixels; the maximum is ${maxSide} per side.`);
}

function createRefusal(words: string): Problem {
  return new Problem(unprocessable, words);
}

/** Rejects and records every address: Vega itself would continue without the data. */
function createLoader(refused: string[]): vega.Loader {
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
      // Vega waits for every link, and fails if one is rejected.
      refused.push(uri);
      return Promise.resolve({ href: '#' });
    },
  };
}

interface LabelLayout {
  /** Rotation of the names below a chart, in degrees. */
  readonly angle?: number;
  /** Whether labels may be omitted. */
  readonly thin?: boolean;
  readonly warning?: string;
}

type SpecFields = Readonly<Record<string, unknown>>;

/** Adds label settings that the specification does not have. No label is cut. */
function applyLayout(spec: SpecFields, { angle, thin }: LabelLayout): SpecFields {
  const config = toFields(spec['config']);
  const turned =
    angle === undefined
      ? {}
      : { labelAngle: angle, labelAlign: 'right', labelBaseline: angle === 270 ? 'middle' : 'top' };
  return {
    ...spec,
    config: {
      ...config,
      axis: { labelLimit: 0, ...toFields(config['axis']) },
      // Adjacent numbers and dates that touch would read as one.
      axisXQuantitative: { labelSeparation: 4, ...toFields(config['axisXQuantitative']) },
      axisXTemporal: { labelSeparation: 4, ...toFields(config['axisXTemporal']) },
      legend: { labelLimit: 0, symbolLimit: 0, titleLimit: 0, ...toFields(config['legend']) },
      ...(angle === undefined ? {} : { axisXDiscrete: { ...toFields(config['axisXDiscrete']), ...turned } }),
      ...(thin === true
        ? { axisDiscrete: { ...toFields(config['axisDiscrete']), labelOverlap: 'greedy', labelSeparation: 2 } }
        : {}),
    },
  };
}

/** Layouts to try in turn until labels no longer collide: rotated names first, then omitted labels with a warning. */
function listLayouts({ crowded }: Drawing): LabelLayout[] {
  if (crowded.length === 0) return [];
  const steps = crowded.filter(({ axis }) => axis === 'x').map(({ step }) => step);
  const room = Math.min(...steps);
  const [worst] = crowded.toSorted((a, b) => a.step - b.step);
  const thin: LabelLayout = { thin: true, ...(worst === undefined ? {} : { warning: describeLeftOut(worst) }) };
  if (steps.length === 0) return [thin];
  return [...(room >= 18 ? [{ angle: -45 }] : []), ...(room >= 11 ? [{ angle: 270 }] : []), thin];
}

const describeLeftOut = ({ axis, labels }: CrowdedAxis): string =>
  `Some labels of the ${axis} axis are left out: ${labels} would lie over each other. Set a larger ${axis === 'y' ? 'height' : 'width'} to have them all.`;

function toFields(value: unknown): SpecFields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as SpecFields) : {};
}

/** A node of Vega's scene graph: a mark with items; the items of a group contain marks. */
interface SceneNode {
  readonly marktype?: string;
  readonly role?: string;
  readonly name?: string;
  readonly items?: readonly SceneItem[];
}
interface SceneItem extends Readonly<Record<string, unknown>> {
  readonly items?: readonly SceneNode[];
  readonly bounds?: { readonly x1: number; readonly x2: number; readonly y1: number; readonly y2: number };
}

const positionFields: Readonly<Record<string, readonly string[]>> = {
  arc: ['x', 'y', 'startAngle', 'endAngle'],
  area: ['x', 'y'],
  image: ['x', 'y'],
  line: ['x', 'y'],
  rect: ['x', 'y', 'width', 'height'],
  rule: ['x', 'y'],
  symbol: ['x', 'y'],
  text: ['x', 'y'],
  trail: ['x', 'y'],
};

interface Drawing {
  /** Data marks by name, with the number of visible items. */
  readonly marks: ReadonlyMap<string, number>;
  /** Axes whose labels collide. */
  readonly crowded: readonly CrowdedAxis[];
}

interface CrowdedAxis {
  readonly axis: 'x' | 'y';
  /** Pixels from label to label. */
  readonly step: number;
  readonly labels: number;
}

function inspectDrawing(view: vega.View): Drawing {
  const marks = new Map<string, number>();
  const crowded: CrowdedAxis[] = [];
  const visit = (node: SceneNode, inAxis: string | undefined): void => {
    const { role, items = [] } = node;
    const orient = role === 'axis' ? readOrient(node) : inAxis;
    if (role === 'mark') countMark(marks, node);
    if (role === 'axis-label' && orient !== undefined) crowded.push(...findCrowdedAxes(node, orient));
    for (const item of items) for (const inner of item.items ?? []) visit(inner, orient);
  };
  visit((view.scenegraph() as unknown as { root: SceneNode }).root, undefined);
  return { marks, crowded };
}

function countMark(marks: Map<string, number>, { marktype = '', name = marktype, items = [] }: SceneNode): void {
  if (marktype === 'group') return;
  marks.set(name, (marks.get(name) ?? 0) + items.filter((item) => canBeSeen(marktype, item)).length);
}

function readOrient(node: SceneNode): string | undefined {
  const orient = node.items?.[0]?.['orient'];
  return typeof orient === 'string' ? orient : undefined;
}

function canBeSeen(marktype: string, item: SceneItem): boolean {
  if (item['defined'] === false) return false;
  if (marktype === 'shape' || marktype === 'path') return item.bounds !== undefined && item.bounds.x2 >= item.bounds.x1;
  if (marktype === 'text' && readLines(item).every((line) => line === '')) return false;
  const places = (positionFields[marktype] ?? []).filter((name) => item[name] !== undefined);
  return places.every((name) => Number.isFinite(item[name]));
}

/** Finds axes with labels that are wider, or higher, than the step to the next label. */
function findCrowdedAxes({ items = [] }: SceneNode, orient: string): CrowdedAxis[] {
  const axis = orient === 'left' || orient === 'right' ? 'y' : 'x';
  const shown = items
    .filter((item) => item['opacity'] !== 0 && readLines(item).some((line) => line !== ''))
    .toSorted((a, b) => Number(a[axis]) - Number(b[axis]));
  const gaps = shown.slice(1).map((item, index) => {
    const before = shown[index] ?? item;
    const room = Number(item[axis]) - Number(before[axis]);
    return { room, isCrowded: room > 0 && room + 0.5 < (measureExtent(item, axis) + measureExtent(before, axis)) / 2 };
  });
  if (!gaps.some((each) => each.isCrowded)) return [];
  return [{ axis, step: Math.min(...gaps.map(({ room }) => room)), labels: shown.length }];
}

function readLines(item: SceneItem): string[] {
  const given: unknown = item['text'];
  return (Array.isArray(given) ? given : [given]).map((line: unknown) =>
    typeof line === 'string' || typeof line === 'number' || typeof line === 'boolean' ? String(line) : '',
  );
}

/** Measures how much of the axis a label needs, including its rotation. */
function measureExtent(item: SceneItem, axis: 'x' | 'y'): number {
  const size = Number(item['fontSize'] ?? 10);
  const lines = readLines(item);
  const angle = ((Number(item['angle'] ?? 0) * Math.PI) / 180) * (axis === 'x' ? 1 : -1);
  const across = axis === 'x' ? Math.abs(Math.cos(angle)) : Math.abs(Math.sin(angle));
  const length = Math.max(...lines.map((line) => measureTextWidth(line, size))) * across;
  // Slanted labels lie next to each other, one line apart.
  const slanted =
    (size * lines.length) / Math.max(0.2, axis === 'x' ? Math.abs(Math.sin(angle)) : Math.abs(Math.cos(angle)));
  return across < 0.05
    ? size * lines.length
    : across > 0.95 && axis === 'x'
      ? length
      : Math.min(slanted, length + size);
}

const maxWarnings = 20;

/** Messages after which the picture differs from the specification. */
const refusedMessages = [
  /^Invalid specification/,
  /dropped as it is incompatible with/,
  /is dropped as .* is not a valid encoding channel/,
  /^Dropping .* from channel .* since it does not contain/,
  /^Ignoring an invalid/,
  /^Invalid (field type|aggregation operator|time ?unit)/i,
  /^Invalid \w+: /,
  /^Unknown repeated value/,
  /^Cannot find a selection named/,
  /^Facet encoding dropped/,
  /Offset dropped because/,
  /We are using "[\w-]+" scale instead/,
  /^Scale type .* does not work with mark/,
  /^Unrecognized (scale|transform|data|signal|parse)/i,
  /^Line marks cannot encode size/,
  /^Line mark is for continuous lines/,
  /^Projection type .* not/i,
];

interface DrawingNotes {
  readonly logger: vega.LoggerInterface;
  readonly warnings: string[];
  /** Messages that mean that something else would be drawn. */
  readonly refusals: string[];
}

/** Collects what Vega and Vega-Lite log while they draw. */
function createNotes(): DrawingNotes {
  const warnings: string[] = [];
  const refusals: string[] = [];
  const note = (args: readonly unknown[]): vega.LoggerInterface => {
    const words = args
      .map((arg) => (arg instanceof Error ? arg.message : String(arg)))
      .join(' ')
      .slice(0, 300);
    if (refusedMessages.some((pattern) => pattern.test(words))) refusals.push(words);
    else if (!warnings.includes(words) && warnings.length < maxWarnings) warnings.push(words);
    return logger;
  };
  const logger: vega.LoggerInterface = {
    level: (level?: number) => (level === undefined ? vega.Warn : logger),
    error: (...args: readonly unknown[]) => note(args),
    warn: (...args: readonly unknown[]) => note(args),
    info: () => logger,
    debug: () => logger,
  };
  return { logger, warnings, refusals };
}
