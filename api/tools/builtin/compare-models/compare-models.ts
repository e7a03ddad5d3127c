// The tool compare_models: sends one prompt to several models in parallel, like POST /api/compare.
import { z } from 'zod';
import {
  comparisonResult,
  maxModels,
  modelField,
  promptField,
  spreadSize,
  systemField,
  temperatureField,
  topPField,
} from '../../../models/index.ts';
import { type ToolDependencies, defineTool, type Tool } from '../../tool.ts';

export function createCompareModelsTool({ catalog, maxTokens }: ToolDependencies): Tool {
  return defineTool({
    name: 'compare_models',
    title: 'Compare models',
    description:
      `Sends the same prompt to up to ${maxModels} language models in parallel and returns each answer with its metered cost and latency, and names the cheapest and the fastest model. ` +
      `Without models, it picks ${spreadSize} that differ in price, quality and vendor. It does not judge the answers. The call takes as long as the slowest model; a model that fails has an error in its entry.`,
    input: z.strictObject({
      prompt: promptField.describe('Prompt to send to every model.'),
      models: z
        .array(modelField(catalog))
        .max(maxModels, `must have at most ${maxModels} models`)
        .optional()
        .describe(
          `Model ids from GET /api/models, at most ${maxModels}. When omitted, ${spreadSize} models are picked.`,
        ),
      system: systemField.optional().describe('System prompt for every model.'),
      max_tokens: z
        .int()
        .min(1)
        .max(maxTokens.max)
        .optional()
        .describe(`Maximum tokens of each answer, 1 to ${maxTokens.max}. Default: ${maxTokens.default}.`),
      temperature: temperatureField,
      top_p: topPField,
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
    run: async ({ prompt, models, system, max_tokens, temperature, top_p }, { models: spender }) => ({
      result: await spender.compare({
        prompt,
        models,
        system,
        options: { temperature, top_p },
        maxTokens: max_tokens,
      }),
    }),
  });
}
