// Draws D2 with its own engine (WebAssembly). Runs in a worker process.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { D2, type CompileOptions, type Diagram } from '@terrastruct/d2';
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import { draw } from '../../svg/draw.ts';
import type { Picture } from '../../svg/picture.ts';
import { fault, layoutOf, type DiagramTask } from './layout.ts';

const d2 = new D2();

const arimo = (weight: string): string =>
  readFileSync(fileURLToPath(import.meta.resolve(`@expo-google-fonts/arimo/${weight}/Arimo_${weight}.ttf`))).toString(
    'base64',
  );
/** The fonts with which PNG is drawn too. D2 takes them as base64, whatever its types say. */
const fonts = {
  fontRegular: arimo('400Regular'),
  fontItalic: arimo('400Regular_Italic'),
  fontBold: arimo('700Bold'),
  fontSemibold: arimo('600SemiBold'),
} as unknown as CompileOptions;

export default async function render({ source, layout, ...wanted }: DiagramTask): Promise<Picture> {
  const options = { ...fonts, layout: layoutOf('D2', layout, ['dagre', 'elk']), pad: 20, scale: 1 };
  const svg = await svgOf(source, options);
  return draw(svg, wanted, [], withPlainFonts);
}

/** Boards beside the first are other pictures. */
function refuseBoards(diagram: Diagram): void {
  const found = (['layers', 'scenarios', 'steps'] as const).find((name) => (diagram[name] ?? []).length > 0);
  if (found === undefined) return;
  throw new Problem(
    unprocessable,
    `D2: ${found} are boards of their own, and one picture has one board. Send each board as a source of its own.`,
  );
}

async function svgOf(source: string, options: CompileOptions): Promise<string> {
  try {
    const { diagram, renderOptions } = await d2.compile({ fs: { index: source }, options });
    refuseBoards(diagram);
    return await d2.render(diagram, { ...renderOptions, pad: 20, scale: 1, noXMLTag: true });
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw faultOf(error instanceof Error ? error.message : String(error));
  }
}

const faults = z.array(z.object({ errmsg: z.string() })).min(1);

/** D2 reports its faults as JSON text; each begins with file, line and column. */
function faultOf(words: string): Error {
  try {
    const all = faults.parse(JSON.parse(words)).map(({ errmsg }) => errmsg.replace(/^index:/, ''));
    const line = /^(\d+):/.exec(all[0] ?? '')?.[1];
    return fault(
      'D2',
      all
        .slice(0, 5)
        .join('; ')
        .replace(/^\d+:(\d+):/, 'column $1:'),
      line === undefined ? undefined : Number(line),
    );
  } catch {
    return fault('D2', words);
  }
}

/** D2 names its fonts after the diagram and brings them as web fonts, which resvg does not draw with. */
function withPlainFonts(svg: string): string {
  const styles: Readonly<Record<string, string>> = {
    bold: 'Arimo; font-weight: 700',
    semibold: 'Arimo; font-weight: 600',
    italic: 'Arimo; font-style: italic',
    regular: 'Arimo',
  };
  return svg
    .replace(/@font-face\s*\{[^}]*\}/g, '')
    .replace(
      /font-family:\s*"?d2-\d+-font-([a-z]+)(-[a-z]+)?"?/g,
      (_, style: string) => `font-family: ${styles[style] ?? '"DejaVu Sans Mono"'}`,
    );
}
