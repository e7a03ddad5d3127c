// The tool make_chart: draws a chart from a Vega-Lite or Vega specification.
import { z } from 'zod';
import { jsonField } from '../../engine/json-field.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { makePicture } from '../../svg/make-picture.ts';
import { artifactOf, pictureFields, scaleField } from '../../svg/picture.ts';
import { defineTool, type Tool } from '../../tool.ts';

const module = new URL('worker.ts', import.meta.url);

export function makeChartTool({ workers }: ToolDependencies): Tool {
  return defineTool({
    name: 'make_chart',
    title: 'Make a chart',
    description:
      'Draws a chart from a Vega-Lite specification, or from a Vega specification if its $schema says so. Put the data into the specification (data.values): URLs of data, images and maps are not loaded. Returns a PNG or SVG file of up to 8000 pixels per side before scaling.',
    input: z.strictObject({
      spec: jsonField(
        z.record(z.string(), z.unknown(), { error: 'must be a Vega-Lite specification: a JSON object' }),
      ).describe('Vega-Lite specification with its data, as JSON or JSON text.'),
      format: z.enum(['svg', 'png']).default('png').describe('Picture format: png (default) or svg.'),
      scale: scaleField,
    }),
    aliases: { vega: 'spec', vega_lite: 'spec', specification: 'spec', chart: 'spec', type: 'format' },
    output: z.object({
      ...pictureFields,
      language: z.enum(['vega-lite', 'vega']).describe('Language the specification was read as.'),
    }),
    example: {
      spec: {
        data: {
          values: [
            { month: 'Jan', sales: 28 },
            { month: 'Feb', sales: 55 },
            { month: 'Mar', sales: 43 },
          ],
        },
        mark: 'bar',
        encoding: { x: { field: 'month', type: 'ordinal', sort: null }, y: { field: 'sales', type: 'quantitative' } },
      },
    },
    price: '0.0001',
    artifacts: ['image/png', 'image/svg+xml'],
    openWorld: false,
    async run({ spec, format, scale }, context) {
      const language: 'vega' | 'vega-lite' =
        typeof spec['$schema'] === 'string' && /\/schema\/vega\/v\d/.test(spec['$schema']) ? 'vega' : 'vega-lite';
      const task = { module, input: { spec, language, format, scale }, timeoutMs: 10_000 };
      const made = await makePicture(workers, task, context, { format, scale });
      const { width, height, warnings } = made;
      return { result: { format, width, height, warnings, language }, artifact: artifactOf(made, 'chart') };
    },
  });
}
