// Draws Mermaid diagrams with mermaid itself, in a page of the browser's worker.
import { z } from 'zod';
import { Problem } from '../../../../../lib/problem.ts';
import type { Page } from '../../../browser/page.ts';
import { literal, screenshotOf } from '../../../browser/svg.ts';
import type { BrowserTask } from '../../../browser/task.ts';
import { unprocessable } from '../../../problems.ts';
import { draw } from '../../../svg/draw.ts';
import type { Picture } from '../../../svg/picture.ts';
import { layoutOf } from '../layout.ts';
import { faultOf, fault as pageFault } from './faults.ts';
import { iconsFor } from './icons.ts';
import { notesOn } from './notes.ts';

const drawn = z.object({
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
const outcome = z.union([z.object({ fault: pageFault, outside: z.array(z.string()).optional() }), drawn]);
type Drawing = z.output<typeof drawn>;

export async function drawMermaid(
  page: Page,
  { source, layout: asked, ...wanted }: Extract<BrowserTask, { readonly kind: 'mermaid' }>,
): Promise<Picture> {
  const layout = asked === undefined ? undefined : layoutOf('Mermaid', asked, ['elk', 'dagre']);
  const task = literal({ source, layout, icons: iconsFor(source) });
  const made = await page.evaluate(`drawDiagram(${task})`, outcome);
  refuseOutside([...(made.outside ?? []), ...page.refused]);
  if ('fault' in made) throw faultOf(source, made.fault);
  refuseIcons(made.icons);
  const { kind, logged, covered } = made;
  const warnings = notesOn(source, { kind, layout, logged, covered });
  return wanted.format === 'svg' ? asSvg(made, warnings) : asPng(page, made, { scale: wanted.scale, warnings });
}

function asSvg(made: Drawing, warnings: readonly string[]): Picture {
  if (made.formulas)
    throw new Problem(
      unprocessable,
      'Formulas ($$…$$) cannot be written as SVG that viewers other than browsers draw. Use format=png.',
    );
  return draw(made.svg, { format: 'svg', scale: 1 }, warnings);
}

/** The browser's own picture: it has the fonts by which mermaid has measured, and colour emoji. */
async function asPng(
  page: Page,
  { width, height, svg }: Drawing,
  { scale, warnings }: { scale: number; warnings: readonly string[] },
): Promise<Picture> {
  // What is refused or removed in one format is in the other.
  const checked = draw(svg, { format: 'svg', scale: 1 }, warnings);
  return { ...(await screenshotOf(page, { width, height }, scale)), warnings: checked.warnings };
}

function refuseOutside(addresses: readonly string[]): void {
  const [first] = addresses;
  if (first === undefined) return;
  throw new Problem(
    unprocessable,
    `The diagram names an image from outside: ${first.slice(0, 200)}. Nothing is loaded; give the image as a data: URL (png, jpeg, gif or webp), or leave it out.`,
  );
}

function refuseIcons(names: readonly string[]): void {
  const [first] = names;
  if (first === undefined) return;
  const what = first.includes(':') ? 'icon' : 'icon set';
  throw new Problem(
    unprocessable,
    `There is no ${what} ${first.slice(0, 100)}. Available: Font Awesome 6 Free (fa:, fas:, far:, fab:), and in architecture diagrams cloud, database, disk, internet and server.`,
  );
}
