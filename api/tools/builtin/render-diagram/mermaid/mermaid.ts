// Draws Mermaid diagrams with mermaid itself, in a page of the browser's worker. Reports its syntax errors by the line
// that the author sees, warns about what mermaid silently leaves out, and supplies the icons of Font Awesome 6 Free
// that a source names.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { Problem } from '../../../../../lib/problem.ts';
import type { Page } from '../../../browser/page.ts';
import { toScriptLiteral, takeScreenshot } from '../../../browser/page.ts';
import type { BrowserTask } from '../../../svg/picture.ts';
import { unprocessable } from '../../../problems.ts';
import { drawPicture } from '../../../svg/draw.ts';
import type { Picture } from '../../../svg/picture.ts';
import { parseLayout, createSyntaxFault } from '../language.ts';

const pageFault = z.object({
  name: z.string(),
  message: z.string(),
  /** In the text that mermaid parses. */
  line: z.number().optional(),
  /** The text that did not fit, if no line is known. */
  text: z.string().optional(),
});
type PageFault = z.output<typeof pageFault>;

const drawing = z.object({
  kind: z.string(),
  width: z.number(),
  height: z.number(),
  svg: z.string(),
  outside: z.array(z.string()),
  icons: z.array(z.string()),
  formulas: z.boolean(),
  covered: z.array(z.tuple([z.string(), z.string()])),
  logged: z.array(z.string()),
});
const pageOutcome = z.union([z.object({ fault: pageFault, outside: z.array(z.string()).optional() }), drawing]);
type Drawing = z.output<typeof drawing>;

export async function drawMermaid(
  page: Page,
  { source, layout: requested, ...wanted }: Extract<BrowserTask, { readonly kind: 'mermaid' }>,
): Promise<Picture> {
  const layout = requested === undefined ? undefined : parseLayout('Mermaid', requested, ['elk', 'dagre']);
  const task = toScriptLiteral({ source, layout, icons: collectIcons(source) });
  const made = await page.evaluate(`drawDiagram(${task})`, pageOutcome);
  assertNothingOutside([...(made.outside ?? []), ...page.refused]);
  if ('fault' in made) throw toMermaidProblem(source, made.fault);
  assertIconsKnown(made.icons);
  const { kind, logged, covered } = made;
  const warnings = collectNotes(source, { kind, layout, logged, covered });
  return wanted.format === 'svg'
    ? toSvgPicture(made, warnings)
    : toPngPicture(page, made, { scale: wanted.scale, warnings });
}

function toSvgPicture(made: Drawing, warnings: readonly string[]): Picture {
  if (made.formulas)
    throw new Problem(
      unprocessable,
      'Formulas ($$…$$) cannot be written as SVG that viewers other than browsers draw. Use format=png.',
    );
  return drawPicture(made.svg, { format: 'svg', scale: 1 }, warnings);
}

/** Uses the browser's own picture: it has the fonts that mermaid measured with, and colour emoji. */
async function toPngPicture(
  page: Page,
  { width, height, svg }: Drawing,
  { scale, warnings }: { scale: number; warnings: readonly string[] },
): Promise<Picture> {
  // Check as SVG, so that both formats reject and remove the same.
  const checked = drawPicture(svg, { format: 'svg', scale: 1 }, warnings);
  return { ...(await takeScreenshot(page, { width, height }, scale)), warnings: checked.warnings };
}

function assertNothingOutside(addresses: readonly string[]): void {
  const [first] = addresses;
  if (first === undefined) return;
  throw new Problem(
    unprocessable,
    `The diagram names an image from outside: ${first.slice(0, 200)}. Nothing is loaded; give the image as a data: URL (png, jpeg, gif or webp), or leave it out.`,
  );
}

function assertIconsKnown(names: readonly string[]): void {
  const [first] = names;
  if (first === undefined) return;
  const what = first.includes(':') ? 'icon' : 'icon set';
  throw new Problem(
    unprocessable,
    `There is no ${what} ${first.slice(0, 100)}. Available: Font Awesome 6 Free (fa:, fas:, far:, fab:), and in architecture diagrams cloud, database, disk, internet and server.`,
  );
}

