// Brings the pictures of an outline onto its slides: images from outside, or of an earlier call, and drawings of our own
// tools.
import { z } from 'zod';
import { Problem } from '../../../../lib/problem.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { readFile } from '../../inputs/file-reader.ts';
import { unknownFile } from '../../engine/artifacts/problems.ts';
import { fetchProblems } from '../../fetch/problems.ts';
import { toolLimit, unprocessable } from '../../problems.ts';
import type { ToolContext } from '../../tool.ts';
import type { Picture } from '../../svg/picture.ts';
import { drawChart } from '../make-chart/draw-chart.ts';
import { drawDiagram } from '../render-diagram/draw-diagram.ts';
import type { Block, Deck, OutlineBlock, OutlineDeck, PictureBlock, Slide } from './deck.ts';

const maxPictures = 20;
const maxBytes = 20_000_000;
/** What all pictures of a deck may have together. */
const maxTotalBytes = 40_000_000;
/** Pixels of a side: more than a screen shows. */
const side = 2_000;

type Services = Pick<ToolDependencies, 'workers' | 'fetcher' | 'artifacts' | 'baseUrl'>;

/**
 * A picture that cannot be fetched becomes a placeholder. @throws Problem that names the slide and the picture with any
 * other fault
 */
export async function withPictures(
  { slides, ...head }: OutlineDeck,
  services: Services,
  context: ToolContext,
): Promise<{ deck: Deck; warnings: string[] }> {
  const warnings: string[] = [];
  let pictures = 0;
  let bytes = 0;
  const made: Slide[] = [];
  for (const [index, slide] of slides.entries()) {
    if (slide.layout === 'section') {
      made.push(slide);
      continue;
    }
    const columns = [];
    for (const { heading, blocks } of slide.columns) {
      const found: Block[] = [];
      for (const block of blocks) {
        const ready = isPicture(block)
          ? await named(index + 1, slide.title, () => pictureOf(block, services, context, warnings)).catch(
              (error: unknown) => placeholderFor(block, error, warnings),
            )
          : block;
        if (ready.kind === 'picture') {
          pictures += 1;
          bytes += ready.bytes.length;
        }
        if (pictures > maxPictures || bytes > maxTotalBytes)
          throw new Problem(
            toolLimit,
            `The outline has more than ${maxPictures} pictures, or they are larger than ${maxTotalBytes / 1e6} MB together.`,
          );
        found.push(ready);
      }
      columns.push({ heading, blocks: found });
    }
    made.push({ ...slide, columns });
  }
  return { deck: { ...head, slides: made }, warnings };
}

type Pictured = Extract<OutlineBlock, { kind: 'image' | 'drawing' }>;

function isPicture(block: OutlineBlock): block is Pictured {
  return block.kind === 'image' || block.kind === 'drawing';
}

async function named(
  number: number,
  title: string | undefined,
  make: () => Promise<PictureBlock>,
): Promise<PictureBlock> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const [first] = error.errors;
    const words = first === undefined ? error.message : `${first.field} ${first.message}. ${first.fix}`;
    throw new Problem(error.type, `Slide ${number} (${JSON.stringify(title ?? '')}): ${words}`, {
      members: error.members,
      cause: error,
    });
  }
}

/** What a picture that cannot be had leaves on its slide; the others are still worth the deck. */
const missing = [...fetchProblems, unknownFile];

/** A text instead of a picture, and a warning. @throws the error where the picture itself is at fault */
function placeholderFor(block: Pictured, error: unknown, warnings: string[]): OutlineBlock & { readonly kind: 'text' } {
  if (block.kind !== 'image' || !(error instanceof Problem) || !missing.includes(error.type)) throw error;
  warnings.push(`${error.message} A placeholder stands in its place.`);
  const name = block.alt.trim() === '' ? 'without a description' : block.alt.trim();
  const text = `[Picture not available: ${name}]`.slice(0, 600);
  return { kind: 'text', lines: [{ text, level: 0, isParagraph: true }] };
}

function pictureOf(
  block: Pictured,
  services: Services,
  context: ToolContext,
  warnings: string[],
): Promise<PictureBlock> {
  return block.kind === 'image' ? imageOf(block, services, context) : drawingOf(block, services, context, warnings);
}

const converted = z.object({ image: z.instanceof(Uint8Array), width: z.int(), height: z.int() });

async function imageOf(
  { href, alt }: Extract<Pictured, { kind: 'image' }>,
  services: Services,
  context: ToolContext,
): Promise<PictureBlock> {
  const given = /^data:/i.test(href) ? { data: href } : /^https?:\/\//i.test(href) ? { url: href } : { artifact: href };
  const { bytes, mediaType } = await readFile(services, given, { maxBytes, accept: 'image/*', signal: context.signal });
  if (mediaType === 'image/svg+xml')
    throw new Problem(
      unprocessable,
      `The image ${href.slice(0, 100)} is SVG. Send it as PNG or JPEG; render_diagram and make_chart make PNG with format png.`,
    );
  const format = mediaType === 'image/jpeg' ? ('jpeg' as const) : ('png' as const);
  const { image, width, height } = converted.parse(
    await services.workers.run(
      {
        module: new URL('../convert-image/image-worker.ts', import.meta.url),
        input: { bytes, format, width: side, height: side, fit: 'inside', quality: 88, noEnlargement: true },
        timeoutMs: 30_000,
        memoryMb: 512,
      },
      context,
    ),
  );
  return { kind: 'picture', bytes: image, mediaType: `image/${format}`, width, height, alt };
}

async function drawingOf(
  { language, source }: Extract<Pictured, { kind: 'drawing' }>,
  { workers }: Services,
  context: ToolContext,
  warnings: string[],
): Promise<PictureBlock> {
  const options = { format: 'png' as const, scale: 2 };
  const made =
    language === 'chart'
      ? (await drawChart(workers, { spec: jsonOf(source) }, options, context)).made
      : await drawDiagram(workers, { kind: diagramKind.parse(language), source, layout: undefined }, options, context);
  warnings.push(...made.warnings);
  return asPicture(made, `${language} drawn from its source`);
}

const diagramKind = z.enum(['mermaid', 'd2', 'graphviz']);

function jsonOf(source: string): Record<string, unknown> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(source));
  } catch (error) {
    throw new Problem(
      unprocessable,
      `The chart is not a JSON object such as {"type": "bar", "labels": ["a"], "values": [1]}: ${error instanceof Error ? error.message.slice(0, 200) : ''}`,
    );
  }
}

function asPicture({ bytes, width, height }: Picture, alt: string): PictureBlock {
  return { kind: 'picture', bytes, mediaType: 'image/png', width, height, alt };
}
