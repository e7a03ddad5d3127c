// The tool compare_models: one prompt to several models in parallel, as POST /api/compare.
import { z } from 'zod';
import { comparisonResult, maxModels } from '../../../models/compare/comparison.ts';
import { modelField, promptField, systemField } from '../../../models/request.ts';
import { spreadSize } from '../../../models/compare/spread.ts';
import type { ToolServices } from '../../engine/tool-dependencies.ts';
import { defineTool, type Tool } from '../../tool.ts';

export function compareModelsTool({ catalog, maxTokens }: ToolServices): Tool {
  return defineTool({
    name: 'compare_models',
    title: 'Compare models',
    description:
      `Sends the same prompt to up to ${maxModels} language models in parallel and returns every answer with its metered cost and latency, and which was cheapest and fastest. ` +
      `Without models, ${spreadSize} that differ in price, quality and maker are picked. It does not judge the answers. Lasts as long as the slowest model; a model that fails has error in its entry.`,
    input: z.strictObject({
      prompt: promptField.describe('Prompt sent to every model'),
      models: z
        .array(modelField(catalog))
        .max(maxModels, `names more than ${maxModels} models`)
        .optional()
        .describe(`Ids of models, of GET /api/models, at most ${maxModels}; without them, a spread of ${spreadSize}`),
      system: systemField.optional().describe('System prompt applied to every model'),
      max_tokens: z
        .int()
        .min(1)
        .max(maxTokens.max)
        .optional()
        .describe(`Most tokens of each answer, 1 to ${maxTokens.max}; default ${maxTokens.default}`),
    }),
    aliases: {
      q: 'prompt',
      question: 'prompt',
      message: 'prompt',
      text: 'prompt',
      model: 'models',
      system_prompt: 'system',
    },
    output: comparisonResult,
    example: { prompt: 'Name the three largest moons of Saturn.' },
    price: '0',
    asksModels: true,
    openWorld: true,
    limitMs: 180_000,
    run: async ({ prompt, models, system, max_tokens }, { models: spender }) => ({
      result: await spender.compare({ prompt, models, system, maxTokens: max_tokens }),
    }),
  });
}
