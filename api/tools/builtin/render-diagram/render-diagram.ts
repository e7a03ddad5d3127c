// The tool render_diagram: draws a diagram from its source text.
import { z } from 'zod';
import { detectDiagram, type DiagramLanguage } from './language.ts';
import type { ToolDependencies } from '../../tool.ts';
import { toArtifact, formatField, pictureFields, scaleField, type Picture } from '../../svg/picture.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { createBrowserTask } from '../../svg/picture.ts';
import type { WorkerCall, Workers } from '../../engine/workers/workers.ts';
import type { PictureOptions } from '../../svg/draw.ts';
import { makePicture } from '../../svg/picture.ts';

const layouts = ['dot', 'neato', 'fdp', 'sfdp', 'circo', 'twopi', 'osage', 'patchwork', 'dagre', 'elk'] as const;

export function createRenderDiagramTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'render_diagram',
    title: 'Render a diagram',
    description:
      'Draws a diagram from source text in Mermaid, D2 or Graphviz (DOT), and returns an SVG or PNG file. Each language is drawn by its own engine: Mermaid by mermaid 12 in a browser, with all of its kinds (flowchart, sequence, class, state, ER, gantt, pie, mindmap, gitGraph, timeline, journey, quadrant, C4, xychart, sankey, block, packet, kanban, architecture, radar, treemap, requirement and more). Syntax errors are reported with their line. Source that cannot be drawn is rejected, and omitted parts are listed in warnings (with raw=1 in the header x-warnings). External images are rejected: nothing is loaded.',
    input: z.strictObject({
      source: z
        .string()
        .min(1)
        .max(100_000)
        .describe('Source text of the diagram, up to 100,000 characters. One fenced block (```mermaid) is unwrapped.'),
      kind: z
        .enum(['graphviz', 'dot', 'd2', 'mermaid'])
        .optional()
        .describe('Language of the source. Default: detected; a source whose language is uncertain is rejected.'),
      format: formatField,
      layout: z
        .enum(layouts)
        .optional()
        .describe(
          'Layout engine. D2: dagre (default) or elk. Mermaid: elk (default) or dagre. Graphviz: one of the others, by default dot.',
        ),
      scale: scaleField,
    }),
    aliases: {
      engine: 'kind',
      type: 'kind',
      lang: 'kind',
      language: 'kind',
      code: 'source',
      diagram: 'source',
      text: 'source',
      dot: 'source',
      output: 'format',
    },
    output: z.object({
      kind: z.enum(['graphviz', 'd2', 'mermaid']).describe('Language the source was read as.'),
      ...pictureFields,
    }),
    example: { source: 'digraph { rankdir=LR; Question -> Search -> Answer }', kind: 'graphviz', format: 'svg' },
    price: '0.0001',
    artifacts: ['image/svg+xml', 'image/png'],
    openWorld: false,
    async run({ source, kind: named, format, layout, scale }, context) {
      const { language: kind, text, warnings: notes } = detectDiagram(source, named);
      const made = await drawDiagram(services.workers, { kind, source: text, layout }, { format, scale }, context);
      const { width, height, warnings } = made;
      return {
        result: { kind, format, width, height, warnings: [...notes, ...warnings] },
        artifact: toArtifact(made, 'diagram'),
      };
    },
  });
}

/**
 * D2 is 22 MB of WebAssembly, of which a drawing runs little: with quickStart it takes a third of the time and half the
 * memory. It takes a second to start, so its process is kept warm.
 */
const engines = {
  graphviz: { module: new URL('graphviz.ts', import.meta.url), memoryMb: 256 },
  d2: { module: new URL('d2.ts', import.meta.url), memoryMb: 640, quickStart: true, warm: true },
};

export interface DiagramSource {
  readonly kind: DiagramLanguage;
  readonly source: string;
  readonly layout: string | undefined;
}

/** Draws a diagram in a worker; also used for diagrams on slides. @throws Problem (unprocessable, tool-limit) */
export function drawDiagram(
  workers: Workers,
  { kind, source, layout }: DiagramSource,
  { format, scale }: PictureOptions,
  call: WorkerCall,
): Promise<Picture> {
  const task =
    kind === 'mermaid'
      ? createBrowserTask({ kind, source, layout, format, scale })
      : { ...engines[kind], input: { source, layout, format, scale }, timeoutMs: 15_000 };
  return makePicture(workers, task, call, { format, scale });
}