/** What mermaid removes before it parses (front matter, directives, comments), in its order. */
const removedPatterns = [
  /^-{3}\s*[\n\r](?:.*?)[\n\r]-{3}\s*[\n\r]+/s,
  /%{2}{\s*(?:(\w+)\s*:|(\w+))\s*(?:(\w+)|((?:(?!}%{2}).|\r?\n)*))?\s*(?:}%{2})?/gi,
  /(?:^|(?<=\ue001))\s*%%(?!{)[^\n]+\n?/gm,
  /^[\s\ue000\ue001]+/,
];
/**
 * Private-use characters that stand for a removed character and a removed line break. Sources are cleared of them
 * first.
 */
const removedCharacter = '\ue000';
const removedBreak = '\ue001';

/** Finds the line of the source that became a line of the parsed text. */
export function findSourceLine(source: string, parsedLine: number): number {
  const text = removedPatterns.reduce(
    (rest, pattern) =>
      rest.replace(pattern, (found) => found.replace(/[^\n\ue001]/g, removedCharacter).replace(/\n/g, removedBreak)),
    source.replace(/[\ue000\ue001]/g, ' ').replace(/\r\n?/g, '\n'),
  );
  let parsed = 1;
  let line = 1;
  for (const character of text) {
    if (parsed === parsedLine && character !== removedCharacter && character !== removedBreak) break;
    if (character === '\n') parsed += 1;
    if (character === '\n' || character === removedBreak) line += 1;
  }
  return Math.min(line, source.trimEnd().split(/\r\n?|\n/).length);
}

/** Finds the first line with the text that a message quotes. */
function findLineWith(source: string, message: string, text: string | undefined): number | undefined {
  const clue = text ?? /"([^"]+)"/.exec(message)?.[1] ?? /: (\S+?)\.?$/.exec(message)?.[1] ?? '';
  const at = source.split(/\r\n?|\n/).findIndex((line) => line.includes(clue.trim()));
  return clue.trim() === '' || at < 0 ? undefined : at + 1;
}

export function toMermaidProblem(source: string, { name, message, line: given, text: clue }: PageFault): Problem {
  if (name === 'Empty')
    return createSyntaxFault('Mermaid', 'it has a heading but nothing to draw. Add what the diagram is to show.');
  if (name === 'UnknownDiagramError' || message.startsWith('No diagram type detected'))
    return createSyntaxFault('Mermaid', `no diagram type is known by its beginning: ${findBeginning(source)}`, 1);
  const parsedLine = given ?? Number(/(?:on|at|in) line:? (\d+)/i.exec(message)?.[1] ?? 0);
  const words = simplifyMessage(message).replace(
    /\b(on|at|in) line:? (\d+)/gi,
    (_, word: string, at: string) => `${word} line ${findSourceLine(source, Number(at))}`,
  );
  const line = parsedLine === 0 ? findLineWith(source, message, clue) : findSourceLine(source, parsedLine);
  if (line === undefined) return createSyntaxFault('Mermaid', words);
  return createSyntaxFault('Mermaid', `${words} (in ${JSON.stringify(readLine(source, line))})`, line);
}

function readLine(source: string, line: number): string {
  const lines = source.split(/\r\n?|\n/);
  return (lines[line - 1] ?? '').trim().slice(0, 100);
}

/** Drops the source excerpt, since the line is named, and shortens the list of expected tokens. */
function simplifyMessage(message: string): string {
  const [, kind = '', rest = ''] = /^(Parse|Lexical) error on line \d+[:.]?([\s\S]*)$/i.exec(message) ?? [];
  if (kind === '') return message;
  const got = /Expecting ([\s\S]*?), got '([^']*)'/.exec(rest);
  if (got === null) return kind === 'Lexical' ? 'unrecognized text' : rest.trim();
  const expected = (got[1] ?? '').split(', ');
  const few = expected.length > 8 ? `${expected.slice(0, 8).join(', ')} or others` : expected.join(', ');
  return `unexpected '${got[2] ?? ''}'; expected ${few}`;
}

function findBeginning(source: string): string {
  const first = source.split('\n').find((text) => text.trim() !== '' && !/^\s*(%%|---)/.test(text));
  return (first ?? '').trim().slice(0, 80);
}

export interface MermaidResult {
  /** mermaid's own name for the kind of diagram. */
  readonly kind: string;
  readonly layout: string | undefined;
  /** Errors that mermaid logged. */
  readonly logged: readonly string[];
  /** Texts that overlap. */
  readonly covered: readonly (readonly [string, string])[];
}

/** Kinds that a layout engine lays out; each other kind has one fixed layout. */
const laidOutKinds = /^(flowchart|class|state|er|requirement|mindmap|swimlane|usecase|agentflow)/i;

