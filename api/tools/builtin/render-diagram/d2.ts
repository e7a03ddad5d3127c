// Draws D2 with its own engine (WebAssembly). Runs in a worker process.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { D2, type CompileOptions, type Diagram } from '@terrastruct/d2';
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import { unprocessable } from '../../problems.ts';
import { drawPicture } from '../../svg/draw.ts';
import type { Picture } from '../../svg/picture.ts';
import { createSyntaxFault, parseLayout, type DiagramTask } from './language.ts';

const d2 = new D2();

const readArimo = (weight: string): string =>
  readFileSync(fileURLToPath(import.meta.resolve(`@expo-google-fonts/arimo/${weight}/Arimo_${weight}.ttf`))).toString(
    'base64',
  );
/** The same fonts as for PNG. D2 expects base64, whatever its types say. */
const fonts = {
  fontRegular: readArimo('400Regular'),
  fontItalic: readArimo('400Regular_Italic'),
  fontBold: readArimo('700Bold'),
  fontSemibold: readArimo('600SemiBold'),
} as unknown as CompileOptions;

export default async function render({ source, layout, ...wanted }: DiagramTask): Promise<Picture> {
  const options = { ...fonts, layout: parseLayout('D2', layout, ['dagre', 'elk']), pad: 20, scale: 1 };
  const svg = await drawSvg(source, options);
  return drawPicture(svg, wanted, [], replaceFonts);
}

/** Further boards would be further pictures. */
function assertSingleBoard(diagram: Diagram): void {
  const found = (['layers', 'scenarios', 'steps'] as const).find((name) => (diagram[name] ?? []).length > 0);
  if (found === undefined) return;
  throw new Problem(
    unprocessable,
    `D2: ${found} are boards of their own, and one picture has one board. Send each board as a source of its own.`,
  );
}

async function drawSvg(source: string, options: CompileOptions): Promise<string> {
  try {
    const { diagram, renderOptions } = await d2.compile({ fs: { index: source }, options });
    assertSingleBoard(diagram);
    return await d2.render(diagram, { ...renderOptions, pad: 20, scale: 1, noXMLTag: true });
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw toFault(error instanceof Error ? error.message : String(error));
  }
}

const d2Errors = z.array(z.object({ errmsg: z.string() })).min(1);

/** D2 reports errors as JSON; each begins with file, line and column. */
function toFault(words: string): Error {
  try {
    const all = d2Errors.parse(JSON.parse(words)).map(({ errmsg }) => errmsg.replace(/^index:/, ''));
    const line = /^(\d+):/.exec(all[0] ?? '')?.[1];
    return createSyntaxFault(
      'D2',
      all
        .slice(0, 5)
        .join('; ')
        .replace(/^\d+:(\d+):/, 'column $1:'),
      line === undefined ? undefined : Number(line),
    );
  } catch {
    return createSyntaxFault('D2', words);
  }
}

/** D2 names its fonts after the diagram and embeds them as web fonts, which resvg does not support. */
function replaceFonts(svg: string): string {
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
