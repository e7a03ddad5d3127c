// Endpoints of guides, their JSON schemas, and the problem that they return.
import { z } from 'zod';
import { type ProblemType, createUnknownNameProblem } from '../../../lib/problem.ts';
import { defineEndpoint, type Endpoint } from '../../http/index.ts';
import type { Guides } from './guides.ts';

/** Evidence is that of benchmarks. */
const maxAgeSeconds = 15;

export const guidesPath = '/api/agent-guides';

export function createGuideEndpoints(guides: Pick<Guides, 'listEntries' | 'getRecord' | 'slugs'>): Endpoint[] {
  return [
    defineEndpoint({
      method: 'GET',
      head: 'as GET',
      path: '/api/agent-guides',
      operation: 'listGuides',
      tag: 'catalog',
      summary: 'List the guides for agents',
      description:
        'Each guide answers one question, with the tool that applies, steps to execute and measured evidence.',
      output: guideList,
      outputDescription: 'The guides.',
      maxAgeSeconds,
      handler: () => guides.listEntries(),
    }),
    defineEndpoint({
      method: 'GET',
      head: 'as GET',
      path: '/api/agent-guides/{slug}',
      operation: 'getGuide',
      tag: 'catalog',
      summary: 'Read a guide for agents',
      description:
        'The answer states which of its claims the evidence supports, does not support or does not decide, and what has not been measured.',
      params: z.strictObject({
        // Any other slug is answered with 404 and the nearest ones.
        slug: z
          .string()
          .max(100)
          .meta({ enum: [...guides.slugs] })
          .describe('Identifier of the guide.'),
      }),
      output: guideRecord,
      outputDescription: 'The guide, licensed CC BY 4.0.',
      maxAgeSeconds,
      problems: [unknownGuide],
      async handler({ params: { slug } }) {
        return (await guides.getRecord(slug)) ?? throwUnknownGuide(slug, guides.slugs);
      },
    }),
  ];
}

function throwUnknownGuide(slug: string, slugs: readonly string[]): never {
  throw createUnknownNameProblem(unknownGuide, {
    says: 'There is no guide',
    name: slug,
    names: slugs,
    all: `GET ${guidesPath} lists all guides.`,
  });
}

export const license = 'CC BY 4.0';

/** How evidence comes about. */
export const method =
  'Live app tasks run repeatedly; pass/fail, billed USD cost and latency recorded; models whose upstream was unavailable are excluded from quality conclusions.';
export const methodZh =
  '反复运行在线应用的任务，记录每次运行是否通过、实际计费金额（美元）和延迟；上游不可用的模型不计入质量结论。';

const url = z.url();
const time = z.iso.datetime();

export const evidenceEntry = z.strictObject({
  slug: z.string().describe('Slug of the app.'),
  available: z.boolean().describe('Whether a benchmark of this app has runs.'),
  url: url.nullable().describe('Page of the benchmark; null while there is none.'),
  data_url: url.nullable().describe('Data of the benchmark; null while there is none.'),
  updated: time.nullable().describe('When the benchmark last changed; null while there is none.'),
  runs_per_task: z.int().describe('Fewest runs of a model on a task, among the models tested.'),
  models_tested: z.int().describe('Number of models with at least one run.'),
  models_with_complete_pass_rate: z.int().describe('Number of models with a pass rate for every task.'),
  best_measured_value: z
    .strictObject({
      model: z.string().describe('Model with the lowest cost per success, among those with a complete pass rate.'),
      usd_per_run: z.number().describe('Mean billed cost of its runs, in USD.'),
    })
    .nullable()
    .describe('null while no model with a complete pass rate has passed a run.'),
  failed_all_tasks: z.array(z.string()).describe('Models that were measured and passed no run.'),
  not_measured: z.array(z.string()).describe('Models of this installation without a quality result here.'),
});
export type EvidenceEntry = z.output<typeof evidenceEntry>;

export const guideRecord = z.strictObject({
  slug: z.string().describe('Identifier of the guide.'),
  question: z.string().describe('The question that is answered.'),
  title_zh: z.string().describe('Title in Chinese.'),
  answer: z.string().describe('Citable answer. States what the evidence does and does not support.'),
  answer_zh: z.string().describe('The answer in Chinese.'),
  updated: time.describe('When the text or its evidence last changed.'),
  method: z.string().describe('How the evidence was measured.'),
  tool: z.strictObject({
    name: z.string().describe('Name of the tool that applies, at /t/<name> and on MCP.'),
    description: z.string().describe('What the tool does, and whether it is available here.'),
    arguments_example: z.record(z.string(), z.unknown()).describe('Arguments that the tool accepts.'),
    mcp_endpoint: url,
    openapi: url,
  }),
  steps: z.array(z.string()).describe('Steps in order, each with its call. $NAME is a value to fill in.'),
  evidence: z.array(evidenceEntry).describe('Benchmarks that apply; may be empty.'),
  page: url.describe('The guide as a page.'),
  machine_readable: url.describe('This record.'),
  license: z.literal(license),
});
export type GuideRecord = z.output<typeof guideRecord>;

export const guideEntry = guideRecord.pick({
  slug: true,
  question: true,
  title_zh: true,
  updated: true,
  page: true,
  machine_readable: true,
  license: true,
});
export type GuideEntry = z.output<typeof guideEntry>;
export const guideList = z.array(guideEntry);

export const unknownGuide: ProblemType = {
  slug: 'unknown-guide',
  status: 404,
  title: 'Unknown guide',
  description:
    'No guide has this slug. `nearest` lists the guides with the most similar slugs; GET /api/agent-guides lists all guides.',
};