/** Settings that mermaid ignores in a source. */
const fixedSettings =
  /["']?\b(secure|securityLevel|startOnLoad|maxTextSize|suppressErrorRendering|maxEdges|deterministicIds|deterministicIDSeed|dompurifyConfig|logLevel|htmlLabels)\b["']?\s*:/g;

export function collectNotes(source: string, { kind, layout, logged, covered }: MermaidResult): string[] {
  const ignored = new Set([...readHead(source).matchAll(fixedSettings)].map(([, name = '']) => name));
  const other = new Set(logged.filter((words) => !/icon/i.test(words)));
  return [
    ...findClicks(source).map((name) => `What a click on ${name} does is left out: a picture runs no code.`),
    ...[...ignored].map((name) => `The setting ${name} is ignored: it cannot be changed here.`),
    ...(layout === undefined || laidOutKinds.test(kind)
      ? []
      : [`layout has no effect on diagrams of the kind ${kind}.`]),
    ...[...other].map((words) => `mermaid reports: ${words.slice(0, 300)}`),
    ...covered.map(
      ([one, two]) => `mermaid has laid out "${one.slice(0, 60)}" and "${two.slice(0, 60)}" over each other.`,
    ),
  ];
}

/** Finds nodes whose click is not a link. */
function findClicks(source: string): string[] {
  const clicks = [...source.matchAll(/^[ \t]*(?:click|callback)[ \t]+("[^"]*"|\S+)[ \t]+(.*)$/gm)];
  return clicks.filter(([, , rest = '']) => !/https?:\/\/|mailto:/i.test(rest)).map(([, name = '']) => name);
}

/** Returns front matter and directives. */
function readHead(source: string): string {
  const front = /^\uFEFF?\s*---\r?\n[\s\S]*?\r?\n\s*---/.exec(source)?.[0] ?? '';
  return [front, ...(source.match(/%%\{[\s\S]*?\}%%/g) ?? [])].join('\n');
}

const packFile = z.looseObject({
  icons: z.record(
    z.string(),
    z.object({ body: z.string(), width: z.number().optional(), height: z.number().optional() }),
  ),
  aliases: z.record(z.string(), z.object({ parent: z.string() })).default({}),
  width: z.number().optional(),
  height: z.number().optional(),
});
type PackFile = z.output<typeof packFile>;

/**
 * Packs by prefix, as Font Awesome and mermaid's documentation abbreviate them. The first pack that has the icon
 * provides it.
 */
const packNames: Readonly<Record<string, readonly string[]>> = {
  fa: ['fa6-solid', 'fa6-regular', 'fa6-brands'],
  fas: ['fa6-solid'],
  far: ['fa6-regular'],
  fab: ['fa6-brands'],
};

const loadedPacks = new Map<string, PackFile>();

function loadPack(name: string): PackFile {
  const known = loadedPacks.get(name);
  if (known !== undefined) return known;
  const file = fileURLToPath(import.meta.resolve(`@iconify-json/${name}/icons.json`));
  const made = packFile.parse(JSON.parse(readFileSync(file, 'utf8')));
  loadedPacks.set(name, made);
  return made;
}

export interface IconPack {
  readonly prefix: string;
  readonly icons: Readonly<Record<string, { readonly body: string }>>;
}

/** Only the icons that are named: a page need not parse thousands. */
export function collectIcons(source: string): readonly IconPack[] {
  const wanted = Object.keys(packNames).map((prefix) => ({
    prefix,
    icons: new Map<string, PackFile['icons'][string]>(),
  }));
  for (const [, prefix = '', name = ''] of source.matchAll(/\b(fa[srb]?):(?:fa-)?([a-z0-9][a-z0-9-]*)/g)) {
    const icon = findIcon(packNames[prefix] ?? [], name);
    if (icon === undefined) continue;
    // In labels mermaid reads fa:fa-car as fa-car, elsewhere as car.
    const into = wanted.find((each) => each.prefix === prefix)?.icons;
    into?.set(name, icon).set(`fa-${name}`, icon);
  }
  return wanted.map(({ prefix, icons }) => ({ prefix, icons: Object.fromEntries(icons) }));
}

function findIcon(names: readonly string[], name: string): PackFile['icons'][string] | undefined {
  for (const each of names) {
    const { icons, aliases, width, height } = loadPack(each);
    const icon = icons[name] ?? icons[aliases[name]?.parent ?? ''];
    if (icon !== undefined) return { width, height, ...icon };
  }
  return undefined;
}
