// The tool render_diagram: draws a diagram from its source text.
import { z } from 'zod';
import { languageOf } from './language.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { artifactOf, formatField, picture, pictureFields, scaleField } from '../../svg/picture.ts';
import { defineTool, type Tool } from '../../tool.ts';

/**
 * D2 is 22 MB of WebAssembly of which a drawing runs little: started quickly it takes a third of the time, in half the
 * memory.
 */
const workers = {
  graphviz: { module: new URL('graphviz.ts', import.meta.url), memoryMb: 256 },
  d2: { module: new URL('d2.ts', import.meta.url), memoryMb: 640, quickStart: true },
  mermaid: { module: new URL('mermaid.ts', import.meta.url), memoryMb: 256 },
};

const layouts = ['dot', 'neato', 'fdp', 'sfdp', 'circo', 'twopi', 'osage', 'patchwork', 'dagre', 'elk'] as const;

export function renderDiagramTool(services: ToolDependencies): Tool {
  return defineTool({
    name: 'render_diagram',
    title: 'Render a diagram',
    description:
      'Draws a diagram from source text in Graphviz (DOT), D2 or Mermaid, and returns an SVG or PNG file. Graphviz and D2 run their own engines. Mermaid is drawn by beautiful-mermaid, so the look differs from mermaid.js; it supports flowchart, sequence, class, state, ER and xychart diagrams. Syntax errors are reported with their line where the engine names it. Images and files that the source refers to are not loaded.',
    input: z.strictObject({
      source: z.string().min(1).max(100_000).describe('Source text of the diagram, up to 100,000 characters.'),
      kind: z
        .enum(['graphviz', 'dot', 'd2', 'mermaid'])
        .optional()
        .describe('Language of the source. Default: detected from its beginning.'),
      format: formatField,
      layout: z
        .enum(layouts)
        .optional()
        .describe(
          'Layout engine. Graphviz: dot (default), neato, fdp, sfdp, circo, twopi, osage or patchwork. D2: dagre (default) or elk. Do not set it for Mermaid, which has one layout.',
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
      const kind = languageOf(source, named);
      const made = picture.parse(
        await services.workers.run(
          {
            ...workers[kind],
            input: { source, layout, format, scale },
            timeoutMs: 15_000,
          },
          context,
        ),
      );
      const { width, height, warnings } = made;
      return { result: { kind, format, width, height, warnings }, artifact: artifactOf(made, 'diagram') };
    },
  });
}
