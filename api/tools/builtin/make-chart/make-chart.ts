// The tool make_chart: draws a chart from type, labels and values, or from a Vega-Lite or Vega specification.
import { z } from 'zod';
import { jsonField, listField } from '../../engine/json-field.ts';
import { requireOne } from '../../inputs/field-rules.ts';
import type { ToolDependencies } from '../../engine/tool-dependencies.ts';
import { artifactOf, pictureFields, scaleField } from '../../svg/picture.ts';
import { defineTool, type Tool } from '../../tool.ts';
import { drawChart } from './draw-chart.ts';
import { chartType } from './plain-chart.ts';

const text = z.string().max(1_000);

export function makeChartTool({ workers }: ToolDependencies): Tool {
  return defineTool({
    name: 'make_chart',
    title: 'Make a chart',
    description:
      'Draws a chart from type, labels and values (or series), or from a Vega-Lite specification (Vega if its $schema says so) with its data in data.values: nothing is loaded. Unknown fields and properties, missing data and empty marks are refused by name, free of charge. Returns a PNG or SVG file of up to 8000 pixels per side before scaling.',
    input: z.strictObject({
      type: chartType.optional().describe('Kind of a plain chart. Default: bar.'),
      labels: listField(z.unknown()).optional().describe('Names or dates, one per value.'),
      values: listField(z.unknown()).optional().describe('Numbers or null; for scatter also [[x, y], …].'),
      series: listField(z.unknown())
        .optional()
        .describe('{"name": [1, 2]} or [{"name": …, "values": [1, 2]}], instead of values.'),
      title: text.optional().describe('Title.'),
      x_label: text.optional().describe('Title of the x axis.'),
      y_label: text.optional().describe('Title of the y axis.'),
      spec: jsonField(z.record(z.string(), z.unknown(), { error: 'must be a Vega-Lite specification: a JSON object' }))
        .optional()
        .describe(
          'Vega-Lite specification with its data, as a JSON object (not as text); alternative to type, labels and values.',
        ),
      format: z.enum(['svg', 'png']).default('png').describe('Picture format: png (default) or svg.'),
      scale: scaleField,
    }),
    aliases: {
      vega: 'spec',
      vega_lite: 'spec',
      specification: 'spec',
      chart: 'spec',
      kind: 'type',
      chart_type: 'type',
      categories: 'labels',
      data: 'values',
      datasets: 'series',
      xlabel: 'x_label',
      ylabel: 'y_label',
      x_title: 'x_label',
      y_title: 'y_label',
    },
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
    async run({ spec, format, scale, ...plain }, context) {
      const given = Object.fromEntries(Object.entries(plain).filter(([, value]) => value !== undefined));
      const isPlain = Object.keys(given).length > 0;
      requireOne(['spec', isPlain ? (Object.keys(given)[0] ?? 'values') : 'values'], { spec, ...given });
      const { made, language } = await drawChart(workers, { spec: spec ?? given, isPlain }, { format, scale }, context);
      const { width, height, warnings } = made;
      return { result: { format, width, height, warnings, language }, artifact: artifactOf(made, 'chart') };
    },
  });
}
